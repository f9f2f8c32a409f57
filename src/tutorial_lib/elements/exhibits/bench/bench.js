// The softmax on a bench: three products of a query with keys are divided, exponentiated and
// normalised.

import { readings } from "../../readings.js";
import { all, define } from "../../shared.js";
import { Exhibit, oneOf, parse } from "../exhibit.js";
import { onDrag } from "../hold.js";
import { fourPlaces, fraction, withMinus } from "../numbers.js";

const HIGHEST = 1000;
const BAR_END = 7; // of the picture
const STARING = 0.99;
const LIFTS = { ArrowUp: 1, ArrowDown: -1, PageUp: 4, PageDown: -4 };

// How many times ln 2 a number is, if that is a whole number of quarters.
const timesLn2 = (n) => {
  const times = Math.round((4 * n) / Math.LN2) / 4;
  const off = Math.abs(n - times * Math.LN2);
  return times && off < 1e-12 * Math.max(1, Math.abs(n)) ? times : undefined;
};
// Such a number without what adding has rounded, and any other as it is.
const unrounded = (n) => (timesLn2(n) ? timesLn2(n) * Math.LN2 : n);

// The one number that a text means, "2 ln 2" too; undefined where it is none, or could be two.
const readWithLn2 = (text) => {
  const [written, of] = /[·*×]?\s*ln\s*([\d.,]+)/i.exec(text) || [];
  // "ln 2" is once, "−ln 2" is minus once, "ln 2/2" is one half of it.
  const times = text.replace(written, "").trim().replace(/^([-+−–]?)(?=\/|$)/, "$11");
  const logs = of && readings(of).map(Math.log);
  const read = of ? readings(times).flatMap((n) => logs.map((log) => n * log)) : readings(text);
  return new Set(read).size == 1 ? unrounded(read[0]) : undefined;
};
const between = (least, most) => (text) =>
  [readWithLn2(text)].find((n) => n >= least && n <= most);
const PRODUCTS = [between(-HIGHEST, HIGHEST), "a number from −1000 to 1000, such as 0.5 or 2 ln 2"];
const DIVISORS = [between(1, 16), "a number from 1 to 16"];
const sixDigits = (n) => withMinus(Number(n.toPrecision(6)));
const byLn2 = (n) => {
  const times = timesLn2(n);
  if (!times) return sixDigits(n);
  return withMinus(`${times} ln 2`.replace(/^(-?)1 /, "$1"));
};
const fourOrNaN = (n) => (isNaN(n) ? "nan" : fourPlaces(n));
// What is near 0 or near 1 is no fraction.
const nearFraction = (n) => {
  const text = fraction(n);
  return text && (text.includes("/") || Math.abs(text) > 1 || n == text) && withMinus(text);
};
const weightText = (n) => nearFraction(n) || fourOrNaN(n);
const expText = (n) => {
  if (n == Infinity) return "inf";
  const far = n < 1e-3 || n >= 1e5;
  return nearFraction(n) || (far ? withMinus(n.toExponential(2)) : fourOrNaN(n));
};

// What becomes of products: scores, exponentials, weights, and each weight's slopes in all scores.
const softmaxSteps = ({ products, divide, hidden, away }) => {
  const scores = products.map((n) => n / divide);
  const seen = scores.filter((_, i) => !hidden[i]);
  const most = away && seen.length ? Math.max(...seen) : 0;
  const exps = scores.map((n, i) => (hidden[i] ? 0 : Math.exp(n - most)));
  const sum = exps.reduce((a, b) => a + b);
  const weights = exps.map((n) => (seen.length ? n / sum : 0));
  const slopes = weights.map((p, i) => weights.map((q, j) => p * ((i == j) - q)));
  const bits = weights.map((p) => (p == 0 ? 0 : -p * Math.log2(p)));
  const entropy = bits.reduce((a, b) => a + b);
  return { scores, most, exps, weights, slopes, sums: [Math.max(...weights), entropy] };
};

class Bench extends Exhibit {
  constructor(element) {
    super(element);
    const { words, products, divide, slope } = this.given;
    Object.assign(this, { words, slope });
    const start = { products: products.map((n) => n * Math.LN2), divide };
    this.first = { ...start, hidden: words.map(() => false), away: false, by: 0 };
    [this.lanes, this.boxes] = [".tl-lane", "[type=checkbox]"].map((kind) => all(element, kind));
    [this.slider] = this.sliders;
    this.dot = element.querySelector("circle");
    [this.drop, this.trail] = all(element, "[data-part=drop], [data-part=trail]");
    this.stack = [...element.querySelector(".tl-stack").children];
    [this.lines, this.rows] = this.bodies;
    [this.five, this.away] = this.buttons;
    this.resets("The bench is as it was.");
  }

