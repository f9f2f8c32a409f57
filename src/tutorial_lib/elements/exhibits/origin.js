// What made a number: the places of the numbers that it was computed from, and the sum as text.

import { numText } from "./numbers.js";

const valueAt = (values, { name, h, t, j }) => values[name][h][t][j];
const textAt = (values, place) => numText(valueAt(values, place));
const factor = (values, place) =>
  valueAt(values, place) < 0 ? `(${textAt(values, place)})` : textAt(values, place);

// An array that all heads share is that of head 0.
const ownHead = (values, name, h) => (values[name][h] ? h : 0);
const rowOf = (values, name, h, t) => {
  const head = ownHead(values, name, h);
  return values[name][head][t].map((_, j) => ({ name, h: head, t, j }));
};
const columnOf = (values, name, h, j) => {
  const head = ownHead(values, name, h);
  return values[name][head].map((_, t) => ({ name, h: head, t, j }));
};

const dotText = (values, left, right) =>
  left.map((place, i) => `${factor(values, place)}·${factor(values, right[i])}`).join(" + ");

const ofMatmul = (A, B) => (values, { h, t, j }) => {
  const [left, right] = [rowOf(values, A, h, t), columnOf(values, B, h, j)];
  return [[...left, ...right], dotText(values, left, right)];
};

const ofScore = (values, { h, t, j }) => {
  const [query, key] = [rowOf(values, "Q", h, t), rowOf(values, "K", h, j)];
  const [scale] = rowOf(values, "scale", 0, 0);
  const words = `2·(${dotText(values, query, key)}) / ${factor(values, scale)}`;
  return [[...query, ...key, scale], words];
};

const ofWeight = (values, { h, t, j }) => {
  const mask = values.mask[0][t];
  const scores = values.scores[h][t];
  const seen = scores.filter((_, s) => mask[s]);
  const top = Math.max(...seen);
  // Less the largest score where powers of 2 are too long to read: the weights are the same.
  const shift = Math.abs(top) > 40 ? top : 0;
  const power = (score) => numText(2 ** (score - shift));
  const words = `${power(scores[j])} / (${seen.map(power).join(" + ")})`;
  const from = [...rowOf(values, "scores", h, t), ...rowOf(values, "mask", 0, t)];
  return [from, mask[j] ? words : "nothing, since the mask hides it"];
};

// A number of concat is one of heads, moved: there is no sum to write.
const ofConcat = (values, { t, j }) => {
  const width = values.heads[0][t].length;
  return [[{ name: "heads", h: Math.floor(j / width), t, j: j % width }]];
};

const RULES = {
  Q: ofMatmul("X", "W_Q"),
  K: ofMatmul("X", "W_K"),
  V: ofMatmul("X", "W_V"),
  scores: ofScore,
  weights: ofWeight,
  heads: ofMatmul("weights", "V"),
  concat: ofConcat,
  Y: ofMatmul("concat", "W_O"),
};

// The places of the numbers that made one, and the sum if there is one; of an input or of no place,
// undefined.
export const origin = (values, place) => RULES[place?.name]?.(values, place);
