// Draw a mask and read its receptive field: on which tokens each row depends after some layers.

import { all, define } from "../../shared.js";
import { oneOf, parse } from "../exhibit.js";
import { Pairs, toHex, fromHex } from "../pairs.js";

const MOST = 6;

// The layer after which a row depends on a token, for each pair, or 0 if none of so many connects
// them: a layer passes on what came before. A row keeps its own token, as a residual does.
const firstLayers = (mask, layers) => {
  const step = mask.map((row, t) => row.map((open, s) => Number(open || t == s)));
  const first = structuredClone(step);
  for (let layer = 2; layer <= layers; layer++) {
    const before = structuredClone(first);
    const connected = (t, s) => before[t].some((there, u) => there && step[u][s]);
    first.forEach((row, t) => row.forEach((there, s) => {
      if (!there && connected(t, s)) row[s] = layer;
    }));
  }
  return first;
};

// Write texts behind the name of a row, where they differ.
const fillRow = (row, texts) =>
  texts.forEach((text, i) => {
    const cell = row.cells[i + 1];
    if (cell.textContent != text) cell.textContent = text;
  });
const countOn = (mask) => mask.flat().filter(Boolean).length;
const aheadIn = (mask) => mask.flatMap((row, t) => row.filter((open, s) => open && s > t)).length;
const plural = (count, name) => `${count} ${name}${count == 1 ? "" : "s"}`;
const gazing = (count) =>
  count == 1 ? "1 pair looks at the future" : `${count || "No"} pairs look at the future`;

// The positions of a row that are not 0, those side by side as a range: "0, 12–15".
const ranges = (row) => {
  const ends = [];
  row.forEach((there, s) => {
    if (there && row[s - 1]) ends.at(-1)[1] = s;
    else if (there) ends.push([s, s]);
  });
  return ends.map(([from, to]) => (from == to ? from : `${from}–${to}`)).join(", ") || "nothing";
};

class Drawing extends Pairs {
  constructor(element) {
    super(element);
    const { patterns, from } = this.given;
    const { length } = this.rows;
    this.patterns = patterns.map(([key, digits, says]) => {
      return { key, mask: fromHex(digits, length), says };
    });
    [this.sum, this.alarm] = all(element, ".tl-share, .tl-alarm");
    [this.slider] = this.sliders;
    [, this.layers, this.lines] = this.bodies;
    this.begins = this.buttons.slice(0, -2);
    this.causality = this.buttons.at(-2);
    this.resets("The grid is as it was.");
    this.first = { ...this.begun(from), depth: Number(this.slider.defaultValue) };
  }

  listen() {
    this.begins.forEach((button, i) => (button.onclick = () => this.start(this.patterns[i])));
    this.slider.oninput = () => {
      this.depth = Number(this.slider.value);
      this.paint();
      this.changed(this.depends());
    };
    this.causality.onclick = () => this.bar(!this.causal);
  }

  // A pattern as a state: it is causal where none of its pairs looks at the future.
  begun(name) {
    const { mask } = this.patterns.find(({ key }) => key == name);
    return { mask, causal: !aheadIn(mask) };
  }

  start({ key, says }) {
    this.restore(this.begun(key));
    this.changed(`${says}: ${this.counts()}.`);
  }

  bar(causal) {
    const count = aheadIn(this.mask);
    const kept = `Causal keeps out ${plural(count, "pair")} of the drawing`;
    this.causal = causal;
    this.paint();
    this.changed(`${causal && count ? kept : gazing(count)}: ${this.counts()}. ${this.depends()}`);
  }

  barred([t, s]) {
    const words = `Key ${s} comes after query ${t}, and causal keeps the future out.`;
    return this.causal && s > t ? `${words} Nothing has changed.` : "";
  }

