// The Parsons problem: lines of code, some of them bugs, to be put in order.

import { all, define, report } from "../shared.js";
import { drag } from "./drag.js";

// The buttons of a line, of which the style sheet shows those that its list uses: the sign, the
// name, where it moves the line, and its button that has the focus then.
const BUTTONS = {
  add: ["+", "Add", (node, { program }) => program.append(node), "up"],
  up: ["↑", "Move up", (node) => node.previousElementSibling?.before(node), "up"],
  down: ["↓", "Move down", (node) => node.nextElementSibling?.after(node), "down"],
  out: ["×", "Take out", (node, { pool }) => pool.append(node), "add"],
};
const buttonOf = (node, name) => node.querySelector(`.tl-${name}`);
const textsOf = (list) => all(list, "li > code").map((line) => line.textContent);

class Parsons {
  solved = false; // once it was, it stays so

  constructor(element) {
    this.element = element;
    const [source, solution] = all(element, "pre");
    this.solution = solution.textContent.split("\n");
    this.reasons = all(element, "dd");
    [this.pool, this.program] = all(element, "ul, ol");
    [this.verdict, this.news] = all(element, "[aria-live]");
    this.pool.append(...all(source, "code").map((line) => this.itemOf(line)));
    source.remove();
    drag(element, [this.pool, this.program], (node) => this.settle(node));
    element.querySelector(".tl-row button").onclick = () => {
      this.judge();
      this.changed();
    };
    element.recall = (state) => this.recall(state);
    // JupyterLab takes a key pressed in an output for a command to the notebook, except here.
    element.dataset.lmSuppressShortcuts = "";
  }

  // A line with its handle and all its buttons.
  itemOf(line) {
    const [node, grip] = ["li", "span"].map((kind) => document.createElement(kind));
    // The buttons do by keys what the handle does.
    Object.assign(grip, { className: "tl-grip", textContent: "⠿", ariaHidden: true });
    const [add, ...others] = Object.entries(BUTTONS).map(([name, [textContent, label]]) => {
      const ariaLabel = `${label}: ${line.textContent.trim()}`;
      const look = { type: "button", className: `tl-${name}`, textContent, ariaLabel };
      const onclick = () => this.press(node, name);
      return Object.assign(document.createElement("button"), look, { onclick });
    });
    // What does not fit on a narrow screen goes on to the right of where the line begins.
    const hang = line.textContent.search(/\S/) + 2;
    line.style = `padding-left: ${hang}ch; text-indent: -${hang}ch`;
    line.onclick = () => this.pool.contains(line) && this.press(node, "add");
    node.append(grip, add, line, ...others);
    return node;
  }

  // Move a line; when it is added, the focus goes to one beside it, which can be added next.
  press(node, name) {
    const [, , move, focused] = BUTTONS[name];
    const beside = name == "add" && (node.nextElementSibling || node.previousElementSibling);
    move(node, this);
    buttonOf(beside || node, beside ? name : focused).focus();
    this.settle(node);
  }

  // What follows wherever a line was moved to.
  settle(node) {
    this.mark();
    this.verdict.textContent = "";
    this.changed();
    const lines = [...this.program.children];
    const place = lines.indexOf(node) + 1;
    this.news.textContent = place ? `Line ${place} of ${lines.length}` : "Taken out";
  }

  mark(wrong) {
    all(this.element, "li").forEach((node) => node.toggleAttribute("data-wrong", node == wrong));
  }

  // Say which line of the program is the first that is wrong, or how many are missing.
  judge() {
    const { solution } = this;
    const placed = all(this.program, "code");
    const wrong = placed.findIndex((line, i) => line.textContent != solution[i]);
    const bug = placed[wrong]?.dataset.why;
    const left = solution.length - placed.filter(({ dataset }) => dataset.place).length;
    const missing = left ? ` ${left == 1 ? "1 line is" : `${left} lines are`} missing.` : "";
    const first = placed.length ? "Every line so far is in its place." : "";
    const verdicts = {
      wrong: ["✗ Not yet.", `Line ${wrong + 1} is the first out of place.${missing}`],
      more: ["Not complete.", first + missing],
      right: ["✓ Right.", "Every line is in its place."],
    };
    const kind = wrong >= 0 ? "wrong" : left ? "more" : "right";
    const [start, rest] = verdicts[kind];
    this.mark(placed[wrong]?.parentNode);
    this.verdict.innerHTML = bug
      ? `Line ${wrong + 1}: ${this.reasons[bug].innerHTML}`
      : `<b class="tl-${kind}">${start}</b> ${rest}`;
    this.solved ||= kind == "right";
  }

  changed() {
    const { solved } = this;
    const [program, pool] = [this.program, this.pool].map(textsOf);
    const checked = this.verdict.textContent != "";
    report(this.element, { program, pool, solved, checked }, Number(solved), 1);
  }

  // Put lines back by their texts; a line that is new in this edition stays in the pool.
  recall(state) {
    const lists = [state?.program, state?.pool];
    if (!lists.every(Array.isArray)) return false;
    const [texts, left] = [lists.flat(), all(this.element, "li")];
    if (!textsOf(this.element).some((text) => texts.includes(text))) return false;
    const take = (text) => {
      const found = left.findIndex((node) => node.querySelector("code").textContent === text);
      return found < 0 ? [] : left.splice(found, 1);
    };
    const [program, pool] = lists.map((list) => list.flatMap(take));
    this.program.append(...program);
    this.pool.append(...pool, ...left);
    this.solved = state.solved === true && this.solution.every((line) => texts.includes(line));
    this.mark();
    this.verdict.textContent = "";
    if (state.checked) this.judge();
    return { done: Number(this.solved), of: 1 };
  }
}

define("tl-parsons", (element) => new Parsons(element));
