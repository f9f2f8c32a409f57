// The map as a picture: lines from a chosen cell to those that made it and to those that it goes
// into, and the way from one array to its neighbour.

import { all } from "../shared.js";

const centre = ({ left, right, top, bottom }) => [(left + right) / 2, (top + bottom) / 2];

// The arrays whose numbers a number goes into at once.
const NEXT = {
  X: ["Q", "K", "V"],
  Q: ["scores"],
  K: ["scores"],
  V: ["heads"],
  scores: ["weights"],
  weights: ["heads"],
  heads: ["concat"],
  concat: ["Y"],
};
const nameOf = (cell) => cell.closest("table").dataset.array.split(".")[0];

const inkOf = (cell) => /tl-head-\d/.exec(cell.closest("div").className) || "";

// A line between two points of the page; one that stays level is bent past what lies between.
const wirePath = ([x, y], [endX, endY], ink) => {
  const level = Math.abs(endY - y) < 8 && 12 + Math.abs(endX - x) / 12;
  const half = (y + endY) / 2 - level;
  return `<path class="${ink}" d="M${x} ${y}C${x} ${half} ${endX} ${half} ${endX} ${endY}"/>`;
};

// At rest: from X to the heads, and from the heads to their halves of concat.
const restWires = (board) => {
  const [X, concat] = ["X", "concat"].map((name) =>
    all(board, `[data-array=${name}] td[tabindex]`).map((cell) => cell.getBoundingClientRect())
  );
  const panels = all(board, ".tl-panel").map((panel) => panel.getBoundingClientRect());
  // Where one head lies below the other, the way is plain without lines.
  if (panels[0].top != panels[1].top) return [];
  return panels.flatMap((panel, h) => {
    const [x] = centre(panel);
    const half = concat[1 + 4 * h];
    return [
      wirePath([X[19].right, X[19].bottom], [x, panel.top], `tl-head-${h}`),
      wirePath([x, panel.bottom], [half.right, half.top], `tl-head-${h}`),
    ];
  });
};

// Draw the lines of the cell of the map among those that show a number; of none, the way of all.
export const drawWires = (board, cells = []) => {
  const svg = board.querySelector("svg");
  const { left, top, width, height } = board.getBoundingClientRect();
  const cell = cells.find((one) => board.contains(one));
  const next = (cell && NEXT[nameOf(cell)]) || [];
  const at = (one) => centre(one.getBoundingClientRect());
  const lines = all(board, "[data-lit], [data-reached]")
    .filter((end) => "lit" in end.dataset || next.includes(nameOf(end)))
    .map((end) => wirePath(at(end), at(cell), inkOf(end) || inkOf(cell)));
  svg.setAttribute("viewBox", [left, top, width, height]);
  svg.innerHTML = (cell ? lines : restWires(board)).join("");
};

const AWAY = {
  ArrowUp: ([x, y]) => [-y, x],
  ArrowDown: ([x, y]) => [y, x],
  ArrowLeft: ([x, y]) => [-x, y],
  ArrowRight: ([x, y]) => [x, y],
};

// The nearest cell to which an arrow points from another, or that cell.
export const neighbour = (key, cell, cells) => {
  const [x, y] = centre(cell.getBoundingClientRect());
  const side = cell.offsetWidth / 2;
  const far = cells.map((other) => {
    const [endX, endY] = centre(other.getBoundingClientRect());
    const [ahead, aside] = AWAY[key]?.([endX - x, endY - y]) || [];
    return ahead > side ? ahead + 2 * Math.abs(aside) : Infinity;
  });
  const nearest = Math.min(...far);
  return nearest < Infinity ? cells[far.indexOf(nearest)] : cell;
};