  redrawn(pairs, to) {
    this.paint();
    const [t, s] = pairs.at(-1) || [];
    const future = to && s > t ? ", which is in its future" : "";
    const verb = to ? "may look" : "may no longer look";
    const which = `Query ${t} ${verb} at key ${s}${future}`;
    const blind = this.seen[t]?.some(Boolean) ? "" : ` Row ${t} sees nothing now.`;
    const late = this.came[t]?.[s];
    const still = `Layer ${late} still connects them`;
    const end = late > 1 ? `${still}: ${this.route(t, s)}.` : this.depends();
    const told = `${which}: ${this.counts()}.${blind} ${end}`;
    this.changed(pairs.length ? told : "The stroke became a scroll, and is undone.");
  }

  paint() {
    const { mask, causal, depth } = this;
    this.seen = mask.map((row, t) => row.map((open, s) => Number(open && !(causal && s > t))));
    this.came = firstLayers(this.seen, depth);
    this.rows.forEach((row, t) => row.forEach((cell, s) => this.write(cell, t, s)));
    this.begins.forEach((button, i) => {
      button.ariaPressed = toHex(this.patterns[i].mask) == toHex(this.seen);
    });
    this.causality.ariaPressed = causal;
    this.slider.value = depth;
    this.slider.ariaValueText = plural(depth, "layer");
    this.slider.previousElementSibling.textContent = plural(depth, "layer");
    this.tabulate();
    this.trace();
  }

  // Write a cell, where it has changed.
  write(cell, t, s) {
    const [open, late, out] = [this.seen[t][s], this.came[t][s], this.causal && s > t];
    const look = [open, late, out].join();
    if (cell.look == look) return;
    cell.look = look;
    cell.innerHTML = open ? `<b>${late}</b>` : late || "";
    cell.toggleAttribute("data-on", Boolean(open));
    cell.toggleAttribute("data-out", out);
    if (late && !open) cell.dataset.late = late;
    else delete cell.dataset.late;
    const arrives = late ? `hidden, but layer ${late} connects them` : "hidden";
    const state = open ? "may look" : out ? "kept out by causal" : arrives;
    const own = t == s && !open ? "hidden, but the row keeps its own token" : state;
    cell.ariaLabel = `query ${t}, key ${s}: ${own}`;
  }

  // How many pairs there could be, and how many there are.
  possible() {
    const { length } = this.rows;
    return this.causal ? (length * (length + 1)) / 2 : length ** 2;
  }

  counts() {
    return `${countOn(this.seen)} of ${this.possible()} pairs`;
  }

  // The receptive field of the last row.
  depends() {
    const last = this.came.at(-1);
    const now = last[0] == this.depth && last[0] > 1 ? "for the first time" : "also";
    const first = last[0] ? `${now} on token 0` : "not on token 0";
    const row = last.length - 1;
    const words = `row ${row} depends on ${countOn([last])} of ${last.length} tokens`;
    return `After ${plural(this.depth, "layer")} ${words}, ${first}.`;
  }

  tabulate() {
    const { seen, came, depth } = this;
    const { length } = came;
    const percent = (100 * countOn(seen)) / this.possible();
    this.sum.textContent = `${this.counts()} may be looked at: ${percent.toFixed(1)}\u00a0%.`;
    const blind = seen.map((row) => !row.some(Boolean));
    const who = countOn([blind]) > 1 ? `Rows ${ranges(blind)} see` : `Row ${ranges(blind)} sees`;
    const sight = countOn([blind]) ? `${who} nothing.` : "Every row sees something.";
    this.alarm.textContent = `${sight} ${gazing(aheadIn(seen))}.`;
    this.layers.forEach((row, i) => {
      const by = came.map((line) => line.map((late) => late && late <= i + 1));
      const last = `${countOn(by.slice(-1))} of ${length}`;
      const texts = [last, `${countOn(by)} of ${this.possible()}`];
      fillRow(row, texts.map((text) => (i < depth ? text : "–")));
    });
    this.lines.forEach((row, t) => {
      fillRow(row, [ranges(seen[t]), `${ranges(came[t])} (${countOn([came[t]])})`]);
    });
    const title = this.lines[0].closest("table").tHead.rows[0].cells[2];
    title.textContent = `depends, after ${plural(depth, "layer")}, on`;
  }

