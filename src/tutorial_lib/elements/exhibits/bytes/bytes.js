// The byte calculator: a model, its users and their tokens give the bytes of a cache, and a picture
// of them beside the weights.

import { all, define } from "../../shared.js";
import { Exhibit, oneOf } from "../exhibit.js";

const OWN = "my own";
const COUNTS = ["tokens", "users"]; // that have a slider
const UNITS = ["bytes", "kB", "MB", "GB", "TB", "PB"];
const SHORT = { "": 1, k: 2 ** 10, m: 2 ** 20 };
// The picture ends at 10 ** 3 bytes below, at 10 ** 16 above, and at 2 ** 20 tokens on the right.
const yOf = (bytes) => (100 * (16 - Math.min(Math.max(Math.log10(bytes), 3), 16))) / 13;
const xOf = (tokens) => (100 * Math.log2(tokens)) / 20;

const whole = (number) => number.toLocaleString("en", { maximumFractionDigits: 1 });
// Three digits that count, never as a power of ten.
const rounded = (number) =>
  Number(number.toPrecision(3)).toLocaleString("en", { maximumFractionDigits: 20 });
const inBytes = (bytes) => {
  const power = Math.min(Math.max(Math.floor(Math.log10(bytes) / 3), 0), UNITS.length - 1);
  return `${rounded(bytes / 1000 ** power)}\u00a0${UNITS[power]}`;
};
const several = (count, name) => `${whole(count)} ${name}${count == 1 ? "" : "s"}`;

// A number as it is typed: 32768, 32,768, 1e3, 32k; nothing, if it is none.
const toNum = (text) => {
  const [, digits, unit] =
    text.replace(/[,\s]/g, "").match(/^(\d+\.?\d*(?:e\d+)?|\.\d+)([km]?)$/i) || [];
  return digits && Number(digits) * SHORT[unit.toLowerCase()];
};

// What a list or a field takes.
const formOf = ({ options, dataset }) => {
  if (options) return oneOf(...[...options].map((option) => option.value));
  const [least, most] = [dataset.least, dataset.most].map(Number);
  const counts = "whole" in dataset;
  const fits = (number) => number >= least && number <= most && !(counts && number % 1);
  const kind = counts ? "a whole number" : "a number";
  return [(text) => [toNum(text)].find(fits), `${kind} from ${rounded(least)} to ${whole(most)}`];
};

class ByteCalculator extends Exhibit {
  constructor(element) {
    super(element);
    this.fields = new Map(all(element, "[data-key]").map((one) => [one.dataset.key, one]));
    this.own = element.querySelector("[data-own]");
    this.curve = element.querySelector("polyline");
    this.line = element.querySelector(".tl-weigh");
    [this.name, this.dot] = all(element, ".tl-plot > b");
    this.sums = all(element, ".tl-sums td");
    this.title = element.querySelector(".tl-sums tr:nth-child(2) th");
    this.models = new Map(all(element, "tr[data-cached]").map((row) => [
      row.firstElementChild.textContent,
      row.dataset.cached.split(" ").map(Number),
    ]));
    this.first = Object.fromEntries(Object.entries(this.forms()).map(([key, [read]]) => {
      const field = this.fields.get(key);
      return [key, read(field.defaultValue ?? field.querySelector("[selected]").value)];
    }));
  }

  listen() {
    this.fields.forEach((field, key) => {
      field.onchange = () => this.write(key);
      field.onkeydown = (event) => {
        if (event.key == "Escape") this.restore(this.state);
      };
    });
    this.sliders.forEach((slider, i) => {
      slider.oninput = () => this.write(COUNTS[i], 2 ** slider.value);
    });
    this.buttons[0].onclick = () => this.say(this.answer());
    this.restore(this.first);
    this.resets(`One user of ${this.first.model} is back. ${this.sentence()}`);
  }

  forms() {
    return Object.fromEntries([...this.fields].map(([key, field]) => [key, formOf(field)]));
  }

  misfit(state) {
    const exact = Number.isSafeInteger(Math.ceil(this.cache(state)));
    return exact ? "" : "That is more bytes than can be counted; expected fewer.";
  }

  // A field or its slider has a new text: the state follows, or stays with the reason said.
  write(key, text = this.fields.get(key).value) {
    const field = this.fields.get(key);
    field.value = text;
    const value = this.writtenIn(field, formOf(field));
    if (value === undefined) return;
    const next = { ...this.state, [key]: value };
    const wrong = this.misfit(next);
    field.ariaInvalid = wrong ? true : null;
    if (wrong) return this.say(`${wrong} Nothing has changed.`);
    this.restore(next);
    this.changed(this.sentence());
  }

