// Paint a mask: an array of booleans, read one way or the other; the weights that it leaves, and
// which outputs of the layer change when a token does.

import { all, define } from "../../shared.js";
import { oneOf, parse } from "../exhibit.js";
import { strength, numText } from "../numbers.js";
import { Pairs, toHex, fromHex } from "../pairs.js";
import { STILL, changesOf, maskCode, runMasked, inverted, leakText } from "./through.js";

const READS = { look: "True means look", hide: "True means hide" };
const ALIGNS = { "bottom-right": "align bottom-right", "top-left": "align top-left" };
const MASKED = { zeros: "masked rows: zeros", nan: "masked rows: NaN" };
const otherOf = (names, name) => Object.keys(names).find((one) => one != name);
// To write into a cell what it shows already would draw it anew.
const setHtml = (cell, html) => cell.innerHTML == html || (cell.innerHTML = html);

class Painting extends Pairs {
  constructor(element) {
    super(element);
    const { dataset } = element.querySelector("[data-made]");
    const [made, four, replacement] = JSON.parse(dataset.made);
    this.replacement = replacement;
    this.every = this.rows;
    this.tokens = this.rows.map((row) => row[0].parentNode.cells[0].textContent);
    this.top = fromHex(four[0][0], this.tokens.length);
    this.made = made.map(([kind, align, queries, digits, ...lines]) => {
      return { kind, align, queries, mask: this.whole(digits), lines };
    });
    this.four = four.map(([digits, reads, queries]) => {
      return { reads, queries, mask: this.whole(digits) };
    });
    this.grids = all(element, ".tl-mask").map((table) => [...table.tBodies[0].rows]);
    this.lines = [...element.querySelector(".tl-numbers tbody").rows];
    this.first = { ...this.four[0], align: "bottom-right", masked: "zeros" };
  }

  // A mask with rows for all tokens; a link may write only those of the last.
  whole(digits) {
    const rows = fromHex(digits, this.tokens.length);
    return [...this.top.slice(0, this.tokens.length - rows.length), ...rows];
  }

  listen() {
    const { element } = this;
    const [kinds, ...rows] = all(element, ".tl-row").map((row) => all(row, "button"));
    this.reset = kinds.pop();
    this.kinds = kinds;
    this.switches = rows.flat();
    this.names = [...new Set(this.made.map(({ kind }) => kind))];
    this.kinds.forEach((button, i) => (button.onclick = () => this.make(this.names[i])));
    this.gave = all(element, ".tl-gave");
    this.rove([this.gave]);
    this.gave.forEach((cell, i) => {
      cell.role = "button";
      cell.onclick = () => this.take(i);
    });
    const acts = [
      () => this.read(),
      () => this.turn({ align: otherOf(ALIGNS, this.align) }),
      () => this.turn({ queries: 8 - this.queries }),
      () => this.fill(),
    ];
    this.switches.forEach((button, i) => (button.onclick = acts[i]));
    this.reset.onclick = () => this.show(this.first, "The mask is as it was");
    this.codes = all(element, ".tl-code code");
    this.codes.forEach((code) => (code.nextElementSibling.onclick = () => this.copy(code)));
  }

  // Show a state as a reader asked, and say what became of it.
  show(state, words) {
    this.restore(state);
    this.changed(`${words}. ${leakText(this)}`);
  }

  take(i) {
    const { reads, queries } = this.four[i];
    const size = `${queries} queries and ${this.tokens.length} keys`;
    const state = { ...this.four[i], align: "bottom-right" };
    this.show(state, `Mask ${"ABCD"[i]}, ${size}, ${READS[reads]}`);
  }

  // The rows of a mask that belong to queries.
  used(mask) {
    return mask.slice(-this.queries);
  }

  // The mask of a kind, in the reading, the alignment and the size that are set.
  find(kind, { reads, align, queries }) {
    const found = this.made.filter((one) => one.kind == kind && one.queries == queries);
    const { mask } = found.find((one) => one.align == align) || found[0];
    return reads == "hide" ? inverted(mask) : mask;
  }

  make(kind) {
    const name = kind[0].toUpperCase() + kind.slice(1);
    this.show({ mask: this.find(kind, this) }, `${name}, for ${READS[this.reads]}`);
  }

