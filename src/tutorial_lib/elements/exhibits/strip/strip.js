// The strip of memory: an array of 24 numbers as blocks, and below it the line in which they lie.
// An array is that line and a rule: a stride for each axis. A swap changes the rule; so does a
// reshape, if one stride for each axis still suffices, and else it writes a line of its own.

import { all, define } from "../../shared.js";
import { Exhibit, oneOf } from "../exhibit.js";

const MOST_PRESSES = 12;
const GOALS = { product: "2,3,4 block keeps to one head", cut: "3,8 row keeps to one token" };

const lengthOf = (shape) => shape.reduce((a, b) => a * b, 1);
const stridesOf = (shape) => shape.map((_, axis) => lengthOf(shape.slice(axis + 1)));
const tuple = (numbers) => `(${numbers.join(", ")}${numbers.length == 1 ? "," : ""})`;
const inList = (numbers) => `[${numbers.join(", ")}]`;
const distinct = (values) => [...new Set(values)];
const tokenOf = (number) => Math.floor(number / 10);
const headOf = (number) => Math.floor((number % 10) / 4);

// The offsets of an array's numbers, in the order of its indices: the last index runs fastest.
const offsetsOf = ({ shape, strides }) =>
  shape.reduce((found, length, axis) => {
    return found.flatMap((offset) => Array.from({ length }, (_, i) => offset + i * strides[axis]));
  }, [0]);

const reshapedArray = (array, shape) => {
  const order = offsetsOf(array);
  const rule = { shape, strides: stridesOf(shape).map((count) => order[count]) };
  // A view, if these strides read the numbers in the same order as before.
  if (`${offsetsOf(rule)}` == `${order}`) return { ...array, ...rule, came: "view" };
  const memory = order.map((offset) => array.memory[offset]);
  return { memory, shape, strides: stridesOf(shape), came: "copy", own: true };
};

const swappedArray = (array, [a, b]) => {
  const swap = (given) => given.with(a, given[b]).with(b, given[a]);
  return { ...array, shape: swap(array.shape), strides: swap(array.strides), came: "view" };
};

// A button says what it does; a link calls "reshape(3, 8)" r3-8.
const pressOf = (button) => {
  const label = button.textContent;
  const numbers = label.match(/\d+/g).map(Number);
  const swaps = label[0] == "s";
  const act = (array) => (swaps ? swappedArray : reshapedArray)(array, numbers);
  return [label[0] + numbers.join("-"), { button, label, act, axes: swaps ? 1 + numbers[1] : 1 }];
};

class Strip extends Exhibit {
  constructor(element) {
    super(element);
    this.first = { do: "", number: this.given.number };
    const rows = all(element, ".tl-row").map((row) => all(row, "button"));
    this.presses = new Map(rows[0].map(pressOf));
    [this.guessing, this.show, this.undo] = rows[1];
    this.resets(`${this.given.name} is as it was.`);
    this.code = element.querySelector(".tl-made > code");
    this.blocks = element.querySelector(".tl-blocks");
    this.facts = all(element, "dd");
    this.sum = element.querySelector(".tl-facts + p");
    this.line = all(element, ".tl-memory > div");
    this.table = all(element.querySelector("tbody:has(th)"), "tr");
  }

  listen() {
    this.presses.forEach(({ button }, key) => (button.onclick = () => this.operate(key)));
    this.guessing.ariaPressed = true;
    this.guessing.onclick = () => {
      const asks = this.guessing.ariaPressed != "true";
      this.guessing.ariaPressed = asks;
      this.uncover(asks ? "A press asks first: " : "A press shows all at once: ");
    };
    this.show.onclick = () => this.uncover(this.covered ? "" : "Nothing is covered: ");
    this.undo.onclick = () => {
      const { keys } = this;
      this.state.do = keys.slice(0, -1).join(".");
      this.uncover(keys.length ? "Undone: " : "There is nothing to undo: ");
      this.changed();
    };
    this.blocks.onclick = ({ target }) => {
      if (!this.spots.has(target)) return;
      target.focus();
      this.enter(target);
    };
  }

  // The presses so far.
  get keys() {
    return this.state.do.split(".").filter(Boolean);
  }

