// The strip of memory: an array of 24 numbers as blocks, and below it the line in which they lie.
// An array is that line and a rule: a stride for each axis. A swap changes the rule; so does a
// reshape, if one stride for each axis still suffices, and else it writes a line of its own.

import { all, define } from "../../shared.js";
import { Exhibit } from "../exhibit.js";

const MOST_PRESSES = 12;
const GOALS = { product: "2,3,4 block keeps to one head", cut: "3,8 row keeps to one token" };

const lengthOf = (shape) => shape.reduce((a, b) => a * b, 1);
const countsBehind = (shape) => shape.map((_, axis) => lengthOf(shape.slice(axis + 1)));
const tupled = (numbers) => `(${numbers.join(", ")}${numbers.length == 1 ? "," : ""})`;
const bracketed = (numbers) => `[${numbers.join(", ")}]`;
const distinct = (values) => [...new Set(values)];
const itsToken = (number) => Math.floor(number / 10);
const itsHead = (number) => Math.floor((number % 10) / 4);

// The offsets of an array's numbers, in the order of its indices: the last index runs fastest.
const offsetsOf = ({ shape, strides }) =>
  shape.reduce((found, length, axis) => {
    return found.flatMap((offset) => Array.from({ length }, (_, i) => offset + i * strides[axis]));
  }, [0]);

const reshapedArray = (array, shape) => {
  const order = offsetsOf(array);
  const rule = { shape, strides: countsBehind(shape).map((count) => order[count]) };
  // A view, if these strides read the numbers in the same order as before.
  if (`${offsetsOf(rule)}` == `${order}`) return { ...array, ...rule, came: "view" };
  const memory = order.map((offset) => array.memory[offset]);
  return { memory, shape, strides: countsBehind(shape), came: "copy", own: true };
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
    this.begins = JSON.parse(element.querySelector("[data-given]").dataset.given);
    const rows = all(element, ".tl-row").map((row) => all(row, "button"));
    this.presses = new Map(rows[0].map(pressOf));
    [this.guessing, this.show, this.undo, this.reset] = rows[1];
    this.code = element.querySelector(".tl-made > code");
    this.blocks = element.querySelector(".tl-blocks");
    this.facts = all(element, "dd");
    this.sum = element.querySelector(".tl-facts + p");
    this.line = all(element, ".tl-memory > div");
    this.table = all(element.querySelector("tbody:has(th)"), "tr");
    this.fromQuery([]);
    this.listen();
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
      this.uncover(this.state.keys.pop() ? "Undone: " : "There is nothing to undo: ");
      this.changed();
    };
    this.reset.onclick = () => {
      this.fromQuery([]);
      this.changed(`${this.begins.name} is as it was.`);
    };
    this.blocks.onclick = ({ target }) => {
      if (!this.spots.has(target)) return;
      target.focus();
      this.enter(target);
    };
  }

  // What NumPy makes of so many presses.
  after(keys) {
    return keys.reduce((array, key) => this.presses.get(key).act(array), this.begins);
  }

  // Why a press cannot come after others, if it cannot.
  refused(key, keys) {
    const { label, axes } = this.presses.get(key);
    const { shape } = this.after(keys);
    if (axes > shape.length) return `${label} needs ${axes} axes; the shape is ${tupled(shape)}.`;
    const words = `${MOST_PRESSES} presses are the most; expected Undo or Reset.`;
    return keys.length == MOST_PRESSES ? words : "";
  }

  operate(key) {
    const { keys, number } = this.state;
    const why = this.refused(key, keys);
    if (why) return this.say(`${why} Nothing has changed.`);
    keys.push(key);
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
      table.ariaLabel = shape.length == 3 ? bracketed([i]) : "the array";
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

  paint() {
    const { keys, number } = this.state;
    this.made = this.after(keys);
    const { shape, strides, came = "–", memory, own } = this.made;
    this.frame(shape);
    this.order = offsetsOf(this.made);
    this.cells.forEach((cell, k) => this.write(cell, k, memory[this.order[k]]));
    const labels = keys.map((key) => this.presses.get(key).label);
    this.code.textContent = [this.begins.name, ...labels].join(".");
    const facts = [tupled(shape), bracketed(strides), came, own ? "a new line" : "product’s line"];
    this.facts.forEach((dd, i) => (dd.textContent = this.covered && i ? "?" : facts[i]));
    const bar = ({ button }, key) => (button.ariaDisabled = this.refused(key, keys) ? true : null);
    this.presses.forEach(bar);
    this.relink();
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
    cell.dataset.t = itsToken(number);
    cell.dataset.h = itsHead(number);
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
    const index = countsBehind(shape).map((count, axis) => Math.floor(k / count) % shape[axis]);
    const terms = index.map((i, axis) => `${i} · ${strides[axis]}`).join(" + ");
    return [bracketed(index), terms, this.order[k]];
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
    if (parts.every(one(itsHead))) return `each ${what} keeps to one head${order}`;
    if (parts.every(one(itsToken))) return `each ${what} keeps to one token${order}`;
    const i = parts.findIndex((part) => !one(itsToken)(part));
    const tokens = distinct(parts[i].map(itsToken)).sort().join(", ");
    const heads = one(itsHead)(parts[i]) ? "" : " of both heads";
    return `${what} [${i}] mixes tokens ${tokens}${heads}`;
  }

  // What the last press has made of the array.
  told() {
    const { keys, number } = this.state;
    const { came, shape, strides } = this.made;
    const [index] = this.find();
    if (!keys.length) return `${number} of ${this.begins.name} is at ${index}.`;
    const [{ label }, holds] = [this.presses.get(keys.at(-1)), this.holds()];
    const there = GOALS[this.begins.name] == `${shape}${holds.slice(4)}` ? ": as asked" : "";
    const now = `${number} is at ${index}, and ${holds}${there}`;
    return `${label} is a ${came} with strides ${bracketed(strides)}; ${now}.`;
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

  toQuery() {
    const { keys, number } = this.state;
    const pressed = keys.length ? [["do", keys.join(".")]] : [];
    return number == this.begins.number ? pressed : [...pressed, ["number", number]];
  }

  // What is wrong with an entry of a state, if anything.
  strange(key, text) {
    const numbers = this.begins.memory.map(String);
    if (key == "number" && !numbers.includes(text))
      return `number is “${text}”; expected one of ${numbers.join(", ")}.`;
    if (key == "number") return "";
    if (key != "do") return `“${key}” cannot be set; expected do or number.`;
    const [keys, known] = [text.split("."), [...this.presses.keys()]];
    const none = keys.find((one) => !known.includes(one));
    if (none !== undefined) return `do has “${none}”; expected ${known.join(", ")}.`;
    return keys.reduce((found, one, i) => found || this.refused(one, keys.slice(0, i)), "");
  }

  fromQuery(entries) {
    const given = [...entries];
    const wrong = given.map(([key, text]) => this.strange(key, text)).find(Boolean);
    if (wrong) return wrong;
    const { do: pressed, number = this.begins.number } = Object.fromEntries(given);
    this.state = { keys: pressed?.split(".") ?? [], number: Number(number) };
    this.covered = false;
    this.paint();
  }

  announce() {
    this.say(this.told());
  }
}

define("tl-strip", (element) => new Strip(element).addLink("Link to this array"));
