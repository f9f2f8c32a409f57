// The tables: where each cell stands, the number that it shows, and which cells made that number.

import { readings } from "../../readings.js";
import { all } from "../../shared.js";
import { layer } from "./layer.js";

const INPUTS = ["X", "W_Q", "W_K", "W_V", "W_O", "mask", "scale"];

// A number as a fraction, if it is one with a denominator up to 1000 and is short to write.
export const fraction = (value) => {
  for (let bottom = 1; bottom <= 1000; bottom++) {
    const top = Math.round(value * bottom);
    if (Math.abs(value - top / bottom) <= 1e-13 * Math.max(1, Math.abs(value))) {
      const text = bottom > 1 ? `${top}/${bottom}` : `${top}`;
      return text.length < 9 && text;
    }
  }
};
const decimals = (value) => (Math.abs(value) < 1e5 ? value.toFixed(4) : value.toExponential(3));

// A number as a cell shows it: a fraction, or else four decimals.
export const written = (value) => (fraction(value) || decimals(value)).replace("-", "−");

// The tables of a playground, with the numbers of one state: its inputs and all that they make.
export class Tables {
  // By name, for each head: its rows of cells, and of numbers.
  cells = {};
  values = {};
  places = new Map();

  constructor(element) {
    all(element, "table").forEach((table) => this.add(table));
  }

  add(table) {
    const [title, unit] = [...table.caption.childNodes].map((node) => node.textContent.trim());
    const [name] = title.split(",");
    const given = INPUTS.includes(name);
    const [top, ...rows] = table.rows;
    const lines = rows.map((line) => all(line, "td"));
    const h = (this.cells[name] ??= []).push(lines) - 1;
    table.role = "grid";
    table.ariaReadOnly = !given;
    lines.forEach((cells, t) =>
      cells.forEach((cell, j) => {
        const heads = [rows[t].cells[0], top.cells[j + 1]].map((head) => head.textContent);
        const label = [title, ...heads].join(", ");
        this.places.set(cell, { table, name, given, h, t, j, label, unit: unit ? ` ${unit}` : "" });
        cell.tabIndex = t + j ? -1 : 0;
      })
    );
  }

  // The inputs as the page has them.
  read() {
    const number = ({ textContent }) =>
      ({ "✓": 1, "·": 0 })[textContent] ?? readings(textContent)[0];
    const matrix = (lines) => lines.map((cells) => cells.map(number));
    return Object.fromEntries(INPUTS.map((name) => [name, this.cells[name].map(matrix)]));
  }

  number(cell) {
    const { name, h, t, j } = this.places.get(cell);
    return this.values[name][h][t][j];
  }

  shown(cell) {
    const number = this.number(cell);
    return this.places.get(cell).name == "mask" ? "·✓"[number] : written(number);
  }

  // The rows of an array's head; one that all heads share stands once.
  grid(name, h) {
    return this.cells[name][h] || this.cells[name][0];
  }

  // Show other inputs; the answer says which numbers followed.
  paint(inputs) {
    const before = this.values;
    this.values = { ...inputs, ...layer(inputs) };
    const moved = {};
    this.places.forEach(({ name, given, h, t, j, label, unit }, cell) => {
      const change = Math.abs(this.number(cell) - (before[name]?.[h][t][j] ?? NaN));
      cell.toggleAttribute("data-moved", change > 1e-12);
      if (change > 1e-12 && !given) moved[name] = (moved[name] || 0) + 1;
      const hidden = name == "scores" && !this.values.mask[0][t][j];
      cell.toggleAttribute("data-hidden", hidden);
      const text = this.shown(cell);
      const spoken = { "✓": "may look", "·": "hidden" }[text] || text + unit;
      cell.ariaLabel = `${label}: ${spoken}${hidden ? ", hidden by the mask" : ""}`;
      if (!cell.firstElementChild) cell.textContent = text;
    });
    const counts = Object.entries(moved).map(([name, count]) => `${count} of ${name}`);
    return `Numbers that follow: ${counts.join(", ") || "none"}.`;
  }

  // Mark a cell as chosen and others as what made it; without a cell, nothing is marked.
  light(cell, lit = []) {
    this.chosen = cell;
    this.places.forEach(({ table }, other) => {
      other.toggleAttribute("data-lit", lit.includes(other));
      other.ariaSelected = other == cell;
      if (table == this.places.get(cell)?.table) other.tabIndex = other == cell ? 0 : -1;
    });
  }
}
