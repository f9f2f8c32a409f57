// The numbers of a layer in tables and on a map: where each cell stands, what it shows, what made
// its number and what that number reaches.

import { all } from "../shared.js";
import { Exhibit } from "./exhibit.js";
import { INPUTS, keyOf, layer, reach, replaced, staysFinite } from "./layer.js";
import { fraction, strength, numText } from "./numbers.js";
import { origin } from "./origin.js";
import { drawWires, neighbour } from "./wires.js";

const SPOKEN = ["hidden", "may look"];

// An exhibit of one state of the layer: its inputs and all that they make. A number may stand in
// several cells, on the map and in its table.
export class Tables extends Exhibit {
  places = new Map();
  cells = new Map();
  values = {};

  constructor(element) {
    super(element);
    this.board = element.querySelector(".tl-board");
    this.rove(...all(this.board, "table").map((table) => this.add(table)));
    all(element, ".tl-grids table").forEach((table) => this.rove(this.add(table)));
    this.first = this.given;
    this.reset.onclick = () => this.restart();
    element.onclick = ({ target }) => this.click(target);
    this.board.onpointermove = (event) => this.point(event);
    this.board.onpointerleave = () => this.point({});
    new ResizeObserver(() => this.wire()).observe(this.board);
  }

  // Read where the cells of a table stand; the answer is its rows.
  add(table) {
    const { array, unit } = table.dataset;
    const [name, h = 0] = array.split(".");
    const title = array.replace(".", ", head ");
    const [top, ...rows] = table.rows;
    const lines = rows.map((line) => all(line, "td"));
    const quiet = this.board.contains(table);
    table.role = "grid";
    table.ariaHidden = null;
    table.ariaLabel = title;
    table.ariaReadOnly = !INPUTS.includes(name);
    lines.forEach((cells, t) =>
      cells.forEach((cell, j) => {
        const heads = [rows[t].cells[0], top.cells[j + 1]].map((head) => head.textContent);
        const label = [title, ...heads].join(", ");
        const place = { name, h: Number(h), t, j, label, unit: unit ? ` ${unit}` : "", quiet };
        this.places.set(cell, place);
        this.cells.set(keyOf(place), [...(this.cells.get(keyOf(place)) || []), cell]);
      })
    );
    return lines;
  }

  number(cell) {
    const { name, h, t, j } = this.places.get(cell);
    return this.values[name][h][t][j];
  }

  shown(cell) {
    const number = this.number(cell);
    return this.places.get(cell).name == "mask" ? "·✓"[number] : numText(number);
  }

  // The inputs with another number in a cell.
  changedTo(cell, value) {
    const place = this.places.get(cell);
    return { ...this.inputs, [place.name]: replaced(this.inputs[place.name], place, value) };
  }

  restore(inputs) {
    return this.paint(inputs);
  }

  // Show other inputs; the answer says which numbers followed.
  paint(inputs) {
    const before = this.values;
    this.inputs = inputs;
    this.values = { ...inputs, ...layer(inputs) };
    this.known = new Map();
    const moved = {};
    this.cells.forEach((cells) => {
      const { name, h, t, j } = this.places.get(cells[0]);
      const change = Math.abs(this.number(cells[0]) - (before[name]?.[h][t][j] ?? NaN)) > 1e-12;
      if (change && !INPUTS.includes(name)) moved[name] = (moved[name] || 0) + 1;
      cells.forEach((cell) => this.write(cell, change));
    });
    const names = Object.keys(this.values).filter((name) => moved[name]);
    const counts = names.map((name) => `${moved[name]} of ${name}`);
    return `Numbers that follow: ${counts.join(", ") || "none"}.`;
  }

  // What has changed is shown at the cell, and told to the page.
  change(cell, value) {
    const was = this.shown(cell);
    const followers = this.restore(this.changedTo(cell, value));
    this.light(cell);
    this.changed(`${this.places.get(cell).label} was ${was}, is ${this.shown(cell)}. ${followers}`);
  }

  // Say what belongs to no cell.
  tell(words) {
    this.chosen = undefined;
    this.light();
    this.changed(words);
  }

  restart() {
    this.tell(`The example's own numbers are back. ${this.restore(this.first)}`);
  }

  // Write a cell's number, as a tint and as text.
  write(cell, change) {
    const { name, t, j, label, unit, quiet } = this.places.get(cell);
    const number = this.number(cell);
    const hidden = ["scores", "weights"].includes(name) && !this.values.mask[0][t][j];
    cell.toggleAttribute("data-moved", change);
    cell.toggleAttribute("data-minus", number < -1e-12);
    cell.toggleAttribute("data-hidden", hidden);
    cell.style.setProperty("--n", `${strength(name, number)}%`);
    const text = this.shown(cell);
    const spoken = name == "mask" ? SPOKEN[number] : text + unit;
    cell.ariaLabel = `${label}: ${spoken}${hidden ? ", hidden by the mask" : ""}`;
    if (!quiet && !cell.firstElementChild) cell.textContent = text;
  }

