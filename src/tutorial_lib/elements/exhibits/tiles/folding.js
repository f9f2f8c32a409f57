// A table of scores in tiles, and the state of each query after they are folded in.

// Positions from 0 up to a number.
export const range = (n) => Array.from({ length: n }, (_, i) => i);

// T positions in blocks of a size.
const blocksOf = (T, size) =>
  range(Math.ceil(T / size)).map((i) => range(T).slice(i * size, (i + 1) * size));

// Blocks of queries by blocks of keys, each with how many pairs the causal mask leaves.
export const tilesOf = (T, rows, columns) => {
  const across = blocksOf(T, columns);
  return blocksOf(T, rows).flatMap((queries, i) => across.map((keys, j) => {
    const pairs = queries.flatMap((t) => keys.filter((s) => s <= t)).length;
    return { n: i * across.length + j, i, j, queries, keys, pairs };
  }));
};

// What a query has before its first key.
export const EMPTY = { maximum: -Infinity, total: 0, mixed: [0, 0, 0, 0], came: 0 };

// Fold keys into what a query has, as fold_block of chapter 12 does, but with powers of 2. What is
// old is shrunk by the factor, unless that is left out.
export const foldKeys = (row, scores, values, shrinks) => {
  if (!scores.length) return row;
  const maximum = Math.max(row.maximum, ...scores);
  const factor = shrinks ? 2 ** (row.maximum - maximum) : 1;
  const powers = scores.map((score) => 2 ** (score - maximum));
  const add = (old, numbers) =>
    powers.reduce((sum, power, i) => sum + power * numbers[i], factor * old);
  const total = add(row.total, powers.map(() => 1));
  const mixed = row.mixed.map((old, c) => add(old, values.map((value) => value[c])));
  const rose = row.came > 0 && maximum > row.maximum;
  // Before the first key there was nothing to shrink.
  const shown = row.came ? factor : undefined;
  return { maximum, total, mixed, came: row.came + scores.length, factor: shown, rose };
};
