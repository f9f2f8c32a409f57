// Attention weights as Python packs them, and as maps: inspector and gallery.

// The names, the fractions, and `map`, which gives a head's weights row by row: thousandths, NaN
// where a key is hidden.
export const unpack = (element) => {
  const { dataset } = element.querySelector(".tl-live");
  const [queries, keys] = [dataset.queries, dataset.keys].map((names) => JSON.parse(names));
  const rows = dataset.weights.split(" ");
  const map = (h) =>
    rows
      .slice(h * queries.length)
      .slice(0, queries.length)
      .map((row) => keys.map((_, s) => parseInt(row.slice(2 * s, 2 * s + 2), 36)));
  return { queries, keys, map, fractions: JSON.parse(dataset.fractions) };
};

// One path for each of 11 tints, and one that strikes out what is hidden. Neighbours of one kind
// are drawn as one, or a large map would keep the reader waiting; in a small one, gaps part the
// cells.
export const drawMap = (cells, rows) => {
  const paths = Array(12).fill("");
  const kind = (weight) => (weight >= 0 ? Math.round(weight / 100) : 11);
  const gap = rows.length + rows[0].length > 48 ? 0 : 0.06;
  rows.forEach((row, t) => {
    for (let s = 0, end; s < row.length; s = end) {
      const here = kind(row[s]);
      const joins = () => end < row.length && (here == 11 || !gap) && kind(row[end]) == here;
      for (end = s + 1; joins(); ) end += 1;
      const wide = end - s - gap;
      const line = `M${s + 0.15} ${t + 0.5}H${end - 0.15}`;
      paths[here] += here == 11 ? line : `M${s} ${t}h${wide}v${1 - gap}h-${wide}z`;
    }
  });
  const shapes = paths.map((d, i) => `<path d="${d}" fill-opacity="${0.08 + i * 0.092}"/>`);
  cells.innerHTML = shapes.join("");
};