  // Entries that the model of a state caches: per token, per token of the window, the window, once;
  // and its parameters, and how many positions it has learned, if it learns any.
  sizes(state) {
    if (state.model != OWN) return this.models.get(state.model);
    const widths = state.d_k + state.d_v;
    const growing = state.layers * state.heads * widths;
    return [growing, 0, 0, 0, 1e9 * state.billions, 0];
  }

  cache(state, tokens = state.tokens) {
    const [growing, windowed, window, fixed] = this.sizes(state);
    const numbers = growing * tokens + windowed * Math.min(tokens, window) + fixed;
    return (numbers * state.users * state.bits) / 8;
  }

  weights(state) {
    return (this.sizes(state)[4] * state.weights) / 8;
  }

  // From so many tokens on the cache is the larger; Infinity, if it never is.
  crossing(state) {
    const [growing, windowed, window, fixed] = this.sizes(state);
    const left = (8 * this.weights(state)) / (state.users * state.bits) - fixed;
    if (left < 0) return 0;
    const early = Math.floor(left / (growing + windowed)) + 1;
    if (early <= window || !windowed) return early;
    return growing ? Math.floor((left - windowed * window) / growing) + 1 : Infinity;
  }

  sentence() {
    const { state } = this;
    const times = rounded(this.cache(state) / this.weights(state));
    const who = `The cache of ${several(state.users, "user")} at ${several(state.tokens, "token")}`;
    const is = `${who} is ${inBytes(this.cache(state))}, ${times} × the weights.`;
    return is + this.limit(state.tokens);
  }

  // The answer to the question, which is told only to a reader who asks for it.
  answer() {
    const { state } = this;
    const who = `The cache of ${several(state.users, "user")}`;
    const crossing = this.crossing(state);
    if (crossing == Infinity) return `${who} never outgrows the weights, however long it gets.`;
    const each = state.users > 1 ? " each" : "";
    const from = `${several(crossing, "token")}${each}`;
    return `${who} outgrows the weights at ${from}.${this.limit(crossing)}`;
  }

  // What is added where the model has not learned so many positions.
  limit(tokens) {
    const positions = this.sizes(this.state)[5];
    if (!positions || positions >= tokens) return "";
    return ` But ${this.state.model} has learned ${whole(positions)} positions only.`;
  }

  paint() {
    const { state } = this;
    this.fields.forEach((field, key) => {
      field.value = typeof state[key] == "number" && field.type == "text"
        ? state[key].toLocaleString("en", { maximumFractionDigits: 20 })
        : state[key];
      field.removeAttribute("aria-invalid");
    });
    this.sliders.forEach((slider, i) => {
      const name = COUNTS[i];
      slider.value = Math.round(Math.log2(state[name]));
      slider.ariaValueText = several(state[name], name.slice(0, -1));
    });
    this.own.hidden = state.model != OWN;
    this.draw(state);
    this.tabulate(state);
  }

  draw(state) {
    const points = Array.from({ length: 81 }, (_, i) => {
      const tokens = 2 ** (i / 4);
      return `${xOf(tokens).toFixed(2)},${yOf(this.cache(state, tokens)).toFixed(2)}`;
    });
    this.curve.setAttribute("points", points.join(" "));
    const level = yOf(this.weights(state)).toFixed(2);
    this.line.setAttribute("d", `M0 ${level}H100`);
    this.name.style.top = `${level}%`;
    this.dot.style.left = `${xOf(state.tokens).toFixed(2)}%`;
    this.dot.style.top = `${yOf(this.cache(state)).toFixed(2)}%`;
    this.dot.toggleAttribute("data-end", state.tokens > 2 ** 14);
  }

  tabulate(state) {
    const exact = (bytes) => `${whole(bytes)} bytes = ${inBytes(bytes)}`;
    const [growing, windowed, window, fixed] = this.sizes(state);
    const of = (numbers) => whole((numbers * state.bits) / 8);
    const parts = [
      growing && `${of(growing)} bytes`,
      windowed && `${of(windowed)} of each of the last ${whole(window)}`,
      fixed && `${of(fixed)} once`,
    ];
    this.sums[0].textContent = parts.filter(Boolean).join(" and ");
    this.sums[1].textContent = exact(this.cache(state));
    this.sums[2].textContent = exact(this.weights(state));
    const users = several(state.users, "user");
    this.title.textContent = `cache of ${users} at ${several(state.tokens, "token")}`;
  }

  toQuery() {
    const asked = (key) => this.state.model == OWN || !this.own.contains(this.fields.get(key));
    return super.toQuery().filter(([key]) => asked(key));
  }

  told() {
    return `The numbers of the link are here. ${this.sentence()}`;
  }
}

define("tl-bytes", (element) => new ByteCalculator(element).wake("Link to these numbers"));
