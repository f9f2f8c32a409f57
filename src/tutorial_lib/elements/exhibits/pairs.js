// A grid of pairs, query down and key across, in which a reader draws a mask: by a click, by a
// stroke of the pointer, by keys.

import { all } from "../shared.js";
import { Exhibit } from "./exhibit.js";

const digitsOf = (keys) => Math.ceil(keys / 4);

// A mask is rows of 0 and 1. A link writes each row as digits of base 16, the first key foremost.
export const toHex = (mask) =>
  mask
    .map((row) => parseInt(row.join(""), 2).toString(16).padStart(digitsOf(row.length), "0"))
    .join("");

// The mask that a link has written, of so many keys.
export const fromHex = (text, keys) =>
  text
    .match(RegExp(`.{${digitsOf(keys)}}`, "g"))
    .map((row) => [...parseInt(row, 16).toString(2).padStart(keys, "0")].map(Number));

// The pairs on the straight line from one to another, both ends with it.
const lineTo = ([t, s], [u, v]) => {
  const steps = Math.max(Math.abs(u - t), Math.abs(v - s), 1);
  const on = (from, to, i) => Math.round(from + ((to - from) * i) / steps);
  return Array.from({ length: steps + 1 }, (_, i) => [on(t, u, i), on(s, v, i)]);
};

// An exhibit with such a grid. Each kind gives `redrawn`, what is said of pairs that were drawn; if
// some are not free, `barred`, which says why; and `point`, if it tells of what a mouse is over.
export class Pairs extends Exhibit {
  constructor(element) {
    super(element);
    const table = element.querySelector(".tl-mask");
    table.role = "grid";
    this.rows = [...table.tBodies[0].rows].map((row) => all(row, "td"));
    this.rove(this.rows);
    table.onpointerdown = (event) => this.begin(event);
    table.onpointermove = (event) => this.move(event);
    table.onpointerleave = () => this.point?.();
    table.onpointercancel = () => this.give();
    table.onclick = ({ target }) => this.click(target.closest("td"));
  }

  // Its state has no name of its own.
  restore(state) {
    Object.assign(this, state);
    this.paint();
  }

  // The place of a pair in its table, of which rows may be out of sight.
  at(cell) {
    return [cell.parentNode.sectionRowIndex, cell.cellIndex - 1];
  }

  enter(cell) {
    const [t, s] = this.at(cell);
    this.draw([[t, s]], 1 - this.mask[t][s]);
  }

  // Open or close pairs, those that are free.
  draw(places, to) {
    const free = places.filter((place) => !this.barred?.(place));
    if (!free.length) return this.say(this.barred(places.at(-1)));
    this.mask = structuredClone(this.mask);
    free.forEach(([t, s]) => (this.mask[t][s] = to));
    this.redrawn(free, to);
  }

  // A pointer that stays in one cell clicks it; one that leaves it paints, from there on.
  begin({ target, button }) {
    const cell = target.closest("td");
    this.stroke = undefined;
    if (button || !this.spots.has(cell)) return;
    const [t, s] = this.at(cell);
    this.stroke = { last: cell, to: 1 - this.mask[t][s] };
  }

  move({ clientX, clientY, buttons, pointerType }) {
    const cell = document.elementFromPoint(clientX, clientY)?.closest("td");
    if (pointerType == "mouse" && !buttons) this.point?.(this.spots.has(cell) ? cell : undefined);
    if (!buttons || !this.stroke) return;
    const { last, to, before = this.mask } = this.stroke;
    if (cell == last || !this.spots.has(cell)) return;
    this.stroke = { last: cell, to, before };
    this.draw(lineTo(this.at(last), this.at(cell)), to);
  }

  // The browser took the pointer to scroll: what it painted was not meant.
  give() {
    const before = this.stroke?.before;
    this.stroke = undefined;
    if (!before) return;
    this.mask = before;
    this.redrawn([]);
  }

  click(cell) {
    const painted = this.stroke?.before;
    this.stroke = undefined;
    if (painted || !this.spots.has(cell)) return;
    cell.focus();
    this.enter(cell);
  }
}
