// The Parsons problem: lines of code, some of them bugs, to be put in order.

import { all, define, report } from "../shared.js";
import { handle } from "./drag.js";

// What follows wherever a line was moved to.
const settle = (puzzle, node) => {
  const { element, program, verdict, news } = puzzle;
  all(element, "[data-wrong]").forEach((marked) => delete marked.dataset.wrong);
  verdict.textContent = "";
  puzzle.changed();
  const place = all(program, "li").indexOf(node) + 1;
  news.textContent = place ? `Line ${place} of ${program.children.length}` : "Taken out";
};

// One button of a line. `move` does what it says and returns what has the focus then, if another.
const lineButton = (puzzle, node, [name, sign, label], move) => {
  const control = document.createElement("button");
  control.type = "button";
  // JupyterLab takes a key pressed in an output for a command to the notebook, except here.
  control.dataset.lmSuppressShortcuts = "";
  control.className = name;
  control.textContent = sign;
  control.ariaLabel = `${label}: ${node.querySelector("code").textContent.trim()}`;
  control.onclick = () => {
    const focus = move() || control;
    focus.focus();
    settle(puzzle, node);
  };
  return control;
};

// A line with all four buttons; the style sheet shows those that its list uses.
const codeLine = (puzzle, line) => {
  const { pool, program } = puzzle;
  const node = document.createElement("li");
  node.append(line);
  const act = (look, move) => lineButton(puzzle, node, look, move);
  const add = act(["tl-add", "+", "Add"], () => {
    const next = node.nextElementSibling || node.previousElementSibling;
    program.append(node);
    return next ? next.querySelector(".tl-add") : up;
  });
  const up = act(["tl-up", "↑", "Move up"], () => {
    node.previousElementSibling?.before(node);
  });
  const down = act(["tl-down", "↓", "Move down"], () => {
    node.nextElementSibling?.after(node);
  });
  const out = act(["tl-out", "×", "Take out"], () => {
    pool.append(node);
    return add;
  });
  // What does not fit on a narrow screen goes on to the right of where the line begins.
  const hang = line.textContent.search(/\S/) + 2;
  line.style = `padding-left: ${hang}ch; text-indent: -${hang}ch`;
  line.onclick = () => pool.contains(line) && add.click();
  node.prepend(handle(puzzle, node, () => settle(puzzle, node)), add);
  node.append(up, down, out);
  return node;
};

const judge = (puzzle) => {
  const { program, verdict, reasons, solution } = puzzle;
  const say = (kind, start, rest) => {
    verdict.innerHTML = `<b class="tl-${kind}">${start}</b> ${rest}`;
  };
  const placed = all(program, "code");
  const wrong = placed.findIndex((line, i) => line.textContent != solution[i]);
  placed.forEach((line, i) => line.parentNode.toggleAttribute("data-wrong", i == wrong));
  const bug = placed[wrong]?.dataset.why;
  const left = solution.length - placed.filter(({ dataset }) => dataset.place).length;
  const missing = left ? ` ${left == 1 ? "1 line is" : `${left} lines are`} missing.` : "";
  if (bug) {
    verdict.innerHTML = `Line ${wrong + 1}: ${reasons[bug].innerHTML}`;
  } else if (wrong >= 0) {
    say("wrong", "✗ Not yet.", `Line ${wrong + 1} is the first out of place.${missing}`);
  } else if (left) {
    const first = placed.length ? "Every line so far is in its place." : "";
    say("more", "Not complete.", first + missing);
  } else {
    say("right", "✓ Right.", "Every line is in its place.");
    puzzle.solved = true;
  }
};

const textsOf = (list) => all(list, "li > code").map((line) => line.textContent);

// Put lines back by their texts; a line that is new in this edition stays in the pool.
const recallLines = (puzzle, state) => {
  const { element, pool, program, verdict, solution } = puzzle;
  const lists = [state?.program, state?.pool];
  const left = all(element, "li");
  const known = textsOf(element);
  if (!lists.every(Array.isArray)) return false;
  const texts = lists.flat();
  if (!texts.some((text) => known.includes(text))) return false;
  const take = (text) => {
    const place = left.findIndex((node) => node.querySelector("code").textContent === text);
    return place < 0 ? [] : left.splice(place, 1);
  };
  const [first, rest] = lists.map((list) => list.flatMap(take));
  program.append(...first);
  pool.append(...rest, ...left);
  puzzle.solved = state.solved === true && solution.every((line) => texts.includes(line));
  verdict.textContent = "";
  if (state.checked) judge(puzzle);
  return { done: Number(puzzle.solved), of: 1 };
};

define("tl-parsons", (element) => {
  const [source] = all(element, "pre");
  const [pool, program] = all(element, "ul, ol");
  const [verdict, news] = all(element, "[aria-live]");
  const lines = all(source, "code");
  const solution = lines
    .filter(({ dataset }) => dataset.place)
    .sort((a, b) => a.dataset.place - b.dataset.place)
    .map((line) => line.textContent);
  source.remove();
  const bar = document.createElement("div");
  bar.className = "tl-drop";
  element.append(bar);
  const reasons = all(element, "dd");
  const puzzle = { element, pool, program, verdict, news, reasons, solution, bar };
  puzzle.solved = false; // once it was, it stays so
  puzzle.changed = () => {
    const { solved } = puzzle;
    const state = { program: textsOf(program), pool: textsOf(pool), solved };
    report(element, { ...state, checked: verdict.textContent != "" }, Number(solved), 1);
  };
  lines.forEach((line) => pool.append(codeLine(puzzle, line)));
  element.querySelector(".tl-row button").onclick = () => {
    judge(puzzle);
    puzzle.changed();
  };
  element.recall = (state) => recallLines(puzzle, state);
});