  // Say to keys and to screen readers what can be moved, and listen.
  listen() {
    this.rove([this.lanes]);
    this.lanes.forEach((lane, i) => {
      const ends = { ariaValueMin: -HIGHEST, ariaValueMax: HIGHEST, ariaOrientation: "vertical" };
      Object.assign(lane, { role: "slider", ariaLabel: `q · k of ${this.words[i]}`, ...ends });
      // With slopes the first press chooses the lane, by the focus, and moves nothing.
      const may = () => !this.slope || i == this.state.by;
      onDrag(this, lane, (event) => this.lift(i, event), may);
      this.boxes[i].onchange = () => this.change({ hidden: this.boxes.map((b) => b.checked) });
    });
    this.fields.forEach((field, i) => (field.onchange = () => this.write(field, i)));
    this.slider.oninput = () =>
      this.change({ divide: Number((2 ** this.slider.value).toFixed(2)) });
    this.five.onclick = () => this.add();
    this.away.onclick = () => this.change({ away: !this.state.away });
  }

  restore(state) {
    this.trail?.setAttribute("d", "");
    super.restore(state);
  }

  paint() {
    const { products, divide, hidden, away, by } = this.state;
    this.made = softmaxSteps(this.state);
    this.lanes.forEach((lane, i) => {
      const end = Math.min(Math.max(products[i], -BAR_END), BAR_END);
      const [above, size] = [Math.max(end, 0), Math.abs(end)].map((n) => (50 * n) / BAR_END);
      lane.firstElementChild.style.cssText = `top:${50 - above}%;height:${size}%`;
      const looks = { minus: end < 0, beyond: end != products[i], hidden: hidden[i] };
      Object.entries({ ...looks, by: this.slope && i == by }).forEach(([look, has]) =>
        lane.toggleAttribute(`data-${look}`, has));
      const told = byLn2(products[i]) + (hidden[i] ? ", hidden" : "");
      Object.assign(lane, { ariaValueNow: products[i], ariaValueText: told });
      this.boxes[i].checked = hidden[i];
      lane.nextElementSibling.textContent = byLn2(products[i]);
    });
    [...products.map(byLn2), sixDigits(divide)].forEach((text, i) => {
      this.fields[i].value = text;
      this.fields[i].ariaInvalid = null;
    });
    this.slider.value = Math.log2(divide);
    this.slider.ariaValueText = sixDigits(divide);
    this.away.ariaPressed = away;
    this.tabulate();
  }

  // Write both tables, the stack and the two numbers.
  tabulate() {
    const { products, divide, hidden, away, by } = this.state;
    const { scores, most, exps, weights, slopes, sums } = this.made;
    this.lines.forEach((line, i) => {
      const score = hidden[i] ? "−∞" : byLn2(scores[i]);
      const slope = this.slope ? [weightText(slopes[by][i])] : [];
      const texts = [score, expText(exps[i]), weightText(weights[i]), ...slope];
      [byLn2(products[i]), ...texts].forEach((text, j) => {
        this.rows[i].cells[j + 1].textContent = text;
        if (j) line.cells[j].firstChild.textContent = text;
      });
      const part = exps[i] / Math.max(...exps);
      line.querySelector("i").style.width = `${100 * part || 0}%`;
      this.stack[i].style.width = `${100 * weights[i] || 0}%`;
      this.stack[i].toggleAttribute("data-small", !(weights[i] > 0.13));
    });
    const raised = away ? `e to the score less ${byLn2(most)}` : "e to the score";
    all(this.element, "thead tr").forEach(({ cells }) => {
      const names = [...cells].slice(this.slope ? -3 : -2);
      names[0].textContent = raised;
      if (this.slope) names[2].textContent = `slope by ${this.words[by]}`;
    });
    if (this.dot) this.plot();
    const [two, state] = all(this.element, ".tl-two, .tl-numbers p");
    all(two, "b").forEach((number, i) => (number.textContent = fourOrNaN(sums[i])));
    state.textContent = `q · k is divided by ${sixDigits(divide)}: ${two.textContent}.`;
  }

  // Put the dot above its weight, as high as its slope, and leave a mark of it in the trail.
  plot() {
    const { by } = this.state;
    const lost = isNaN(this.made.weights[by]);
    const place = [160 * this.made.weights[by], -240 * this.made.slopes[by][by]];
    const [x, y] = lost ? [0, 0] : place;
    for (const part of [this.dot, this.drop])
      part.setAttribute("visibility", lost ? "hidden" : "visible");
    this.dot.setAttribute("transform", `translate(${x} ${y})`);
    this.drop.setAttribute("d", `M${x} 0V${y}H0`);
    if (!lost) this.trail.setAttribute("d", `${this.trail.getAttribute("d")}M${x} ${y}h0`);
  }

