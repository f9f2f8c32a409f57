// Y as a sum: what each head writes into the features of a word, stacked up and down from zero.
// A head can be silenced, the heads swapped, a row of W_O scaled.

import { readings } from "../../readings.js";
import { all, define } from "../../shared.js";
import { Exhibit, oneOf } from "../exhibit.js";
import { layer } from "../layer.js";
import { numText } from "../numbers.js";

const AXIS_END = 3;
const OWN_WIDTH = 4; // d_v
const FACTORS = [-1, -0.5, 0, 0.5, 1, 1.5, 2];
const SWAPS = {
  no: "Heads in their own positions",
  with: "Heads swapped, and their rows of W_O with them",
  without: "Heads swapped, their rows of W_O left behind",
};

const percent = (n) => `${(100 * n) / (2 * AXIS_END)}%`;
const fromTop = (n) => percent(AXIS_END - n);
const andList = (names) => names.join(", ").replace(/, ([^,]*)$/, " and $1");
const featuresOf = (found) => `${found.length == 1 ? "feature" : "features"} ${andList(found)}`;
const changedAt = (a, b) => [...a.keys()].filter((i) => Math.abs(a[i] - b[i]) > 1e-12);
// A fraction may break before its stroke, where it is narrow.
const setText = (node, value) => {
  const text = numText(value);
  if (node.textContent != text) node.innerHTML = text.replace("/", "<wbr>/");
};

class HeadsSum extends Exhibit {
  constructor(element) {
    super(element);
    this.base = layer(this.given);
    [this.wordButtons, this.switches] = all(element, ".tl-row").map((row) => all(row, "button"));
    this.switches.pop(); // which resets
    this.words = this.wordButtons.map((button) => button.textContent);
    this.resets("The sum is as it was.");
    this.heaps = all(element, ".tl-heap");
    this.met = all(element, ".tl-meets div > span");
    [this.slider] = this.sliders;
    this.shown = this.bodies[0].slice(1);
    this.first = { word: this.words.at(-1), off: "", swap: "no", row: 0, times: 1 };
  }

  // Say to keys and to screen readers what can be chosen, and listen.
  listen() {
    this.rove([this.heaps]);
    this.offer(this.met, "Numbers of concat and their rows of W_O");
    this.heaps.forEach((heap) => {
      heap.removeAttribute("aria-hidden");
      heap.role = "button";
    });
    [...this.heaps, ...this.met].forEach((cell) => {
      cell.onclick = () => {
        if (document.activeElement == cell) this.choose(cell);
        else cell.focus();
      };
    });
    this.wordButtons.forEach((button, t) => {
      button.onclick = () => this.change({ word: this.words[t] }, () => this.pulls());
    });
    this.switches.forEach((button, i) => {
      button.onclick = () => (i < 2 ? this.silence(`${i}`) : this.swap(["with", "without"][i - 2]));
    });
    this.slider.oninput = () =>
      this.change({ times: Number(this.slider.value) }, () => this.scaled());
  }

  // Which head stands in each place of concat, and whose rows of W_O stand there.
  places({ swap } = this.state) {
    return [swap == "no" ? [0, 1] : [1, 0], swap == "with" ? [1, 0] : [0, 1]];
  }

  // What the layer makes of the heads that are named, as they stand, with W_O as it stands.
  run(speaking, state) {
    const { row, times } = state;
    const [order, owners] = this.places(state);
    const W_O = this.given.W_O[0].map((numbers, r) =>
      numbers.map((n) => (r == row ? times * n : n)));
    const blocks = owners.map((h) => W_O.slice(OWN_WIDTH * h, OWN_WIDTH * (h + 1)));
    const { concat, Y, ...kept } = this.base;
    const silent = (rows) => rows.map((numbers) => numbers.map(() => 0));
    const heads = order.map((h) => (speaking.includes(h) ? kept.heads[h] : silent(kept.heads[h])));
    return layer({ ...this.given, W_O: [blocks.flat()] }, { ...kept, heads });
  }

  // The part of each head and Y, of every word; of the chosen one, concat too.
  sums(state = this.state) {
    const on = [0, 1].filter((h) => !state.off.includes(h));
    const whole = this.run(on, state);
    const t = this.words.indexOf(state.word);
    const parts = [0, 1].map((h) => this.run(on.filter((one) => one == h), state).Y[0]);
    const rows = this.words.map((_, s) => [...parts.map((part) => part[s]), whole.Y[0][s]]);
    return { rows, own: rows[t], concat: whole.concat[0][t], before: this.base.Y[0][t] };
  }

  paint() {
    const { word, off, swap } = this.state;
    this.made = this.sums();
    const { rows, own } = this.made;
    this.wordButtons.forEach((button, t) => (button.ariaPressed = this.words[t] == word));
    const pressed = [off.includes(0), off.includes(1), swap == "with", swap == "without"];
    this.switches.forEach((button, i) => (button.ariaPressed = pressed[i]));
    this.heaps.forEach((heap, i) => this.pile(heap, i));
    this.meet();
    const put = (line, numbers) => numbers.forEach((n, i) => setText(line.cells[i + 1], n));
    own.forEach((numbers, h) => put(this.shown[h], numbers));
    rows.flat().forEach((numbers, i) => put(this.bodies[1][i], numbers));
  }

