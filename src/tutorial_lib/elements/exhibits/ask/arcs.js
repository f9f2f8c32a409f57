// The arcs from the chosen word to those on which a head puts weight, in the colours of the heads.

const LEAST = 0.05; // of a weight that is drawn

// An arc from one box to another, above or below both; `lift` keeps apart those of different heads.
const arcPath = (from, to, up, lift) => {
  const [x, end] = [from, to].map((box) => (box.left + box.right) / 2);
  const [y, last] = [from, to].map((box) => (up ? box.top : box.bottom));
  const rise = (up ? -1 : 1) * Math.min(7 + 3 * lift + Math.abs(end - x) / 6, 30 + 2 * lift);
  const wide = from == to ? 7 + lift : 0;
  const bend = `${x - wide} ${y + 1.3 * rise} ${end + wide} ${last + 1.3 * rise}`;
  return `M${x + lift} ${y}C${bend} ${end + lift} ${last}`;
};

// Draw into the picture behind the words what each head attends to, the last H heads above.
export const drawArcs = (svg, cells, query, heads, H) => {
  const { left, top, width, height } = svg.parentNode.getBoundingClientRect();
  const boxes = cells.map((cell) => cell.getBoundingClientRect());
  const drawn = heads.flatMap((row, i) =>
    Array.from(row ?? [], (weight, s) => {
      if (weight < LEAST) return "";
      const d = arcPath(boxes[query], boxes[s], i >= heads.length - H, (i % H) * 2);
      const look = `stroke-width="${1 + 4 * weight}" stroke-opacity="${0.5 + 0.5 * weight}"`;
      return `<path data-head="${i % H}" d="${d}" ${look}/>`;
    })
  );
  svg.setAttribute("viewBox", [left, top, width, height]);
  svg.innerHTML = drawn.join("");
};