  // Change the state as a reader did, and say what became of the weights.
  change(part) {
    const was = this.made;
    Object.assign(this.state, part);
    this.paint();
    this.changed(this.told(was));
  }

  // What there is to say of the weights, before which there were others.
  told(was) {
    const { weights, exps, scores, sums } = this.made;
    if (this.state.hidden.every(Boolean))
      return "Every key is hidden: the row is fully masked, and all weights are 0.";
    const [largest, entropy] = sums.map(fourOrNaN);
    const listed = this.words.map((word, i) => `${word} ${weightText(weights[i])}`).join(", ");
    const over = exps.indexOf(Infinity);
    if (over >= 0)
      return `e to the ${sixDigits(scores[over])} is inf, beyond the largest float64, and ` +
        `inf / inf is nan: the weights are ${listed}.`;
    if (weights.some(isNaN))
      return "Every exponential is 0, too small for a float64, and 0 / 0 is nan.";
    const still = was && weights.every((n, i) => Math.abs(n - was.weights[i]) < 1e-12);
    const past = sums[0] > STARING ? `, past ${STARING}` : "";
    const slopes = this.made.slopes[this.state.by].map(weightText).join(", ");
    const more = this.slope
      ? `their slopes in the score of ${this.words[this.state.by]} are ${slopes}`
      : `the largest is ${largest}${past}, the entropy ${entropy} bits`;
    return `The weights are ${still ? "still " : ""}${listed}; ${more}.`;
  }

  // A product is moved to where the pointer is, by halves of ln 2.
  lift(i, { clientY }) {
    const { y, height } = this.lanes[i].getBoundingClientRect();
    const at = BAR_END * (1 - (2 * (clientY - y)) / height);
    const end = Math.min(Math.max(at, -BAR_END), BAR_END);
    this.move(i, (Math.trunc((2 * end) / Math.LN2) / 2) * Math.LN2);
  }

  move(i, to) {
    const product = unrounded(Math.min(Math.max(to, -HIGHEST), HIGHEST));
    const products = this.state.products.with(i, product);
    if (product != this.state.products[i]) this.change({ products });
  }

  keyed(lane, { key }) {
    const i = this.lanes.indexOf(lane);
    return LIFTS[key] && (() => this.move(i, this.state.products[i] + LIFTS[key] * Math.LN2));
  }

  write(field, i) {
    const { products } = this.state;
    const value = this.writtenIn(field, i in products ? PRODUCTS : DIVISORS);
    if (value === undefined) return;
    const by = this.slope ? i : 0;
    this.change(i in products ? { products: products.with(i, value), by } : { divide: value });
  }

  add() {
    const products = this.state.products.map((n) => unrounded(n + 5));
    if (Math.max(...products) <= HIGHEST) return this.change({ products });
    this.say(`With 5 more a number would be past ${HIGHEST}. Nothing has changed.`);
  }

  choose(lane) {
    const by = this.lanes.indexOf(lane);
    if (this.slope && by != this.state.by) this.change({ by });
  }

  toQuery() {
    const { first, words } = this;
    const { products, divide, hidden, away, by } = this.state;
    const plain = (n) => (timesLn2(n) ? byLn2(n).replace("−", "-") : `${n}`);
    return [
      ...words.map((word, i) => [word, products[i] != first.products[i] && plain(products[i])]),
      ["divide", divide != first.divide && divide],
      ["hide", words.filter((_, i) => hidden[i]).join(" ")],
      ["largest", away && "away"],
      ["by", by && words[by]],
    ].filter(([, value]) => value);
  }

  forms() {
    const { words } = this;
    const known = (list) => (list.every((word) => words.includes(word)) ? list : undefined);
    return {
      ...Object.fromEntries(words.map((word) => [word, PRODUCTS])),
      divide: DIVISORS,
      hide: [(text) => known(text.split(" ")), `some of ${words.join(", ")}, with spaces between`],
      largest: [(text) => (text == "away" ? text : undefined), "away"],
      ...(this.slope && { by: oneOf(...words) }),
    };
  }

  applyQuery(entries) {
    const [given, wrong] = parse(this.forms(), entries);
    if (wrong) return wrong;
    const { words, first } = this;
    const { divide = first.divide, hide = [], largest, by = words[0], ...moved } = given;
    this.restore({
      products: words.map((word, i) => moved[word] ?? first.products[i]),
      divide,
      hidden: words.map((word) => hide.includes(word)),
      away: !!largest,
      by: words.indexOf(by),
    });
  }
}

define("tl-bench", (element) => new Bench(element).wake("Link to this bench"));