  // The kinds that the mask is, in the reading, the alignment and the size that are set.
  named() {
    const rows = toHex(this.used(this.mask));
    const same = (kind) => toHex(this.used(this.find(kind, this))) == rows;
    return this.names.filter(same);
  }

  read() {
    const reads = otherOf(READS, this.reads);
    this.show({ reads }, `The same array, and now ${READS[reads]}`);
  }

  // Another alignment or size: a mask with a name is built anew, one without keeps its cells.
  turn(part) {
    const { reads, align, queries } = this;
    const [kind] = this.named();
    const next = { reads, align, queries, ...part };
    const mask = kind ? this.find(kind, next) : this.mask;
    const ends = kind ? `aligned ${next.align}` : "a painted mask keeps its cells";
    const square = "with as many queries as keys both alignments are one";
    const where = this.tokens.length == next.queries ? square : ends;
    const size = `${next.queries} queries over ${this.tokens.length} keys`;
    this.show({ ...part, mask }, `${size}: ${where}`);
  }

  fill() {
    const masked = otherOf(MASKED, this.masked);
    const whose = { zeros: "as in this library", nan: "as by PyTorch's own steps" }[masked];
    this.show({ masked }, `A fully masked row gives ${MASKED[masked].slice(13)}, ${whose}`);
  }

  redrawn(pairs, to) {
    this.paint();
    const [t, s] = pairs.at(-1) || [];
    const { tokens } = this;
    const verb = this.looks[t]?.[s] ? "may look" : "may no longer look";
    const which = `${to ? "True" : "False"}: ${tokens[t]} ${verb} at ${tokens[s]}`;
    const words = pairs.length ? which : "The stroke became a scroll, and is undone";
    this.changed(`${words}. ${leakText(this)}`);
  }

  paint() {
    const { queries, reads, masked, given, tokens } = this;
    const hidden = tokens.length - queries;
    if (this.rows.length != queries) this.rove((this.rows = this.every.slice(hidden)));
    this.looks = reads == "hide" ? inverted(this.mask) : this.mask;
    this.weights = runMasked(given, this.looks, masked).weights;
    this.changes = changesOf(given, this.looks, masked, this.replacement);
    this.every.forEach((row, t) => row.forEach((cell, s) => this.write(cell, t, s)));
    this.grids.slice(1).forEach((rows, i) => {
      const draw = (cell, t, s) => this.tint(cell, i - 1, [t, s]);
      rows.forEach((row, t) => all(row, "td").forEach((cell, s) => draw(cell, t, s)));
    });
    const upper = [...this.grids, this.lines].flatMap((rows) => rows.slice(0, tokens.length - 3));
    upper.forEach((row) => (row.hidden = hidden > 0));
    this.label();
    this.tabulate();
  }

  write(cell, t, s) {
    const on = this.mask[t][s];
    setHtml(cell, on ? "<b>True</b>" : "");
    cell.toggleAttribute("data-on", on > 0);
    const look = this.looks[t][s] ? "may look" : "may not look";
    cell.ariaLabel = `${this.tokens[t]} at ${this.tokens[s]}: ${on ? "True" : "False"}, ${look}`;
  }

  // Write a weight of a head, or by how much an output changes.
  tint(cell, head, [t, s]) {
    const value = head < 0 ? this.changes[t][s] : this.weights[head][t][s];
    const leak = head < 0 && s > t && value > STILL;
    const none = head < 0 ? value <= STILL : !this.looks[t][s] && value == 0;
    const exact = value && numText(value);
    const short = head < 0 || exact.length > 5 ? value.toFixed(2) : exact;
    const text = isNaN(value) ? "NaN" : none ? "·" : short;
    setHtml(cell, leak ? `<b>${text}</b>` : text);
    cell.toggleAttribute("data-out", none);
    cell.toggleAttribute("data-leak", leak);
    if (head >= 0) cell.style.setProperty("--n", `${strength("weights", value || 0)}%`);
  }

