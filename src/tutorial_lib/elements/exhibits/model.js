// A model of attention alone, as `models/copying.py` runs it: X = E[ids] + P, each layer adds its
// output to X, and X @ U scores the next word. An array is flat, row after row.

const bytes = (text) => Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0)).buffer;

// The arrays of a model, of which Python packs the codes and, for each row, the step of a code.
export const unpack = ({ shapes, codes, steps }) => {
  const [whole, step] = [new Int8Array(bytes(codes)), new Float32Array(bytes(steps))];
  let [at, row] = [0, 0];
  const arrays = shapes.map((shape) => {
    const width = shape.at(-1);
    const size = shape.reduce((product, length) => product * length);
    const part = Float64Array.from(whole.subarray(at, at + size));
    const from = row;
    part.forEach((code, i) => (part[i] = code * step[from + Math.floor(i / width)]));
    [at, row] = [at + size, row + size / width];
    return part;
  });
  const [E, P, ...matrices] = arrays;
  const U = matrices.pop();
  const [d, [H, , d_v]] = [shapes[0][1], shapes[4]];
  const d_k = shapes[2][2];
  const layers = matrices.flatMap((W_Q, i) => (i % 4 ? [] : [matrices.slice(i, i + 4)]));
  return { E, P, U, layers, sizes: { d, H, d_k, d_v, places: shapes[1][0], words: shapes[0][0] } };
};

// X, rows of n numbers, times the n × m numbers of W that begin at a place.
const times = (X, n, W, m, from = 0) => {
  const rows = X.length / n;
  const Y = new Float64Array(rows * m);
  for (let t = 0; t < rows; t++) {
    for (let i = 0; i < n; i++) {
      const x = X[t * n + i];
      const at = from + i * m;
      for (let j = 0; j < m; j++) Y[t * m + j] += x * W[at + j];
    }
  }
  return Y;
};

// The weights of one query on itself and on all keys before it.
const softmax = (scores) => {
  const top = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - top));
  const sum = powers.reduce((a, b) => a + b);
  return powers.map((power) => power / sum);
};

// One head: for each query its weights, and what the head adds to X.
const attend = ({ d, d_k, d_v }, [W_Q, W_K, W_V, W_O], X, h) => {
  const [Q, K] = [W_Q, W_K].map((W) => times(X, d, W, d_k, h * d * d_k));
  const V = times(X, d, W_V, d_v, h * d * d_v);
  const T = X.length / d;
  const mixed = new Float64Array(T * d_v);
  const weights = Array.from({ length: T }, (_, t) => {
    const scores = Array.from({ length: t + 1 }, (_, s) => {
      let sum = 0;
      for (let i = 0; i < d_k; i++) sum += Q[t * d_k + i] * K[s * d_k + i];
      return sum / Math.sqrt(d_k);
    });
    const row = softmax(scores);
    row.forEach((weight, s) => {
      for (let i = 0; i < d_v; i++) mixed[t * d_v + i] += weight * V[s * d_v + i];
    });
    return row;
  });
  return { weights, brings: times(mixed, d_v, W_O, d, h * d_v * d) };
};

// Go forward: X at first, and of each layer each head. A silenced head, "layer.head", brings zeros.
export const forward = ({ E, P, layers, sizes }, ids, silenced = []) => {
  const { d, H } = sizes;
  const X = new Float64Array(ids.length * d);
  X.forEach((_, i) => (X[i] = E[ids[Math.floor(i / d)] * d + (i % d)] + P[i]));
  const first = X.slice();
  const heads = layers.map((layer, l) => {
    const before = X.slice();
    return Array.from({ length: H }, (_, h) => {
      const head = attend(sizes, layer, before, h);
      if (silenced.includes(`${l}.${h}`)) head.brings.fill(0);
      head.brings.forEach((number, i) => (X[i] += number));
      return head;
    });
  });
  return { first, heads };
};

// What the word itself and each head add to the scores of the next word behind place t.
export const paths = ({ U, sizes }, { first, heads }, t) => {
  const { d, words } = sizes;
  const parts = [first, ...heads.flat().map(({ brings }) => brings)];
  return parts.map((part) => times(part.subarray(t * d, (t + 1) * d), d, U, words));
};

// The probability of each next word, by what the paths add.
export const chances = (parts) =>
  softmax(Array.from(parts[0], (_, word) => parts.reduce((sum, part) => sum + part[word], 0)));
