// What made a number: the cells that it was computed from, and the sum as text.

import { written } from "./table.js";

const factor = (tables, cell) =>
  tables.number(cell) < 0 ? `(${tables.shown(cell)})` : tables.shown(cell);

const sum = (tables, left, right) =>
  left.map((cell, i) => `${factor(tables, cell)}·${factor(tables, right[i])}`).join(" + ");

const product = (A, B) => (tables, { h, t, j }) => {
  const left = tables.grid(A, h)[t];
  const right = tables.grid(B, h).map((cells) => cells[j]);
  return [[...left, ...right], sum(tables, left, right)];
};

const scored = (tables, { h, t, j }) => {
  const [query, key] = [tables.grid("Q", h)[t], tables.grid("K", h)[j]];
  const [[scale]] = tables.grid("scale", 0);
  return [
    [...query, ...key, scale],
    `2·(${sum(tables, query, key)}) / ${factor(tables, scale)}`,
  ];
};

const weighed = (tables, { h, t, j }) => {
  const [scores, mask] = [tables.grid("scores", h)[t], tables.grid("mask", 0)[t]];
  const number = (cell) => tables.number(cell);
  const seen = scores.filter((_, s) => number(mask[s])).map(number);
  const top = Math.max(...seen);
  // Less the largest score where powers of 2 are too long to read: the weights are the same.
  const shift = Math.abs(top) > 40 ? top : 0;
  const power = (score) => written(2 ** (score - shift));
  const words = `${power(number(scores[j]))} / (${seen.map(power).join(" + ")})`;
  return [[...scores, ...mask], number(mask[j]) ? words : "nothing, since the mask hides it"];
};

const moved = (tables, { t, j }) => {
  const width = tables.grid("heads", 0)[t].length;
  const cell = tables.grid("heads", Math.floor(j / width))[t][j % width];
  return [[cell], tables.places.get(cell).label];
};

const RULES = {
  Q: product("X", "W_Q"),
  K: product("X", "W_K"),
  V: product("X", "W_V"),
  scores: scored,
  weights: weighed,
  heads: product("weights", "V"),
  concat: moved,
  Y: product("concat", "W_O"),
};

// The cells that made a cell's number, and how in words; of an input, undefined.
export const origin = (tables, cell) => {
  const place = tables.places.get(cell);
  return RULES[place.name]?.(tables, place);
};