  // What the buttons say, and the lines of code.
  label() {
    const { mask, reads, align, queries, masked } = this;
    const named = this.named();
    this.kinds.forEach((button, i) => (button.ariaPressed = named.includes(this.names[i])));
    const texts = [READS[reads], ALIGNS[align], `${queries} queries`, MASKED[masked]];
    this.switches.forEach((button, i) => (button.textContent = texts[i]));
    this.element.dataset.reads = reads;
    const rows = toHex(this.used(mask));
    this.gave.forEach((cell, i) => {
      const one = this.four[i];
      const same = one.queries == queries && one.reads == reads;
      cell.ariaPressed = same && toHex(this.used(one.mask)) == rows;
    });
    this.codes.forEach((code, i) => (code.textContent = `mask = ${this.code()[i]}`));
  }

  // The lines that make the array, with the alignment that is set before the other.
  code() {
    const { align, queries } = this;
    const late = (one) => Number(one.align != align);
    const fits = this.made.filter((one) => one.queries == queries);
    fits.sort((a, b) => late(a) - late(b));
    return maskCode(
      this.used(this.mask),
      fits.map(({ mask, lines }) => [this.used(mask), lines])
    );
  }

  tabulate() {
    const { tokens, looks, changes } = this;
    const some = (row, at) => tokens.filter((_, s) => at(row[s])).join(", ") || "nothing";
    this.lines.forEach((line, t) => {
      const weights = this.weights.map((head) => head[t].map(numText).join(", "));
      const depends = some(changes[t], (by) => !(by <= STILL));
      const texts = [some(looks[t], Boolean), ...weights, depends];
      texts.forEach((text, i) => (line.cells[i + 1].textContent = text));
    });
  }

  choose(cell) {
    if (this.gave.includes(cell)) return;
    const [t, s] = this.at(cell);
    const weights = this.weights.map((head) => numText(head[t][s])).join(" and ");
    const by = this.changes[t][s];
    const does = by <= STILL ? "stays" : isNaN(by) ? "is NaN" : `changes by ${by.toFixed(2)}`;
    const words = `weights ${weights}; the output of ${this.tokens[t]} ${does} when`;
    this.say(`${cell.ariaLabel}; ${words} ${this.tokens[s]} is replaced.`);
  }

  enter(cell) {
    const i = this.gave.indexOf(cell);
    if (i < 0) super.enter(cell);
    else this.take(i);
  }

  copy(code) {
    const refused = () => {
      getSelection().selectAllChildren(code);
      this.say("The line is selected: copy it.");
    };
    const copied = navigator.clipboard?.writeText(code.textContent) || Promise.reject();
    copied.then(() => this.say("The line is copied."), refused);
  }

  toQuery() {
    const [kind] = this.named();
    const other = (key) => this[key] != this.first[key] && this[key];
    return [
      kind ? ["make", kind != this.names[0] && kind] : ["mask", toHex(this.used(this.mask))],
      ["true", other("reads")],
      ...["align", "queries", "masked"].map((key) => [key, other(key)]),
    ].filter(([, value]) => value);
  }

  forms() {
    const [mask, digits] = this.tokens.length > 4
      ? [/^([01][0-9a-f]){3}(([01][0-9a-f]){2})?$/, "6 or 10 digits, 00 to 1f for each query"]
      : [/^[0-7]{3}$/, "3 digits, 0 to 7 for each query"];
    return {
      make: oneOf(...this.names),
      mask: [(text) => mask.exec(text)?.[0], digits],
      true: oneOf(...Object.keys(READS)),
      align: oneOf(...Object.keys(ALIGNS)),
      queries: oneOf(...new Set(this.made.map(({ queries }) => queries))),
      masked: oneOf(...Object.keys(MASKED)),
    };
  }

  applyQuery(entries) {
    const [given, wrong] = parse(this.forms(), entries);
    if (wrong) return wrong;
    const { make, mask, true: reads = "look", queries = this.first.queries, ...rest } = given;
    if (make && mask) return "it has both make and mask; expected one of the two.";
    const digits = toHex(this.first.mask.slice(-queries)).length;
    if (mask && mask.length != digits)
      return `mask has ${mask.length} digits; expected ${digits}, for ${queries} queries.`;
    const state = { ...this.first, ...rest, reads, queries };
    const made = () => this.find(make ?? this.names[0], state);
    this.restore({ ...state, mask: mask ? this.whole(mask) : made() });
  }

  told() {
    return `The mask of the link is here. ${leakText(this)}`;
  }
}

define("tl-paint", (element) => new Painting(element).wake("Link to this mask"));
