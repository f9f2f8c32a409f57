// The live map: all that the layer makes of X, drawn; any cell shows what made it and what it
// reaches, and a number of X is raised and lowered.

import { all, define } from "../../shared.js";
import { numText } from "../numbers.js";
import { INPUTS, staysFinite } from "../layer.js";
import { Tables } from "../tables.js";

const RAISE = { ArrowUp: 1, ArrowDown: -1, "+": 1, "-": -1, "−": -1 };

class LiveMap extends Tables {
  constructor(element) {
    super(element);
    const [minus, plus] = this.buttons;
    this.onward = element.querySelector("a[data-playground]");
    this.home = this.onward?.getAttribute("href").split("#")[0];
    minus.onclick = () => this.raise(-1);
    plus.onclick = () => this.raise(1);
  }

  // Write the table below the map, and where the playground goes on with these numbers.
  tabulate() {
    const shown = Object.keys(this.values).filter((name) => name == "X" || !INPUTS.includes(name));
    const rows = shown.flatMap((name) => this.values[name].flat());
    const lines = this.bodies.at(-1);
    rows.forEach((row, i) => (lines[i].cells[1].textContent = row.map(numText).join(", ")));
    const given = this.toQuery().filter(([key]) => key != "cell");
    const query = new URLSearchParams([["playground", 0], ...given]);
    if (this.onward) this.onward.href = `${this.home}#${query}`;
  }

  paint(inputs) {
    const words = super.paint(inputs);
    this.tabulate();
    return words;
  }

  canChange(cell) {
    return cell && this.places.get(cell).name == "X";
  }

  // A number of X says how far it reaches.
  sentence(cell) {
    const place = this.places.get(cell);
    if (!this.canChange(cell)) return super.sentence(cell);
    const reached = all(this.board, "[data-array=Y] [data-reached]");
    const rows = new Set(reached.map((one) => one.parentNode.cells[0].textContent));
    const where = reached.length ? `, in the rows of ${[...rows].join(" and ")}` : "";
    const words = `One more would change ${reached.length || "none"} of the numbers of Y${where}.`;
    const held = cell == this.hand ? " In hand: ↑ and ↓ change it, Enter lets it go." : "";
    return `${place.label} is ${this.shown(cell)}. ${words}${held}`;
  }

  point(event) {
    if (!this.hand) super.point(event);
  }

  choose(cell) {
    if (cell != this.hand) this.take();
    super.choose(cell);
  }

  // Take a cell of X in hand, or let go.
  take(cell) {
    this.hand?.removeAttribute("data-hand");
    this.hand = cell;
    cell?.setAttribute("data-hand", "");
  }

  enter(cell) {
    if (!this.canChange(cell)) return this.choose(cell);
    this.take(cell == this.hand ? undefined : cell);
    this.show(cell);
  }

  keyed(cell, { key, ctrlKey, metaKey }) {
    if (ctrlKey || metaKey || !this.canChange(cell)) return;
    const free = "+-−".includes(key);
    if (RAISE[key] && (free || cell == this.hand)) return () => this.raise(RAISE[key]);
    if (key == "Escape" && this.hand) return () => this.enter(cell);
  }

  raise(by) {
    const cell = this.chosen;
    if (!this.canChange(cell)) return this.say("Choose a number of X first: those can be changed.");
    const value = this.number(cell) + by;
    if (staysFinite(this.changedTo(cell, value))) this.change(cell, value);
    else this.say("Further would make a number infinite.");
  }

  restart() {
    this.take();
    super.restart();
  }
}

define("tl-map", (element) => new LiveMap(element).wake("Link to this map"));
