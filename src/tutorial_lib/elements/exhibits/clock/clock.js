// RoPE as two hands of a clock: pairs of entries of a query and of a key, each rotated by its
// position times its frequency. The score is the sum over the pairs, divided by the root of d_k.

import { readings } from "../../readings.js";
import { all, define } from "../../shared.js";
import { Exhibit, oneOf } from "../exhibit.js";
import { fourPlaces, withMinus } from "../numbers.js";

const FARTHEST = 100_000;
const FASTEST = 10;

// A whole position, and a frequency in radians, as readers write them; else undefined.
const position = (text) =>
  readings(text).find((n) => Number.isInteger(n) && n >= 0 && n <= FARTHEST);
const frequency = (text) => {
  const bare = text.replace(/π|pi/i, "");
  // "π/2" is 1/2 of π, and "2π" is 2 of it.
  const counted = bare == text ? text : bare.replace(/^\s*(?=\/|$)/, "1");
  const unit = bare == text ? 1 : Math.PI;
  return readings(counted).map((n) => n * unit).find((n) => n >= 0 && n <= FASTEST);
};

const POSITION = [position, "a whole number from 0 to 100,000"];
const RADIANS = [frequency, "a number from 0 to 10, such as 0.1 or π/2"];

const short = (n) => `${Number(n.toPrecision(6))}`;
const inner = ([a, b], [c, d]) => a * c + b * d;
const rotated = ([a, b], angle) => {
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  return [cos * a - sin * b, sin * a + cos * b];
};
// An angle of half a round at most, either way.
const wrapAngle = (angle) => angle - 2 * Math.PI * Math.round(angle / (2 * Math.PI));
const clamp = (n, least, most) => Math.min(Math.max(n, least), most);
const set = (node, given) =>
  Object.entries(given).forEach(([name, value]) => node.setAttribute(name, value));

// Draw two hands: the first entry up, the second to the right.
const drawHands = (svg, [q, k]) => {
  const cast = q.map((number) => number * inner(q, k));
  const ends = { q: [[0, 0], q], k: [[0, 0], k], cast: [[0, 0], cast], drop: [k, cast] };
  Object.entries(ends).forEach(([part, [from, to]]) => {
    const [y1, x1, y2, x2] = [...from, ...to].map((at, i) => (i % 2 ? 100 : -100) * at);
    set(svg.querySelector(`[data-part=${part}]`), { x1, y1, x2, y2 });
  });
  all(svg, "text").forEach((letter, i) => {
    // At their own distances from the hub, so that hands that coincide keep both names.
    const [y, x] = [q, k][i].map((at) => at * [114, 131][i]);
    set(letter, { x, y: -y });
  });
};

class Clock extends Exhibit {
  constructor(element) {
    super(element);
    this.first = this.given.first;
    this.face = element.querySelector(".tl-face > svg");
    this.cells = all(element, ".tl-pair");
    [this.both] = this.buttons;
    this.resets("The clock is as it was.");
    [this.pairs, this.scores] = this.bodies;
  }

  // Say to keys and to screen readers what can be chosen, and listen.
  listen() {
    this.offer(this.cells, "Pairs");
    ["m", "n"].forEach((name, i) => {
      this.sliders[i].oninput = () => this.move(name, Number(this.sliders[i].value));
      this.fields[i].onchange = () => this.write(this.fields[i], POSITION, name);
    });
    this.fields[2].onchange = () => this.write(this.fields[2], RADIANS);
    this.both.onclick = () => this.join();
    this.face.onpointerdown = (event) => this.take(event);
    this.face.onpointermove = (event) => this.drag(event);
    this.face.onpointerup = this.face.onpointercancel = () => (this.hand = undefined);
  }

  // Show a state from which what comes is compared; both hands go alone.
  restore(state) {
    this.both.ariaPressed = false;
    super.restore(state);
    this.best = this.made.score;
  }

  // The frequencies of all pairs.
  get frequencies() {
    return this.cells.map((_, i) => this.state[`frequency.${i}`]);
  }

  // The hands of all pairs at two positions, their products, and the score.
  measure({ m, n }) {
    const { Q, K } = this.given;
    const { frequencies } = this;
    const hands = frequencies.map((by, i) => [rotated(Q[i], by * m), rotated(K[i], by * n)]);
    const products = hands.map(([q, k]) => inner(q, k));
    const sum = products.reduce((a, b) => a + b);
    return { hands, products, sum, score: sum / Math.sqrt(2 * frequencies.length) };
  }

  paint() {
    const { state, frequencies } = this;
    const { m, n, pair } = state;
    this.made = this.measure(state);
    const { hands, products } = this.made;
    drawHands(this.face, hands[pair]);
    this.face.ariaLabel = `The hands of pair ${pair}`;
    this.cells.forEach((cell, i) => {
      drawHands(cell.firstElementChild, hands[i]);
      cell.querySelector("span").textContent = short(frequencies[i]);
      cell.querySelector("b").textContent = fourPlaces(products[i]);
      cell.ariaLabel = `pair ${i}, frequency ${short(frequencies[i])}: ${fourPlaces(products[i])}`;
      cell.ariaChecked = i == pair;
    });
    [m, n, short(frequencies[pair])].forEach((text, i) => {
      this.fields[i].value = text;
      this.fields[i].ariaInvalid = null;
      if (i < 2) this.sliders[i].value = text;
    });
    this.fields[2].previousElementSibling.textContent = `frequency of pair ${pair}, in radians`;
    this.tabulate();
  }

