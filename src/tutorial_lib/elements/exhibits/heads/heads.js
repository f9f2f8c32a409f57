// All attention maps of a model on one sentence. One picture has the pixels of all of them; over it
// lies a cell for each head, which a reader enlarges, and rings mark the heads of a group.

import { all, define } from "../../shared.js";
import { Exhibit, oneOf } from "../exhibit.js";

const PNG_END = 20; // bytes behind the pixels: a checksum of theirs, one of their chunk, the end

const decimal = (percent) => (percent / 100).toFixed(2);

// The pixels of a picture that is not compressed, row by row: a byte each, behind one for the row.
const pixelsOf = (style, width, height) => {
  const bytes = Uint8Array.from(atob(style.match(/base64,([^")]+)/)[1]), (c) => c.charCodeAt(0));
  const pixels = bytes.slice(-PNG_END - height * (width + 1), -PNG_END);
  return Array.from({ length: height }, (_, y) => pixels.subarray(y * (width + 1) + 1));
};

class Heads extends Exhibit {
  constructor(element) {
    super(element);
    this.atlas = element.querySelector(".tl-atlas");
    const sizeOf = (name) => Number(this.atlas.style.getPropertyValue(`--${name}`));
    [this.layers, this.heads, this.tokens] = ["layers", "heads", "keys"].map(sizeOf);
    this.table = element.querySelector(".tl-large");
    this.title = this.table.querySelector("b");
    this.about = element.querySelector(".tl-group");
    this.none = this.about.textContent;
    const rows = all(element, ".tl-numbers tbody tr");
    this.groups = new Map(rows.map(({ cells: [name, about, heads] }) => [
      name.textContent,
      { about: about.innerHTML, heads: heads.textContent.split(", ") },
    ]));
    this.switches = this.buttons.slice(0, -1);
    this.resets("The maps are as they were: one is large, no group is ringed.");
    this.names = all(this.table, "tbody th").map((name) => name.textContent);
    this.first = { head: this.title.textContent.match(/\d+/g).join("."), group: "" };
  }

  // Say to keys and to screen readers what can be chosen, and listen.
  listen() {
    const picture = this.element.querySelector(".tl-maps");
    const side = this.tokens + 1;
    const sizes = [side * this.heads, side * this.layers];
    this.pixels = pixelsOf(picture.style.maskImage, ...sizes);
    const board = document.createElement("div");
    Object.assign(board, { role: "grid", ariaLabel: "Maps", className: "tl-over" });
    const row = `<span role="row">${'<span role="gridcell"></span>'.repeat(this.heads)}</span>`;
    board.innerHTML = row.repeat(this.layers);
    const lines = [...board.children].map((line) => [...line.children]);
    const pairs = lines.map((cells, layer) => cells.map((cell, h) => [`${layer}.${h}`, cell]));
    this.cells = new Map(pairs.flat());
    picture.after(board);
    this.table.role = "grid";
    this.weights = [...this.table.tBodies[0].rows].map((row) => all(row, "td"));
    this.rove(lines);
    this.rove(this.weights);
    board.onclick = this.table.onclick = ({ target }) => this.click(target);
    this.table.onpointerover = ({ target, pointerType }) =>
      pointerType == "mouse" && this.spots.has(target) && this.choose(target);
    this.switches.forEach((button) => (button.onclick = () => this.ring(button.textContent)));
  }

  // A weight of a head in percent, -1 where the key is hidden.
  weight(head, t, s) {
    const [down, right] = head.split(".").map((place) => (this.tokens + 1) * place);
    return this.pixels[down + t][right + s] - 1;
  }

  paint() {
    const { head, group } = this.state;
    const [layer, h] = head.split(".");
    this.title.textContent = `Layer ${layer}, head ${h}`;
    this.weights.forEach((row, t) => row.forEach((cell, s) => this.write(cell, t, s)));
    const { about = this.none, heads = [] } = this.groups.get(group) ?? {};
    this.about.innerHTML = about;
    this.switches.forEach((one) => (one.ariaPressed = one.textContent == group));
    this.atlas.toggleAttribute("data-ringed", Boolean(group));
    this.cells.forEach((cell, name) => {
      cell.ariaLabel = this.titleOf(name);
      cell.ariaSelected = name == head;
      cell.toggleAttribute("data-on", heads.includes(name));
    });
  }

  // Draw a weight as a tint and a number.
  write(cell, t, s) {
    const percent = this.weight(this.state.head, t, s);
    if (percent < 0) return (cell.ariaLabel = "hidden");
    cell.style.setProperty("--n", percent);
    cell.firstElementChild.textContent = percent || "";
    cell.ariaLabel = decimal(percent);
  }

  // The name of a head, and the groups that it is in.
  titleOf(name) {
    const [layer, head] = name.split(".");
    const groups = [...this.groups].filter(([, { heads }]) => heads.includes(name));
    const words = groups.length ? ` (${groups.map(([group]) => group).join(", ")})` : "";
    return `Layer ${layer}, head ${head}${words}`;
  }

  // The name of the cell of a head.
  nameOf(cell) {
    return [...this.cells].find(([, one]) => one == cell)?.[0];
  }

  // What is told of a cell: the name of a head, or a weight.
  choose(cell) {
    const name = this.nameOf(cell);
    if (name == this.state.head) return this.say(this.headText());
    if (name) return this.say(`${this.titleOf(name)}: Enter enlarges it.`);
    const { t, j: s } = this.spots.get(cell);
    const percent = this.weight(this.state.head, t, s);
    const [query, key] = [this.names[t], this.names[s]].map((token) => `“${token}”`);
    const late = `${key} is after ${query}, so it is hidden.`;
    this.say(percent < 0 ? late : `${query} gives ${key} a weight of ${decimal(percent)}.`);
  }

  enter(cell) {
    const head = this.nameOf(cell);
    if (head) this.change({ head }, () => this.headText());
  }

  click(cell) {
    if (!this.spots.has(cell)) return;
    cell.focus();
    this.enter(cell);
  }

  // Name the large map, and where the last query attends most.
  headText() {
    const { head } = this.state;
    const row = this.names.map((_, s) => this.weight(head, this.tokens - 1, s));
    const most = Math.max(...row);
    const [query, key] = [this.names.at(-1), this.names[row.indexOf(most)]];
    return `${this.titleOf(head)}: “${query}” gives the most, ${decimal(most)}, to “${key}”.`;
  }

  // Ring the heads of a group, or none where it was ringed.
  ring(name) {
    this.change({ group: name == this.state.group ? "" : name }, () => this.groupText());
  }

  groupText() {
    const { group } = this.state;
    const count = this.groups.get(group)?.heads.length;
    const words = `${count} of ${this.cells.size} heads are ringed: those of the group ${group}.`;
    return group ? words : this.none;
  }

  forms() {
    const heads = [...this.cells.keys()];
    const known = (text) => (heads.includes(text) ? text : undefined);
    const head = [known, `a layer and a head, from 0.0 to ${heads.at(-1)}`];
    return { head, group: oneOf(...this.groups.keys()) };
  }

  told() {
    return this.state.group ? this.groupText() : this.headText();
  }
}

define("tl-heads", (element) => new Heads(element).wake("Link to this map"));