  // What is said of a cell: of a number that was made, the sum.
  sentence(cell) {
    const { label, unit } = this.places.get(cell);
    const [[only] = [], words] = origin(this.values, this.places.get(cell)) || [];
    if (!only) return "";
    const equals = fraction(this.number(cell)) ? "=" : "≈";
    const sum = words ?? this.places.get(this.cells.get(keyOf(only))[0]).label;
    return `${label} = ${sum} ${equals} ${this.shown(cell)}${unit}`;
  }

  // The keys that a number reaches, which are reckoned once for each state.
  reached(key) {
    if (!this.known.has(key)) {
      this.known.set(key, reach(this.values, this.places.get(this.cells.get(key)[0])));
    }
    return this.known.get(key);
  }

  // Light a cell, what made it, what it reaches and, on the map, all that reaches it; without one,
  // nothing.
  light(cell) {
    const place = this.places.get(cell);
    const key = cell && keyOf(place);
    const [from = []] = origin(this.values, place) || [];
    const lit = new Set(from.map(keyOf));
    const reached = cell ? this.reached(key) : lit;
    this.cells.forEach((cells, other) => {
      const before = from.length && this.board.contains(cells[0]) && this.reached(other).has(key);
      cells.forEach((one) => {
        one.toggleAttribute("data-lit", lit.has(other));
        one.toggleAttribute("data-reached", reached.has(other));
        one.toggleAttribute("data-before", Boolean(before));
        one.ariaSelected = key == other;
      });
    });
    this.lit = this.cells.get(key);
    this.board.toggleAttribute("data-busy", Boolean(cell));
    this.wire();
  }

  wire() {
    drawWires(this.board, this.lit);
  }

  show(cell) {
    this.light(cell);
    this.say(this.sentence(cell));
  }

  choose(cell) {
    if (cell == this.chosen) return;
    this.chosen = cell;
    this.show(cell);
    this.relink();
  }

  // A mouse on a cell of the map shows it and chooses nothing; off it, the chosen one is shown.
  point({ target, pointerType }) {
    const cell = pointerType == "mouse" && this.places.has(target) ? target : undefined;
    if (cell == this.pointed) return;
    this.pointed = cell;
    if (cell || this.chosen) this.show(cell || this.chosen);
  }

  click(target) {
    if (!this.places.has(target)) return;
    target.focus();
    this.show(target);
  }

  beyond(key, cell) {
    return this.board.contains(cell) ? neighbour(key, cell, this.spots.get(cell).cells) : cell;
  }

  // The given numbers that differ from those of other inputs.
  since(inputs) {
    return [...this.cells].flatMap(([key, [cell]]) => {
      const { name, h, t, j } = this.places.get(cell);
      const number = this.inputs[name]?.[h][t][j];
      return number == inputs[name]?.[h][t][j] ? [] : [[key, number]];
    });
  }

  toQuery() {
    const chosen = this.chosen ? [["cell", keyOf(this.places.get(this.chosen))]] : [];
    return [...chosen, ...this.since(this.first)];
  }

  // What is wrong with an entry of a state, if anything.
  strange(key, text) {
    const chooses = key == "cell";
    const [named, wanted] = chooses ? [text, "Y.0.2.4"] : [key, "X.0.2.1"];
    const { name } = this.places.get(this.cells.get(named)?.[0]) || {};
    const free = chooses ? name : INPUTS.includes(name);
    if (!free) return `“${named}” cannot be set; expected a place such as ${wanted}.`;
    if (chooses) return;
    const [form, expected] = name == "mask" ? [/^[01]$/, "0 or 1"] : [/\d/, "a number"];
    const fits = form.test(text) && isFinite(text);
    if (!fits) return `${key} is “${text}”; expected ${expected}.`;
  }

  applyQuery(entries) {
    const pairs = [...entries];
    const wrong = pairs.map(([key, text]) => this.strange(key, text)).find(Boolean);
    if (wrong) return wrong;
    const next = structuredClone(this.first);
    const [, chosen] = pairs.findLast(([key]) => key == "cell") || [];
    pairs.forEach(([key, text]) => {
      const [name, h, t, j] = key.split(".");
      if (key != "cell") next[name][h][t][j] = Number(text);
    });
    if (!staysFinite(next)) return "these numbers make another infinite; expected smaller ones.";
    if (this.differs(next)) this.restore(next);
    [this.chosen] = this.cells.get(chosen) || [];
    this.light(this.chosen);
  }

  told() {
    return this.chosen ? this.sentence(this.chosen) : "The numbers of the link are here.";
  }

  differs(next) {
    return JSON.stringify(next) != JSON.stringify(this.inputs);
  }
}
