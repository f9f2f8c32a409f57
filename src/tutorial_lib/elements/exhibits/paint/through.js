// What a mask lets through: the layer's weights and outputs, which outputs change with which
// token, what that means for the mask, and the mask as lines of code.

import { layer } from "../layer.js";
import { toHex } from "../pairs.js";

// An output that changes by no more than this has stayed.
export const STILL = 1e-9;

// A mask read the other way.
export const inverted = (rows) => rows.map((row) => row.map((on) => 1 - on));

// A mask without a name as code: its rows of 0 and 1.
const arrayCode = (rows) => {
  const text = `[${rows.map((row) => `[${row.join(", ")}]`).join(", ")}]`;
  return [`np.array(${text}, dtype=bool)`, `torch.tensor(${text}, dtype=torch.bool)`];
};
const inverse = (line) => (line.includes(" & ") ? `~(${line})` : `~${line}`);

// The lines that make a mask: those of its name if it or its opposite has one among [rows, lines].
export const maskCode = (rows, made) => {
  const of = (some) => made.find(([one]) => toHex(one) == toHex(some))?.[1];
  return of(rows) || of(inverted(rows))?.map(inverse) || arrayCode(rows);
};

// What the layer computes where some pairs may be looked at: its weights and Y. A fully masked
// row is zeros, or NaN.
export const runMasked = (given, looks, masked) => {
  const { weights, Y } = layer({ ...given, mask: [looks] });
  const blind = (t) => masked == "nan" && !looks[t].some(Boolean);
  const blank = (rows) => rows.map((row, t) => (blind(t) ? row.map(() => NaN) : row));
  return { weights: weights.map(blank), Y: blank(Y[0]) };
};

// By how much each output changes when each token is replaced by other numbers: [output][token].
export const changesOf = (given, looks, masked, replacement) => {
  const before = runMasked(given, looks, masked).Y;
  const after = before.map((_, s) => {
    const X = given.X[0].map((row, t) => (t == s ? replacement : row));
    return runMasked({ ...given, X: [X] }, looks, masked).Y;
  });
  const apart = (a, b) => Math.max(...a.map((number, j) => Math.abs(number - b[j])));
  return before.map((row, t) => after.map((Y) => apart(row, Y[t])));
};

const namesText = (names, one, many) => {
  const listed = names.join(", ").replace(/, (?=[^,]*$)/, " and ");
  return names.length ? ` ${listed} ${names.length == 1 ? one : many}.` : "";
};

// Whether an output depends on a later token, and what else is odd about the rows of the queries.
export const leakText = ({ tokens, queries, looks, changes, masked }) => {
  const used = tokens.map((_, t) => t).slice(-queries);
  const later = (t) => tokens.map((_, s) => [t, s]).slice(t + 1);
  const leaks = used.flatMap(later).filter(([t, s]) => changes[t][s] > STILL);
  const sees = (t) => looks[t].some(Boolean);
  const names = (fits) => used.filter(fits).map((t) => `“${tokens[t]}”`);
  const gives = masked == "nan" ? "NaN" : "zeros";
  const blind = names((t) => !sees(t));
  const lost = names((t) => !leaks.length && sees(t) && !looks[t][t]);
  const odd =
    namesText(blind, `is fully masked: ${gives}`, `are fully masked: ${gives}`) +
    namesText(lost, "does not see itself", "do not see themselves");
  if (!leaks.length) return `No leak: no output depends on a later token.${odd}`;
  const [[t, s]] = leaks;
  const count = leaks.length == 1 ? "1 pair" : `${leaks.length} pairs`;
  const by = `“${tokens[t]}” changes by ${changes[t][s].toFixed(2)}`;
  return `It leaks, in ${count}: ${by} when a later token, “${tokens[s]}”, is replaced.${odd}`;
};