  // Draw the bars of a feature, each from where the one before it ends, and both lines.
  pile(heap, i) {
    const [one, two, sum] = this.made.own.map((numbers) => numbers[i]);
    const ends = { true: 0, false: 0 };
    [one, two].forEach((number, h) => {
      const start = ends[number > 0];
      ends[number > 0] = start + number;
      const [bar, top] = [heap.children[h], Math.max(start, start + number)];
      Object.assign(bar.style, { top: fromTop(top), height: percent(Math.abs(number)) });
    });
    heap.children[2].style.top = fromTop(this.made.before[i]);
    heap.children[3].style.top = fromTop(sum);
    const [a, b, c] = [one, two, sum].map(numText);
    heap.ariaLabel = `feature ${i}: head 0 ${a}, head 1 ${b}, Y ${c}`;
  }

  // Show concat over the rows of W_O, and the row that is scaled.
  meet() {
    const { row, times } = this.state;
    const [order, owners] = this.places();
    this.met.forEach((cell, j) => {
      const [slot, place] = [Math.floor(j / OWN_WIDTH), j % OWN_WIDTH];
      const r = OWN_WIDTH * owners[slot] + place;
      const [number, name] = cell.children;
      setText(number, this.made.concat[j]);
      name.textContent = r;
      number.dataset.head = order[slot];
      name.dataset.head = owners[slot];
      const chosen = r == row;
      const whose = `${numText(this.made.concat[j])} of head ${order[slot]}`;
      Object.assign(cell, { ariaLabel: `${whose}, times row ${r}`, ariaChecked: chosen });
      cell.tabIndex = chosen ? 0 : -1;
    });
    const [line, factor] = [this.shown.at(-1), numText(times)];
    const [label, , shown] = this.slider.parentNode.children;
    line.cells[0].textContent = `row ${row}`;
    this.given.W_O[0][row].forEach((n, i) => setText(line.cells[i + 1], times * n));
    label.firstChild.data = `row ${row} of W`;
    shown.textContent = `× ${factor}`;
    Object.assign(this.slider, { value: times, ariaValueText: `row ${row} times ${factor}` });
  }

  // What differs in Y from what it was.
  moves(was) {
    const found = changedAt(this.made.own[2], was);
    const count = found.length == 8 ? "all 8 features" : featuresOf(found);
    return `moves ${found.length ? count : "no feature"} of Y of “${this.state.word}”.`;
  }

  // What a part of the state is, and what it moves, against the sum without it.
  effect(words, part) {
    const { state, first } = this;
    if (state[part] == first[part]) return `${words}.`;
    return `${words}: that ${this.moves(this.sums({ ...state, [part]: first[part] }).own[2])}`;
  }

  pulls() {
    const [one, two] = this.made.own;
    const count = one.filter((n, i) => n * two[i] < 0).length;
    const who = this.plain() ? "the heads" : "the heads, as they are now,";
    return `“${this.state.word}”: ${who} pull against each other in ${count} of 8 features.`;
  }

  silence(h) {
    const { off } = this.state;
    const next = off.includes(h) ? off.replace(h, "") : [...off, h].sort().join("");
    const says = ["Both heads speak", "Head 0 is silent", "Head 1 is silent", "Both are silent"];
    const which = ["", "0", "1", "01"].indexOf(next);
    this.change({ off: next }, () => this.effect(says[which], "off"));
  }

  swap(way) {
    const next = this.state.swap == way ? "no" : way;
    this.change({ swap: next }, () => this.effect(SWAPS[next], "swap"));
  }

  scaled() {
    const { row, times } = this.state;
    const met = this.met.find((cell) => cell.ariaChecked == "true");
    const number = `${met.firstChild.textContent}, of head ${met.firstChild.dataset.head}`;
    const words = `Row ${row} of W_O times ${numText(times)} is multiplied by ${number}`;
    return this.effect(words, "times");
  }

  // The sum of a feature in words.
  feature(i) {
    const [one, two, sum] = this.made.own.map((numbers) => numbers[i]);
    const [a, b, c] = [one, two, sum].map(numText);
    const against = one * two < 0 ? "pull against each other" : "pull the same way";
    const who = ["neither head writes", "only head 0 writes", "only head 1 writes"];
    const how = one * two ? `the heads ${against}` : `${who[one ? 1 : two ? 2 : 0]} here`;
    const plus = two < 0 ? `− ${b.slice(1)}` : `+ ${b}`;
    return `Feature ${i} of “${this.state.word}”: ${a} ${plus} = ${c}, ${how}.`;
  }

  choose(cell) {
    const feature = this.heaps.indexOf(cell);
    if (feature >= 0) return this.say(this.feature(feature));
    const row = Number(cell.lastElementChild.textContent);
    if (row != this.state.row) this.change({ row }, () => this.scaled());
    else this.say(this.scaled());
  }

  enter(cell) {
    this.choose(cell);
  }

  forms() {
    return {
      word: oneOf(...this.words),
      off: oneOf("0", "1", "01"),
      swap: oneOf("no", "with", "without"),
      row: oneOf(0, 1, 2, 3, 4, 5, 6, 7),
      times: [
        (text) => readings(text).find((n) => FACTORS.includes(n)),
        oneOf(...FACTORS.map(numText))[1],
      ],
    };
  }

  // Whether nothing is silent, swapped or scaled.
  plain() {
    const { off, swap, times } = this.state;
    return !off && swap == "no" && times == 1;
  }

  // Of a link, what its heads do, or how often they pull apart.
  told() {
    const here = `The sum of the link is here: it ${this.moves(this.made.before)}`;
    return this.plain() ? this.pulls() : here;
  }
}

define("tl-sum", (element) => new HeadsSum(element).wake("Link to this sum"));
