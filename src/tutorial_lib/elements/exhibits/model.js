// An attention-only model, as `models/copying.py` runs it: X = E[ids] + P, each layer adds its
// output to X, and X @ U scores the next word. An array is flat, row after row.

const decodeBase64 = (text) => Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0)).buffer;

// The arrays of a model, of which Python packs the codes and, for each row, the step of a code.
export const unpackModel = ({ shapes, codes, steps }) => {
  const [whole, step] = [new Int8Array(decodeBase64(codes)), new Float32Array(decodeBase64(steps))];
  let [at, row] = [0, 0];
  const arrays = shapes.map((shape) => {
    const width = shape.at(-1);
    const part = new Float64Array(shape.reduce((size, length) => size * length));
    for (let i = 0; i < part.length; row++)
      for (const end = i + width; i < end; i++) part[i] = whole[at++] * step[row];
    return part;
  });
  const [E, P, ...matrices] = arrays;
  const U = matrices.pop();
  const [d, [H, , dv]] = [shapes[0][1], shapes[4]];
  const dk = shapes[2][2];
  const layers = matrices.flatMap((W_Q, i) => (i % 4 ? [] : [matrices.slice(i, i + 4)]));
  return { E, P, U, layers, sizes: { d, H, dk, dv, positions: shapes[1][0], words: shapes[0][0] } };
};

// X, rows of n numbers, times the n × m numbers of W from an offset on. Four columns at once
// are three times as fast; what they write beyond a row, the next row overwrites.
const multiply = (X, n, W, m, from = 0) => {
  const rows = X.length / n;
  const Y = new Float64Array(rows * m);
  for (let y = 0, t = 0; t < rows; t++, y = t * m) {
    for (let j = 0; j < m; j += 4, y += 4) {
      let [a, b, c, d] = [0, 0, 0, 0];
      for (let i = 0, at = from + j; i < n; i++, at += m) {
        const x = X[t * n + i];
        a += x * W[at];
        b += x * W[at + 1];
        c += x * W[at + 2];
        d += x * W[at + 3];
      }
      [Y[y], Y[y + 1], Y[y + 2], Y[y + 3]] = [a, b, c, d];
    }
  }
  return Y;
};

// The softmax of scores, written over them.
const softmax = (scores) => {
  let [top, sum] = [-Infinity, 0];
  for (const score of scores) top = Math.max(top, score);
  for (let s = 0; s < scores.length; s++) sum += scores[s] = Math.exp(scores[s] - top);
  for (let s = 0; s < scores.length; s++) scores[s] /= sum;
  return scores;
};

// The weights of one query, given with its number, on itself and on all keys before it.
const attentionRow = (Q, K, dk, t) => {
  const scores = new Float64Array(t + 1);
  for (let s = 0; s <= t; s++) {
    let sum = 0;
    for (let i = 0, q = t * dk, k = s * dk; i < dk; i++) sum += Q[q++] * K[k++];
    scores[s] = sum / Math.sqrt(dk);
  }
  return softmax(scores);
};

// One head: for each query its weights, and what the head adds to X.
const runHead = ({ d, dk, dv }, [W_Q, W_K, W_V, W_O], X, h) => {
  const [Q, K] = [W_Q, W_K].map((W) => multiply(X, d, W, dk, h * d * dk));
  const V = multiply(X, d, W_V, dv, h * d * dv);
  const mixed = new Float64Array(V.length);
  const weights = Array.from({ length: X.length / d }, (_, t) => attentionRow(Q, K, dk, t));
  weights.forEach((row, t) => mixed.set(multiply(row, t + 1, V, dv), t * dv));
  return { weights, output: multiply(mixed, dv, W_O, d, h * dv * d) };
};

// The forward pass: X at first, and each head of each layer. A silenced head, "layer.head", adds 0.
export const forward = ({ E, P, layers, sizes }, ids, silenced = []) => {
  const { d, H } = sizes;
  const X = new Float64Array(ids.length * d);
  X.forEach((_, i) => (X[i] = E[ids[Math.floor(i / d)] * d + (i % d)] + P[i]));
  const first = X.slice();
  const heads = layers.map((layer, l) => {
    const before = X.slice();
    return Array.from({ length: H }, (_, h) => {
      const head = runHead(sizes, layer, before, h);
      if (silenced.includes(`${l}.${h}`)) head.output.fill(0);
      head.output.forEach((number, i) => (X[i] += number));
      return head;
    });
  });
  return { first, heads };
};

// What the word itself and each head add to the logits of the next word after position t.
export const terms = ({ U, sizes }, { first, heads }, t) => {
  const { d, words } = sizes;
  const parts = [first, ...heads.flat().map(({ output }) => output)];
  return parts.map((part) => multiply(part.subarray(t * d, (t + 1) * d), d, U, words));
};

// The probability of each next word, by what the terms add up to.
export const nextProbabilities = (terms) =>
  softmax(terms[0].map((_, word) => terms.reduce((sum, term) => sum + term[word], 0)));
