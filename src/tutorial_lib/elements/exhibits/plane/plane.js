// The plane of queries and keys: a query to turn and to lengthen, the keys that it meets, and its
// output in the triangle of the values. A second head has a query and keys of its own. Where there
// is no triangle, the dot products are all that is shown, and there is one head.

import { readings } from "../../readings.js";
import { all, define } from "../../shared.js";
import { Exhibit, oneOf } from "../exhibit.js";
import { onDrag } from "../hold.js";
import { fourPlaces, withMinus } from "../numbers.js";

const UTMOST = 4; // the length of the longest query
const PLANE_UNIT = 25; // pixels of a plane that a length of 1 takes
const WHOLE_BAR = 8; // a dot product whose bar is whole
const SQUARE = 120; // pixels of the square that holds the triangle
const BESIDE = 0.025; // a weight this close to 0 puts the output beside an edge
const TURNS = { ArrowLeft: [5, 0], ArrowRight: [-5, 0], ArrowUp: [0, 0.25], ArrowDown: [0, -0.25] };

const sixPlaces = (n) => Number(n.toFixed(6));
// An angle in degrees, above −180 and up to 180.
const inDegrees = (n) => sixPlaces(n - 360 * Math.ceil(n / 360 - 0.5));
const readAngle = (text) =>
  readings(text.replace("°", "")).filter((n) => Math.abs(n) <= 360).map(inDegrees)[0];
const readLength = (text) => readings(text).filter((n) => n >= 0 && n <= UTMOST).map(sixPlaces)[0];
const ANGLES = [readAngle, "a number from −360 to 360"];
const LENGTHS = [readLength, `a number from 0 to ${UTMOST}`];

const pointText = (numbers) => `(${numbers.map(fourPlaces).join(", ")})`;
const dotWith = (a, b) => a.reduce((sum, n, i) => sum + n * b[i], 0);
const setEnds = (line, ...ends) =>
  ends.flat().forEach((at, i) => line.setAttribute(["x1", "y1", "x2", "y2"][i], at));
const moveTo = (node, [x, y], more = "") =>
  node.setAttribute("transform", `translate(${x} ${y})${more}`);
// Where a vector ends in a plane, and where values lie in the square.
const toPlane = ([x, y]) => [PLANE_UNIT * x, -PLANE_UNIT * y];
const toSquare = ([x, y]) => [SQUARE * x, SQUARE * (1 - y)];

// All that one head makes of its query.
const attend = (keys, values, [degrees, long]) => {
  const turn = (degrees * Math.PI) / 180;
  const way = [Math.cos(turn), Math.sin(turn)];
  const q = way.map((n) => long * n);
  const products = keys.map((key) => dotWith(q, key));
  const scores = products.map((product) => product / Math.SQRT2);
  const most = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - most));
  const total = powers.reduce((a, b) => a + b);
  const weights = powers.map((power) => power / total);
  const output = [0, 1].map((i) => dotWith(weights, values.map((value) => value[i])));
  return { way, q, products, scores, weights, output };
};

class Plane extends Exhibit {
  constructor(element) {
    super(element);
    this.first = this.given.first;
    this.plane = element.querySelector(".tl-arrows");
    this.triangle = element.querySelector(".tl-mix");
    this.marks = all(element, ".tl-mix [data-head]");
    this.blocks = all(element, ".tl-asker");
    [this.second] = this.buttons;
    this.resets("The plane is as it was.");
    this.lines = all(element, ".tl-numbers p");
  }

  // Say to keys and to screen readers what can be done, and listen.
  listen() {
    this.rove([[this.plane]]);
    this.plane.role = "application";
    this.fields.forEach((field, i) => (field.onchange = () => this.write(field, i)));
    onDrag(this, this.plane, (event) => this.drag(event));
    if (this.triangle) {
      this.offer(this.blocks, "Heads");
      this.second.onclick = () => this.show(3 - this.state.heads);
    } else this.blocks[0].role = "img";
  }

  // How a state calls the angle and the length of a head's query, and these.
  names(h = this.state.head) {
    return h ? ["angle.1", "length.1"] : ["angle", "length"];
  }

  asks(h) {
    return this.names(h).map((name) => this.state[name]);
  }