  // Write the sum and the tables.
  tabulate() {
    const { m, n } = this.state;
    const { frequencies } = this;
    const { hands, products, sum, score } = this.made;
    const total = this.element.querySelector(".tl-total");
    total.querySelector("p").innerHTML =
      `sum ${fourPlaces(sum)}, ÷ √${2 * frequencies.length}: score <b>${fourPlaces(score)}</b>`;
    const across = { x: 25 * Math.min(sum, 0), width: 25 * Math.abs(sum) };
    set(total.querySelector("rect"), across);
    this.pairs.forEach((row, i) => {
      const written = hands[i].map((hand) => `(${hand.map(fourPlaces).join(", ")})`);
      const name = `pair ${i}, frequency ${short(frequencies[i])}`;
      const texts = [name, ...written, fourPlaces(products[i])];
      texts.forEach((text, j) => (row.cells[j].textContent = text));
    });
    this.scores.forEach((row, m) => {
      row.cells[1].textContent = fourPlaces(this.measure({ m, n: 0 }).score);
    });
    const told = withMinus(`Query at ${m}, key at ${n}, distance ${m - n}`);
    const state = `${told}: the score is ${fourPlaces(score)}.`;
    this.element.querySelector(".tl-numbers p").textContent = state;
  }

  // Change the state as a reader did, and say what became of the score.
  change(part) {
    const was = this.made.score;
    Object.assign(this.state, part);
    this.paint();
    this.changed(this.told(was));
  }

  told(was = this.made.score + 1) {
    const { m, n } = this.state;
    const { score } = this.made;
    const still = Math.abs(score - was) < 1e-9 ? "still " : "";
    const most = score > this.best + 1e-9 ? ", the largest so far" : "";
    this.best = Math.max(score, this.best);
    const after = n > m ? " (the key is after the query)" : "";
    const where = withMinus(`Query at ${m}, key at ${n}, distance ${m - n}`);
    return `${where}${after}: the score is ${still}${fourPlaces(score)}${most}.`;
  }

  // Let both go together, or each alone.
  join() {
    const together = this.both.ariaPressed != "true";
    this.both.ariaPressed = together;
    const which = together ? "Both now move together, so their" : "Each now moves alone, so the";
    this.say(`${which} distance ${together ? "stays" : "can change"}.`);
  }

  // Move one to a position, and the other with it where they go together.
  move(name, to) {
    const { m, n } = this.state;
    const together = this.both.ariaPressed == "true";
    const moved = together ? { m, n } : { [name]: this.state[name] };
    const positions = Object.values(moved);
    const [least, most] = [-Math.min(...positions), FARTHEST - Math.max(...positions)];
    const by = clamp(to - this.state[name], least, most);
    this.change(Object.fromEntries(Object.entries(moved).map(([one, at]) => [one, at + by])));
  }

  write(field, form, name) {
    const value = this.writtenIn(field, form);
    if (value === undefined) return;
    if (name) return this.move(name, value);
    this.best = Infinity; // other frequencies, other scores: none is the largest so far
    this.change({ [`frequency.${this.state.pair}`]: value });
    this.best = this.made.score;
  }

  choose(cell) {
    const pair = this.cells.indexOf(cell);
    if (pair == this.state.pair) return;
    this.state.pair = pair;
    this.paint();
    const { m, n } = this.state;
    const apart = withMinus(short(this.frequencies[pair] * (m - n)));
    const product = fourPlaces(this.made.products[pair]);
    const words = `the distance rotates its hands by ${apart}`;
    this.changed(`Pair ${pair}: ${words}; their product is ${product}.`);
  }

  // The angle of a point of the face, from the top and as a clock goes.
  angle({ clientX, clientY }) {
    const { x, y, width, height } = this.face.getBoundingClientRect();
    return Math.atan2(clientX - x - width / 2, y + height / 2 - clientY);
  }

  // How far a hand of the chosen pair is from an angle.
  away(name, angle) {
    const [up, right] = this.made.hands[this.state.pair]["mn".indexOf(name)];
    return wrapAngle(angle - Math.atan2(right, up));
  }

  // The nearer hand is taken.
  take(event) {
    const angle = this.angle(event);
    const [m, n] = [..."mn"].map((name) => Math.abs(this.away(name, angle)));
    this.hand = n < m ? "n" : "m";
    this.face.setPointerCapture(event.pointerId);
    this.drag(event);
  }

  // Where a hand is dragged, it goes to the position at which it points there.
  drag(event) {
    if (!this.hand) return;
    const frequency = this.frequencies[this.state.pair];
    if (!frequency) return this.say("At frequency 0 no position rotates this hand.");
    const by = Math.round(this.away(this.hand, this.angle(event)) / frequency);
    if (by) this.move(this.hand, this.state[this.hand] + by);
  }

  forms() {
    const fields = this.cells.map((_, i) => [`frequency.${i}`, RADIANS]);
    const pair = oneOf(...this.cells.keys());
    return { m: POSITION, n: POSITION, pair, ...Object.fromEntries(fields) };
  }
}

define("tl-clock", (element) => new Clock(element).wake("Link to this clock"));
