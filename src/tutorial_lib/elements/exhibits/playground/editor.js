// What a reader changes: a number is written, undone, reset, or comes with a link.

import { readings } from "../../readings.js";
import { all } from "../../shared.js";
import { sound } from "./layer.js";
import { address } from "./link.js";
import { origin } from "./origin.js";
import { Tables, fraction } from "./table.js";

const lineOf = (cell) => cell.closest(".tl-step").lastElementChild;

// The playground with its inputs now, those of the example, and those before each change.
export class Editor extends Tables {
  past = [];
  link = document.createElement("a");

  constructor(element) {
    super(element);
    this.mine = all(document, "tl-playground").indexOf(element);
    this.news = element.lastElementChild;
    this.rules = new Map(all(element, ".tl-sum").map((line) => [line, line.textContent]));
    this.first = this.read();
    this.paint(this.first);
  }

  paint(inputs) {
    this.inputs = inputs;
    const words = super.paint(inputs);
    this.link.href = address(this);
    return words;
  }

  // Write words into a line and speak them; the other lines say their rule again.
  say(line, words) {
    this.rules.forEach((rule, other) => {
      if (other == line) other.textContent = words;
      else if (!other.parentNode.querySelector("[aria-invalid=true]")) other.textContent = rule;
    });
    if (this.news.textContent != words) this.news.textContent = words;
  }

  choose(cell) {
    const { label, unit } = this.places.get(cell);
    const [lit, words] = origin(this, cell) || [];
    this.light(cell, lit);
    const equals = fraction(this.number(cell)) ? "=" : "≈";
    const sentence = lit
      ? `${label} = ${words} ${equals} ${this.shown(cell)}${unit}`
      : this.fault(cell) || `${cell.ariaLabel}. Enter changes it.`;
    this.say(lineOf(cell), sentence);
  }

  changed(cell, value) {
    const { name, h, t, j } = this.places.get(cell);
    const next = structuredClone(this.inputs);
    next[name][h][t][j] = value;
    return next;
  }

  // What is wrong with the text in a cell that is being written.
  fault(cell) {
    const input = cell.firstElementChild;
    if (!input) return;
    const [value] = readings(input.value);
    if (value === undefined) return `“${input.value}” is not a number. Write 2, −0.5 or 1/4.`;
    const fine = sound(this.changed(cell, value));
    if (!fine) return `${input.value} makes a number after it infinite.`;
  }

  change(cell, value) {
    this.past.push(this.inputs);
    const was = this.shown(cell);
    const followers = this.paint(this.changed(cell, value));
    const { label } = this.places.get(cell);
    this.say(lineOf(cell), `${label} was ${was}, is ${this.shown(cell)}. ${followers}`);
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
  }

  commit(cell) {
    const input = cell.firstElementChild;
    const wrong = this.fault(cell);
    input.ariaInvalid = Boolean(wrong);
    if (wrong) return this.say(lineOf(cell), wrong);
    const [value] = readings(input.value);
    this.close(cell);
    if (value != this.number(cell)) this.change(cell, value);
  }

  // Say what belongs to no cell, beside the buttons.
  tell(words) {
    const [controls] = this.rules.keys();
    this.light();
    this.say(controls, words);
  }

  undo() {
    if (!this.past.length) this.tell("There is nothing to undo.");
    else this.tell(`The last change is undone. ${this.paint(this.past.pop())}`);
  }

  differs(next) {
    return JSON.stringify(next) != JSON.stringify(this.inputs);
  }

  load(next, words) {
    if (this.differs(next)) this.past.push(this.inputs);
    this.tell(`${words} ${this.paint(next)}`);
  }
}
