// The playground: every array of the layer, below a map of them all. A number is written, undone,
// reset, or comes with a link.

import { readings } from "../../readings.js";
import { all, define } from "../../shared.js";
import { INPUTS, keyOf, staysFinite } from "../layer.js";
import { Tables } from "../tables.js";

const list = new Intl.ListFormat("en");
const lineOf = (cell) => cell.closest(".tl-step").lastElementChild;

// The playground with its inputs now, those of the example, and those before each change.
class Playground extends Tables {
  past = [];

  constructor(element) {
    super(element);
    this.buttons[0].onclick = () => this.undo();
    this.rules = new Map(all(element, ".tl-sum").map((line) => [line, line.textContent]));
  }

  canChange(cell) {
    return INPUTS.includes(this.places.get(cell).name);
  }

  sentence(cell) {
    const ask = this.canChange(cell) && `${cell.ariaLabel}. Enter changes it.`;
    return this.fault(cell) || ask || super.sentence(cell);
  }

  // A cell of the mask changes at once, another given number is opened; both where they are digits.
  enter(cell) {
    if (this.canChange(cell)) this.edit(this.cellBelow(cell));
  }

  click(target) {
    super.click(target);
    if (this.places.has(target) && !this.board.contains(target)) this.enter(target);
  }

  keyed(cell, { key, ctrlKey, metaKey }) {
    if (ctrlKey || metaKey) return key == "z" && (() => this.undo());
    const types = this.canChange(cell) && this.places.get(cell).name != "mask";
    if (types && /^[-−+.\d]$/.test(key)) return () => this.edit(this.cellBelow(cell), key);
  }

  // The cell of the tables that shows the number of a cell.
  cellBelow(cell) {
    return this.cells.get(keyOf(this.places.get(cell))).at(-1);
  }

  // What is wrong with the text in a cell that is being written.
  fault(cell) {
    const input = cell.firstElementChild;
    if (!input) return;
    const [value] = readings(input.value);
    if (value === undefined) return `“${input.value}” is not a number. Write 2, −0.5 or 1/4.`;
    const fine = staysFinite(this.changedTo(cell, value));
    if (!fine) return `${input.value} makes a number after it infinite.`;
  }

  // Open a cell, with what was typed on it; a cell of the mask changes at once.
  edit(cell, typed) {
    const number = this.number(cell);
    if (this.places.get(cell).name == "mask") return this.change(cell, 1 - number);
    if (cell.firstElementChild) return cell.firstElementChild.focus();
    const text = this.shown(cell);
    const input = document.createElement("input");
    Object.assign(input, { type: "text", autocomplete: "off", spellcheck: false });
    input.ariaLabel = `A number for ${this.places.get(cell).label}`;
    input.value = typed || (readings(text)[0] == number ? text : number);
    input.onblur = () => this.commit(cell);
    input.onkeydown = ({ key }) => {
      if (key == "Enter") this.commit(cell);
      if (key == "Escape") this.close(cell);
      if (!input.isConnected) cell.focus();
    };
    cell.replaceChildren(input);
    input.focus();
    if (!typed) input.select();
  }

  close(cell) {
    cell.firstElementChild.onblur = null;
    cell.textContent = this.shown(cell);
    lineOf(cell).textContent = this.rules.get(lineOf(cell));
  }

  // A wrong text waits in its cell, with its reason below.
  commit(cell) {
    const input = cell.firstElementChild;
    const wrong = this.fault(cell);
    input.ariaInvalid = Boolean(wrong);
    if (wrong) {
      lineOf(cell).textContent = wrong;
      return this.say(wrong);
    }
    const [value] = readings(input.value);
    this.close(cell);
    if (value != this.number(cell)) this.change(cell, value);
  }

  restore(next) {
    if (this.inputs && this.differs(next)) this.past.push(this.inputs);
    return super.restore(next);
  }

  undo() {
    if (!this.past.length) return this.say("There is nothing to undo.");
    const before = this.inputs;
    const followers = this.paint(this.past.pop());
    const back = this.since(before).map(([key]) => this.cells.get(key)[0]);
    const names = back.map((cell) => `${this.places.get(cell).label} is ${this.shown(cell)}`);
    const words = back.length > 3 ? `${back.length} numbers are as before` : list.format(names);
    this.tell(`${words} again. ${followers}`);
  }
}

define("tl-playground", (element) => new Playground(element).wake("Link to these numbers"));
