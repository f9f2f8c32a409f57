// The library's trace() of one sentence, in the units that make the running example's numbers
// whole: W_Q and Q count 2·ln 2 and scores count ln 2, so that softmax raises 2 instead of e.
// Every array is a list of matrices, one for each head; the mask holds 1 and 0.

// The arrays that the layer is given; it makes all others.
export const INPUTS = ["X", "W_Q", "W_K", "W_V", "W_O", "mask", "scale"];

const transpose = (A) => A[0].map((_, j) => A.map((row) => row[j]));
const dot = (a, b) => a.reduce((sum, number, i) => sum + number * b[i], 0);
const times = (A, B) => A.map((row) => transpose(B).map((column) => dot(row, column)));
const softmaxOf = (scores, mask) => {
  const top = Math.max(...scores.filter((_, s) => mask[s]));
  const exps = scores.map((score, s) => (mask[s] ? 2 ** (score - top) : 0));
  // A row with nothing to look at stays 0.
  const sum = exps.reduce((a, b) => a + b) || 1;
  return exps.map((power) => power / sum);
};

// All that the layer makes of its inputs, and of an array that is `fixed` instead of made.
export const layer = (inputs, fixed = {}) => {
  const { X, W_Q, W_K, W_V, W_O, mask, scale } = inputs;
  const project = (parts) => parts.map((W) => times(X[0], W));
  const { Q = project(W_Q), K = project(W_K), V = project(W_V) } = fixed;
  const dots = Q.map((queries, h) => times(queries, transpose(K[h])));
  const scaled = (n) => (2 * n) / scale[0][0][0];
  const { scores = dots.map((head) => head.map((row) => row.map(scaled))) } = fixed;
  const shares = (head) => head.map((row, t) => softmaxOf(row, mask[0][t]));
  const { weights = scores.map(shares) } = fixed;
  const { heads = weights.map((head, h) => times(head, V[h])) } = fixed;
  const { concat = [X[0].map((_, t) => heads.flatMap((head) => head[t]))] } = fixed;
  const { Y = [times(concat[0], W_O[0])] } = fixed;
  return { Q, K, V, scores, weights, heads, concat, Y };
};

// Whether every number that the layer makes is finite.
export const staysFinite = (inputs) => Object.values(layer(inputs)).flat(3).every(isFinite);

// A place in an array as a link names it: Y.0.2.4 is the fifth number of bark.
export const keyOf = ({ name, h, t, j }) => [name, h, t, j].join(".");

// An array with another number at a place.
export const replaced = (array, { h, t, j }, value) => {
  const next = structuredClone(array);
  next[h][t][j] = value;
  return next;
};

// The arrays that need not be made again where another one is changed; Q, K and V do not meet.
const unchanged = ({ Q, K, V, scores, weights, heads, concat }, name) => {
  if (INPUTS.includes(name)) return {};
  const made = Object.entries({ scores, weights, heads, concat });
  const count = 1 + made.findIndex(([one]) => one == name);
  return { Q, K, V, ...Object.fromEntries(name == "Y" ? made : made.slice(0, count)) };
};

// The keys of all numbers that would change if the one at a place were larger by one; a cell of the
// mask is turned over.
export const reach = (values, place) => {
  const { name, h, t, j } = place;
  const number = values[name][h][t][j];
  const next = replaced(values[name], place, name == "mask" ? 1 - number : number + 1);
  const after = layer({ ...values, [name]: next }, { ...unchanged(values, name), [name]: next });
  const found = new Set();
  Object.entries(after).forEach(([made, heads]) =>
    heads.forEach((rows, i) =>
      rows.forEach((row, s) =>
        row.forEach((value, k) => {
          const change = Math.abs(value - values[made][i][s][k]);
          if (change > 1e-12) found.add(keyOf({ name: made, h: i, t: s, j: k }));
        })
      )
    )
  );
  found.delete(keyOf(place));
  return found;
};