  // What NumPy makes of so many presses.
  after(keys) {
    return keys.reduce((array, key) => this.presses.get(key).act(array), this.given);
  }

  // Why a press cannot come after others, if it cannot.
  refused(key, keys) {
    const { label, axes } = this.presses.get(key);
    const { shape } = this.after(keys);
    if (axes > shape.length) return `${label} needs ${axes} axes; the shape is ${tuple(shape)}.`;
    const words = `${MOST_PRESSES} presses are the most; expected Undo or Reset.`;
    return keys.length == MOST_PRESSES ? words : "";
  }

  operate(key) {
    const { keys } = this;
    const { number } = this.state;
    const why = this.refused(key, keys);
    if (why) return this.say(`${why} Nothing has changed.`);
    this.state.do = [...keys, key].join(".");
    this.covered = this.guessing.ariaPressed == "true";
    this.paint();
    const asked = `Where does ${number} go now? Choose a cell, or press Show.`;
    this.changed(this.covered ? asked : this.told());
  }

  uncover(words) {
    this.covered = false;
    this.paint();
    this.say(`${words}${this.told()}`);
  }

  // Draw the cells of a shape, where it is another than before.
  frame(shape) {
    if (`${shape}` == this.framed) return;
    this.framed = `${shape}`;
    const [blocks, rows, columns] = [1, 1, ...shape].slice(-3);
    const row = `<tr role="row">${'<td role="gridcell"></td>'.repeat(columns)}</tr>`;
    const tables = Array.from({ length: blocks }, (_, i) => {
      const table = document.createElement("table");
      table.role = "grid";
      table.ariaLabel = shape.length == 3 ? inList([i]) : "the array";
      if (shape.length == 3) table.createCaption().textContent = table.ariaLabel;
      table.toggleAttribute("data-line", shape.length == 1);
      const body = table.createTBody();
      body.role = "rowgroup";
      body.innerHTML = row.repeat(rows);
      return table;
    });
    this.blocks.replaceChildren(...tables);
    this.grids = tables.map((table) => [...table.rows].map((one) => [...one.cells]));
    this.cells = this.grids.flat(2);
    this.spots.clear();
    this.rove(...this.grids);
  }

  restore(state) {
    this.covered = false;
    super.restore(state);
  }

  paint() {
    const { keys } = this;
    const { number } = this.state;
    this.made = this.after(keys);
    const { shape, strides, came = "–", memory, own } = this.made;
    this.frame(shape);
    this.order = offsetsOf(this.made);
    this.cells.forEach((cell, k) => this.write(cell, k, memory[this.order[k]]));
    const labels = keys.map((key) => this.presses.get(key).label);
    this.code.textContent = [this.given.name, ...labels].join(".");
    const facts = [tuple(shape), inList(strides), came, own ? "a new line" : "product’s line"];
    this.facts.forEach((dd, i) => (dd.textContent = this.covered && i ? "?" : facts[i]));
    const bar = ({ button }, key) => (button.ariaDisabled = this.refused(key, keys) ? true : null);
    this.presses.forEach(bar);
    if (this.covered) return (this.sum.textContent = `${number} is at …`);
    const [index, terms, offset] = this.find();
    const sum = `${terms} = offset <b>${offset}</b> in memory.`;
    this.sum.innerHTML = `<b>${number}</b> is at ${index}: ${sum}`;
    this.line.forEach((one, i) => {
      this.mark(one, memory[i], i == offset);
      one.firstElementChild.textContent = memory[i];
    });
  }

  // Colour a cell by its number's token and head; the one in hand has a ring.
  mark(cell, number, on) {
    cell.dataset.t = tokenOf(number);
    cell.dataset.h = headOf(number);
    cell.toggleAttribute("data-on", on);
  }

  // Write a cell, and its row of the table.
  write(cell, k, number) {
    const { covered } = this;
    const [index, terms, offset] = this.rule(k);
    const on = !covered && number == this.state.number;
    this.mark(cell, number, on);
    cell.toggleAttribute("data-covered", covered);
    cell.textContent = covered ? "" : number;
    cell.ariaLabel = `${index}: ${covered ? "covered" : number}`;
    cell.ariaSelected = on;
    if (covered) return;
    cell.tabIndex = on ? 0 : -1;
    const texts = [index, number, `${terms} = ${offset}`];
    texts.forEach((text, j) => (this.table[k].cells[j].textContent = text));
  }