  paint() {
    const { keys, values } = this.given;
    const { heads, head } = this.state;
    this.made = keys.map((own, h) => attend(own, values, this.asks(h)));
    this.draw();
    this.made.forEach((made, h) => this.share(made, h));
    this.fields.forEach((field, i) => {
      field.value = this.asks()[i];
      field.ariaInvalid = null;
    });
    if (this.triangle) {
      this.blocks.forEach((block, h) => (block.ariaChecked = h == head));
      this.second.ariaPressed = heads == 2;
      this.blocks[0].parentNode.dataset.heads = heads;
      const outputs = this.outputs().map((output, h) => `head ${h} ${output}`);
      this.triangle.ariaLabel = `Triangle of the values. Output of ${outputs.join(", of ")}`;
    }
  }

  // The weights of a head or its dot products, and the outputs of those that are on.
  listed(h) {
    const shown = this.triangle ? this.made[h].weights : this.made[h].products;
    return this.given.words.map((word, i) => `${word} ${fourPlaces(shown[i])}`).join(", ");
  }

  outputs() {
    return this.made.slice(0, this.state.heads).map(({ output }) => pointText(output));
  }

  // Draw the query of the chosen head, its keys, and their shadows on its direction.
  draw() {
    const { head } = this.state;
    const { way, q } = this.made[head];
    const svg = this.plane.firstElementChild;
    const [line, arrow, tip, name] = ["way", "q", "tip", "name"].map((part) =>
      svg.querySelector(`[data-part=${part}]`));
    const [x, y] = toPlane(q);
    svg.dataset.head = head;
    this.plane.ariaLabel =
      `Head ${head}. Left and right turn its query, up and down change its length`;
    setEnds(line, ...[-UTMOST, UTMOST].map((n) => toPlane(way.map((part) => n * part))));
    setEnds(arrow, [0, 0], [x, y]);
    moveTo(tip, [x, y], ` rotate(${-this.asks()[0]})`);
    tip.style.display = x || y ? "" : "none";
    moveTo(name, [x - 11 * way[1], y - 11 * way[0]]);
    all(svg, "g").forEach((group, i) => this.cast(group, this.given.keys[head][i], way));
  }

  // Draw a key, and the dot at which it stands over the line of the query.
  cast(group, key, way) {
    const [drop, arrow, end, dot, word] = group.children;
    const foot = toPlane(way.map((part) => part * dotWith(way, key)));
    setEnds(drop, toPlane(key), foot);
    setEnds(arrow, [0, 0], toPlane(key));
    moveTo(end, toPlane(key));
    moveTo(dot, foot);
    const far = 1 + 9 / (PLANE_UNIT * Math.hypot(...key));
    const [x, y] = toPlane(key.map((n) => far * n));
    moveTo(word, [x + (key[0] ? 0 : 6), y + (key[1] ? 0 : 11)]); // beside the axes
    group.dataset.side = Math.sign(key[0]) || 1;
  }

  // Write what a head shares out and what comes of it, in bars, in the triangle, in the tables.
  share(made, h) {
    const { q, products, scores, weights, output } = made;
    const block = this.blocks[h];
    const shown = this.triangle ? weights : products;
    block.ariaLabel = `${this.triangle ? `head ${h}` : "dot products with q"}: ${this.listed(h)}`;
    all(block, "i").forEach((bar, i) => {
      bar.style.setProperty("--share", this.triangle ? shown[i] : shown[i] / WHOLE_BAR);
      bar.nextElementSibling.textContent = fourPlaces(shown[i]);
    });
    if (this.triangle) this.mark(made, h);
    const [angle, length] = this.asks(h).map(withMinus);
    const query = `angle ${angle}°, length ${length}, query ${pointText(q)}`;
    const end = this.triangle ? `, output ${pointText(output)}` : "";
    this.lines[h].textContent = `Head ${h}: ${query}${end}.`;
    this.bodies[h].forEach((row, i) =>
      [products[i], scores[i], weights[i]].slice(0, row.cells.length - 2).forEach((n, j) => {
        row.cells[j + 2].textContent = fourPlaces(n);
      }));
  }

