// The library's trace() of one sentence, in the units that make the running example's numbers
// whole: W_Q and Q count 2·ln 2 and scores count ln 2, so that softmax raises 2 instead of e.
// Every array is a list of matrices, one for each head; the mask holds 1 and 0.

const turned = (A) => A[0].map((_, j) => A.map((row) => row[j]));
const dot = (a, b) => a.reduce((sum, number, i) => sum + number * b[i], 0);
const times = (A, B) => A.map((row) => turned(B).map((column) => dot(row, column)));
const share = (scores, mask) => {
  const top = Math.max(...scores.filter((_, s) => mask[s]));
  const powers = scores.map((score, s) => (mask[s] ? 2 ** (score - top) : 0));
  // A row with nothing to look at stays 0.
  const sum = powers.reduce((a, b) => a + b) || 1;
  return powers.map((power) => power / sum);
};

// All that the layer makes of its inputs.
export const layer = ({ X: [X], W_Q, W_K, W_V, W_O: [W_O], mask: [mask], scale: [[[scale]]] }) => {
  const [Q, K, V] = [W_Q, W_K, W_V].map((heads) => heads.map((W) => times(X, W)));
  const products = Q.map((queries, h) => times(queries, turned(K[h])));
  const scores = products.map((head) => head.map((row) => row.map((n) => (2 * n) / scale)));
  const weights = scores.map((head) => head.map((row, t) => share(row, mask[t])));
  const heads = weights.map((head, h) => times(head, V[h]));
  const concat = X.map((_, t) => heads.flatMap((head) => head[t]));
  return { Q, K, V, scores, weights, heads, concat: [concat], Y: [times(concat, W_O)] };
};

// Whether every number that the layer makes is finite.
export const sound = (inputs) => Object.values(layer(inputs)).flat(3).every(isFinite);