  // The path of a token to a row: each looks at the one before.
  path(t, s) {
    const late = this.came[t][s];
    if (late < 2) return t == s ? [s] : [s, t];
    const next = this.seen.findIndex((row, u) => row[s] && this.came[t][u] == late - 1);
    return [s, ...this.path(t, next)];
  }

  route(t, s) {
    return this.path(t, s).join(" → ");
  }

  // Mark the pairs by which a token comes to a row that may not look at it.
  trace(cell = this.chosen) {
    all(this.element, "[data-hop]").forEach((hop) => hop.removeAttribute("data-hop"));
    const [t, s] = cell ? this.at(cell) : [];
    if (!(this.came[t]?.[s] > 1)) return;
    const path = this.path(t, s);
    path.slice(1).forEach((u, i) => this.rows[u][path[i]].toggleAttribute("data-hop", true));
  }

  // What is said of a pair.
  sentence(t, s) {
    const late = this.came[t][s];
    const not = `Query ${t} may not look at key ${s}`;
    if (this.seen[t][s]) return `Query ${t} may look at key ${s}.`;
    if (this.barred([t, s])) return `${not}: it comes later, and causal keeps it out.`;
    if (t == s) return `${not}, its own; but the row keeps its own token.`;
    if (late) return `${not}, but layer ${late} connects them: ${this.route(t, s)}.`;
    return `${not}, and no path of ${plural(this.depth, "layer")} connects them.`;
  }

  choose(cell) {
    this.chosen = cell;
    this.trace();
    this.say(this.sentence(...this.at(cell)));
  }

  // A mouse over a pair shows it; the question stays until something is pressed.
  point(cell) {
    if (cell == this.pointed) return;
    this.pointed = cell;
    this.trace(cell);
    if (cell && this.news.textContent) this.say(this.sentence(...this.at(cell)));
  }

  // The pattern that is drawn, if it is one.
  named() {
    return this.patterns.find(({ mask }) => toHex(mask) == toHex(this.mask))?.key;
  }

  toQuery() {
    const name = this.named();
    const drawn = name ? ["from", name] : ["mask", toHex(this.mask)];
    const same = toHex(this.mask) == toHex(this.first.mask);
    return [
      ...(same ? [] : [drawn]),
      ...(this.causal == !aheadIn(this.mask) ? [] : [["causal", this.causal ? "yes" : "no"]]),
      ...(this.depth == this.first.depth ? [] : [["layers", this.depth]]),
    ];
  }

  forms() {
    const { length } = toHex(this.mask);
    const mask = RegExp(`^[0-9a-f]{${length}}$`);
    const depths = Array.from({ length: MOST }, (_, i) => i + 1);
    return {
      from: oneOf(...this.patterns.map((pattern) => pattern.key)),
      mask: [(text) => mask.exec(text)?.[0], `${length} digits, each 0 to f`],
      causal: oneOf("yes", "no"),
      layers: [oneOf(...depths)[0], `a whole number from 1 to ${MOST}`],
    };
  }

  applyQuery(entries) {
    const [given, wrong] = parse(this.forms(), entries);
    if (wrong) return wrong;
    const { from, mask, causal, layers = this.first.depth } = given;
    if (from && mask) return "it has both from and mask; expected one of the two.";
    const next = from ? this.begun(from) : { ...this.first };
    if (mask) next.mask = fromHex(mask, this.rows.length);
    next.causal = causal ? causal == "yes" : !aheadIn(next.mask);
    this.restore({ ...this.first, ...next, depth: layers });
  }

  told() {
    return `The mask of the link is here: ${this.counts()}. ${this.depends()}`;
  }
}

define("tl-drawing", (element) => new Drawing(element).wake("Link to this mask"));
