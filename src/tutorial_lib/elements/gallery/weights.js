// Attention weights as maps that can be asked.

const HIDDEN = 11;
const tint = (weight) => (weight >= 0 ? Math.round(weight / 100) : HIDDEN);

// One path for each of 11 tints, and a row of dots for what is hidden. Neighbours of one kind are
// drawn as one, or a large map would keep the reader waiting; in a small one, gaps part the cells.
const tinted = (rows) => {
  const paths = Array(12).fill("");
  const gap = rows.length > 24 ? 0 : 0.06;
  rows.forEach((row, t) => {
    for (let s = 0, end; s < row.length; s = end) {
      const here = tint(row[s]);
      const joins = () => end < row.length && (here == HIDDEN || !gap) && tint(row[end]) == here;
      for (end = s + 1; joins(); ) end += 1;
      const wide = end - s - gap;
      // A dash of no length in the middle of each cell; the last needs a little of line behind it.
      const dots = `M${s + 0.5} ${t + 0.5}H${end - 0.49}`;
      paths[here] += here == HIDDEN ? dots : `M${s} ${t}h${wide}v${1 - gap}h-${wide}z`;
    }
  });
  return paths.map((d, i) => `<path d="${d}" fill-opacity="${0.1 + i * 0.09}"/>`);
};

// The map of one head; `choose` gets the query and the key that a reader points at.
export class WeightMap {
  constructor(svg, { tokens, number }, choose) {
    Object.assign(this, { number, length: tokens.length });
    this.cells = svg.querySelector("g");
    this.side = Number(this.cells.dataset.side);
    svg.role = "application";
    svg.onclick = (event) => choose(this.place(event));
    svg.onpointermove = (event) => event.pointerType == "touch" || this.mark(3, this.place(event));
    svg.onpointerleave = () => this.mark(3, {});
  }

  // The weights as numbers, black or white, where they fit.
  written(rows) {
    const text = (weight, s, t) => {
      const strong = tint(weight) > 7 ? ' class="tl-strong"' : "";
      const [x, y] = [s, t].map((place) => (place + 0.5) * this.side);
      return weight >= 0 ? `<text x="${x}" y="${y}"${strong}>${this.number(weight)}</text>` : "";
    };
    if (this.cells.dataset.numbers == null) return "";
    return rows.map((row, t) => row.map((weight, s) => text(weight, s, t)).join("")).join("");
  }

  draw(rows, head) {
    const paths = tinted(rows);
    const group = (what, inside) => `<g ${what} transform="scale(${this.side})">${inside}</g>`;
    this.cells.innerHTML =
      group('class="tl-dots"', paths.pop()) +
      group(`data-head="${head % 4}"`, paths.join("")) +
      this.written(rows) +
      group('class="tl-frames"', "<rect/>".repeat(4));
    this.mark(3, {});
  }

  // Put one of the four frames around a row, a column or a cell.
  mark(i, { query, key }) {
    const [width, height] = [key, query].map((place) => (place >= 0 ? 1 : this.length));
    const frame = this.cells.lastElementChild.children[i];
    const sizes = { x: key ?? 0, y: query ?? 0, width, height };
    Object.entries(sizes).forEach(([name, size]) => frame.setAttribute(name, size));
    frame.style.display = (query ?? key) >= 0 ? "" : "none";
  }

  frame({ query, key }) {
    const cell = query >= 0 && key >= 0 ? { query, key } : {};
    [{ query }, { key }, cell].forEach((place, i) => this.mark(i, place));
  }

  // What a reader means by a point on the map or on the names beside it: a query, a key, both.
  place({ clientX, clientY }) {
    const matrix = this.cells.getScreenCTM().inverse();
    const { x, y } = new DOMPoint(clientX, clientY).matrixTransform(matrix);
    const [query, key] = [y, x].map((length) => Math.floor(length / this.side));
    const [row, column] = [query, key].map((place) => place >= 0 && place < this.length);
    if (row && column) return { query, key };
    if (row && key < 0) return { query, key: undefined };
    return column && query > 0 ? { key } : {};
  }
}