  // The index of the number that comes so late in the order of indices, and the sum of its strides.
  rule(k) {
    const { shape, strides } = this.made;
    const index = stridesOf(shape).map((count, axis) => Math.floor(k / count) % shape[axis]);
    const terms = index.map((i, axis) => `${i} · ${strides[axis]}`).join(" + ");
    return [inList(index), terms, this.order[k]];
  }

  // The same of the number in hand.
  find() {
    return this.rule(this.order.indexOf(this.made.memory.indexOf(this.state.number)));
  }

  // What the entries along the first axis hold: one head, one token, or a mixture.
  holds() {
    const { shape, memory } = this.made;
    if (shape.length == 1) return "all 24 are one row, drawn as two";
    const numbers = this.order.map((offset) => memory[offset]);
    const count = lengthOf(shape.slice(1));
    const parts = Array.from({ length: shape[0] }, () => numbers.splice(0, count));
    const what = shape.length == 3 ? "block" : "row";
    const one = (of) => (part) => distinct(part.map(of)).length == 1;
    const rising = parts.every((part) => part.every((n, i) => !i || part[i - 1] < n));
    const order = rising ? "" : ", out of order";
    if (parts.every(one(headOf))) return `each ${what} keeps to one head${order}`;
    if (parts.every(one(tokenOf))) return `each ${what} keeps to one token${order}`;
    const i = parts.findIndex((part) => !one(tokenOf)(part));
    const tokens = distinct(parts[i].map(tokenOf)).sort().join(", ");
    const heads = one(headOf)(parts[i]) ? "" : " of both heads";
    return `${what} [${i}] mixes tokens ${tokens}${heads}`;
  }

  // What the last press has made of the array.
  told() {
    const { keys } = this;
    const { number } = this.state;
    const { came, shape, strides } = this.made;
    const [index] = this.find();
    if (!keys.length) return `${number} of ${this.given.name} is at ${index}.`;
    const [{ label }, holds] = [this.presses.get(keys.at(-1)), this.holds()];
    const there = GOALS[this.given.name] == `${shape}${holds.slice(4)}` ? ": as asked" : "";
    const now = `${number} is at ${index}, and ${holds}${there}`;
    return `${label} is a ${came} with strides ${inList(strides)}; ${now}.`;
  }

  // At the edge of a block the arrows lead on to the next.
  beyond(key, cell) {
    const i = this.grids.findIndex((grid) => grid.flat().includes(cell));
    const next = this.grids[i + (key == "ArrowRight") - (key == "ArrowLeft")];
    const { t } = this.spots.get(cell);
    return !next || next == this.grids[i] ? cell : next[t].at(key == "ArrowRight" ? 0 : -1);
  }

  choose(cell) {
    if (this.covered) return;
    this.state.number = Number(cell.textContent);
    this.paint();
    const [index, terms, offset] = this.find();
    const where = `${terms} = ${offset}, its offset in memory.`;
    this.changed(`${this.state.number} is at ${index}: ${where}`);
  }

  // A covered cell is a guess.
  enter(cell) {
    if (!this.covered) return;
    const k = this.cells.indexOf(cell);
    const there = this.made.memory[this.order[k]];
    const no = `No, ${this.rule(k)[0]} holds ${there}: `;
    this.uncover(there == this.state.number ? "Right: " : no);
  }

  forms() {
    const known = [...this.presses.keys()];
    const fits = (text) => text.split(".").every((key) => known.includes(key));
    const listed = (text) => (fits(text) ? text : undefined);
    const presses = [listed, `some of ${known.join(", ")}, with dots between`];
    return { do: presses, number: oneOf(...this.given.memory) };
  }

  misfit({ do: pressed }) {
    const keys = pressed.split(".").filter(Boolean);
    return keys.reduce((found, key, i) => found || this.refused(key, keys.slice(0, i)), "");
  }
}

define("tl-strip", (element) => new Strip(element).wake("Link to this array"));