  // Draw the output of a head in the triangle, and hide what belongs to a head that is off.
  mark({ weights, output }, h) {
    const [block, mark, end] = [this.blocks[h], this.marks[h], toSquare(output)];
    const parts = [block, mark, this.lines[h].parentNode];
    parts.forEach((part) => (part.style.display = h < this.state.heads ? "" : "none"));
    all(mark, "line").forEach((string, i) => {
      setEnds(string, toSquare(this.given.values[i]), end);
      string.setAttribute("stroke-width", 8 * weights[i]);
    });
    moveTo(mark.querySelector("[data-part=output]"), end);
    mark.querySelector("text").textContent = pointText(output);
  }

  // Give the chosen head another query, as a reader did, and say what comes of it.
  ask([degrees, long]) {
    const [angle, length] = this.names();
    const held = Math.min(Math.max(sixPlaces(long), 0), UTMOST);
    this.change({ [angle]: inDegrees(degrees), [length]: held });
  }

  told() {
    const { head, heads } = this.state;
    const [angle, length] = this.asks().map(withMinus);
    const who = heads == 2 ? `Head ${head} at` : "At";
    const { weights, products } = this.made[head];
    const end = this.triangle ? `the output is ${this.where(weights)}` : this.fitting(products);
    return `${who} ${angle}°, length ${length}: ${this.listed(head)}; ${end}.`;
  }

  // The words whose keys fit a query best.
  fitting(products) {
    const most = Math.max(...products);
    const named = this.given.words.filter((_, i) => most - products[i] < 5e-5);
    if (named.length == 3) return "all three fit alike";
    return `“${named.join("” and “")}” ${named[1] ? "fit" : "fits"} best`;
  }

  // Where in the triangle an output lies.
  where(weights) {
    const [most, least] = [Math.max(...weights), Math.min(...weights)];
    const named = this.given.words.map((word) => `“${word}”`);
    if (least >= BESIDE) return "inside the triangle";
    if (1 - most < BESIDE) return `close to the corner of ${named[weights.indexOf(most)]}`;
    const [without] = named.splice(weights.indexOf(least), 1);
    const beyond = `On it ${without} would weigh 0, beyond it less, and no power of e does`;
    return `close to the edge between ${named.join(" and ")}. ${beyond}`;
  }

  // Show one head or two.
  show(heads) {
    this.restore({ ...this.state, heads, head: heads - 1 });
    const counted = heads == 2 ? "Two heads, two queries, two outputs" : "One head, one output";
    const how = heads == 2 ? ". Choose whose query you turn by its weights" : "";
    this.changed(`${counted}: ${this.outputs().join(" and ")}${how}.`);
  }

  write(field, i) {
    const value = this.writtenIn(field, [ANGLES, LENGTHS][i]);
    if (value !== undefined) this.ask(this.asks().map((old, j) => (j == i ? value : old)));
  }

  choose(cell) {
    const head = this.blocks.indexOf(cell);
    if (head >= 0 && head != this.state.head) this.change({ head });
  }

  keyed(cell, { key, shiftKey, ctrlKey, metaKey }) {
    const step = cell == this.plane && !ctrlKey && !metaKey && TURNS[key];
    const fine = shiftKey ? 5 : 1;
    return step && (() => this.ask(this.asks().map((n, i) => n + step[i] / fine)));
  }

  // The tip of the query goes where the pointer is: whole degrees, twentieths of a length.
  drag({ clientX, clientY }) {
    const svg = this.plane.firstElementChild;
    const box = svg.getBoundingClientRect();
    const unit = (PLANE_UNIT * box.width) / svg.viewBox.baseVal.width;
    const x = (clientX - box.x - box.width / 2) / unit;
    const y = (box.y + box.height / 2 - clientY) / unit;
    const long = Math.round(20 * Math.hypot(x, y)) / 20;
    const degrees = Math.round((180 * Math.atan2(y, x)) / Math.PI);
    this.ask([long ? degrees : this.asks()[0], long]);
  }

  forms() {
    const second = { "angle.1": ANGLES, "length.1": LENGTHS };
    return { heads: oneOf(1, 2), head: oneOf(0, 1), angle: ANGLES, length: LENGTHS, ...second };
  }

  misfit({ heads, head }) {
    if (heads > this.given.keys.length) return "heads is “2”; expected 1.";
    if (head >= heads) return "head is “1”; expected 0, or heads=2 with it.";
  }
}

define("tl-plane", (element) => new Plane(element).wake("Link to this query"));
