// Ask the model: a sentence of its words, where each head attends from the chosen one, which is
// next, and what each term adds to a logit. A head can be silenced.

import { all, define } from "../../shared.js";
import { Exhibit } from "../exhibit.js";
import { chances, forward, terms, unpack } from "../model.js";
import { drawArcs } from "./arcs.js";
import { linked, nounOf, read, spelled } from "./typed.js";

const KEYS = 2; // that are named for a head

const three = (number) => number.toFixed(3);
const chanceOf = (number) => (number < 0.0005 ? "< 0.001" : three(number));
const signed = (number) => {
  const text = Math.abs(number).toFixed(2);
  return `${number < 0 && Number(text) ? "−" : "+"}${text}`;
};
const largest = (numbers, count) =>
  Array.from(numbers, (_, i) => i).sort((a, b) => numbers[b] - numbers[a]).slice(0, count);
const add = (a, b) => a + b;
const write = (node, text) => node.textContent != text && (node.textContent = text);

class Ask extends Exhibit {
  constructor(element, weights) {
    super(element);
    this.model = unpack(weights);
    const { positions, H } = this.model.sizes;
    const { ids, word, minus } = this.given;
    this.given.positions = positions;
    this.line = element.querySelector(".tl-sentence");
    this.field = element.querySelector("[type=text]");
    this.menus = all(element, "select");
    [this.after, this.adds] = all(element, ".tl-after, .tl-paths th:nth-child(3)");
    this.scales = new Map();
    // The words that come next, or those that are compared and behind them others, in a fold.
    this.coming = all(element, ".tl-answer tbody").map((body) => [...body.rows]);
    this.rows = this.coming.pop();
    this.chips = all(element, "details button");
    this.switches = all(element, ".tl-silence > button");
    this.unsilence = this.switches.pop();
    [this.away, this.reset] = all(element, ".tl-asked > .tl-row:not(.tl-silence) > button");
    this.heads = this.rows.slice(1, -1).map((_, i) => `${Math.floor(i / H)}.${i % H}`);
    this.first = { ids, query: ids.length - 1, silenced: [], word, minus };
    this.listen();
    this.paint(this.first);
  }

  listen() {
    const { words } = this.given;
    this.line.role = "radiogroup";
    this.line.ariaLabel = `${nounOf(words)}s of the sentence`;
    this.news.id = `${this.element.id}-said`;
    this.rove([this.chips]);
    this.rove([this.switches]);
    this.rove(this.rows.slice(1, -1).map((row) => [row.cells[0]]));
    this.chips.forEach((chip) => (chip.onclick = () => this.enter(chip)));
    this.field.onchange = () => this.type(this.field.value);
    this.away.onclick = () => this.take();
    this.unsilence.onclick = () => this.change({ silenced: [] });
    this.reset.onclick = () => {
      this.scales = new Map();
      this.change(this.first, () => `The sentence is as it was. ${this.sentence()}`);
    };
    ["word", "minus"].forEach((name, i) => {
      const menu = this.menus[i];
      menu.onchange = () => this.change({ [name]: words.indexOf(menu.value) }, () => this.most());
    });
    this.switches.forEach((button, i) => {
      const row = this.rows[i + 1];
      button.onclick = () => this.silence(this.heads[i]);
      for (const shows of [button, row])
        [shows.onpointerenter, shows.onpointerleave] = [() => this.draw(i), () => this.draw()];
      for (const stop of [button, row.cells[0]])
        [stop.onfocus, stop.onblur] = [() => this.draw(i), () => this.draw()];
    });
    new ResizeObserver(() => this.draw()).observe(this.line);
  }

  // Change the state as a reader did, and say what the model says now.
  change(part, told = () => this.sentence()) {
    this.still(() => {
      this.paint({ ...this.state, ...part });
      this.say(told());
    });
    this.changed();
  }

  // Do what makes the sentence, or what is said, higher or lower, and bring everything below
  // both back to where it was on the screen: what is pressed stays under the finger.
  still(act) {
    const top = () => this.field.getBoundingClientRect().top;
    const was = top();
    act();
    scrollBy({ top: top() - was, behavior: "instant" });
  }

  refuse(words) {
    this.still(() => this.say(`${words} Nothing has changed.`));
  }

  type(text) {
    const ids = read(text, this.given);
    if (typeof ids != "string") return this.change({ ids, query: ids.length - 1 });
    this.mark(true);
    this.refuse(ids);
  }

  // Mark the field as wrong, and tie it to what is said of it.
  mark(wrong) {
    this.field.ariaInvalid = wrong || null;
    if (wrong) this.field.setAttribute("aria-describedby", this.news.id);
    else this.field.removeAttribute("aria-describedby");
  }

  // Silence a head, put a word after the chosen one, or remove the chosen one.
  enter(chip) {
    const head = this.heads[this.switches.indexOf(chip)];
    if (head) return this.silence(head);
    if (this.cells.includes(chip)) this.still(() => this.say(this.sentence()));
    if (!this.chips.includes(chip)) return;
    const { ids, query } = this.state;
    const { words, positions } = this.given;
    const id = words.indexOf(chip.textContent);
    if (ids.length == positions)
      return this.refuse(`The model has ${positions} positions, and all are taken.`);
    this.change({ ids: ids.toSpliced(query + 1, 0, id), query: query + 1 });
  }

  take() {
    const { ids, query } = this.state;
    const { words } = this.given;
    const bos = words[ids[query]] == "<bos>";
    const held = bos ? "“<bos>” is put in front by itself" : `It is the only ${nounOf(words)}`;
    if (bos || ids.filter((id) => words[id] != "<bos>").length == 1)
      return this.refuse(`${held}.`);
    this.change({ ids: ids.toSpliced(query, 1), query: Math.max(query - 1, 0) });
  }

  silence(head) {
    const { silenced } = this.state;
    const others = silenced.filter((other) => other != head);
    const quiet = others.length == silenced.length;
    const { asked } = this;
    const sum = () => signed(this.added.reduce(add));
    const told = () => (this.state.minus < 0 ? chanceOf(this.chances[asked]) : sum());
    const [was, what] = [told(), this.named(asked)];
    const which = `Head ${head} ${quiet ? "is silenced" : "is no longer silenced"}`;
    const message = () => `${which}: ${what} goes from ${was} to ${told()}. ${this.sentence()}`;
    this.change({ silenced: quiet ? [...others, head] : others }, message);
  }

  // Show a state. The model goes forward where its words or its heads have changed.
  paint(state) {
    const was = this.state;
    this.state = state;
    const { ids, query, silenced, word } = state;
    if (`${was?.ids} ${was?.silenced}` != `${ids} ${silenced}`)
      this.made = forward(this.model, ids, silenced);
    this.terms = terms(this.model, this.made, query);
    this.chances = chances(this.terms);
    this.weights = this.made.heads.flat().map(({ weights }) => weights[query]);
    this.asked = word < 0 ? largest(this.chances, 1)[0] : word;
    if (`${was?.ids}` != `${ids}`) this.spell();
    this.cells.forEach((cell, i) => {
      cell.ariaChecked = i == query;
      cell.tabIndex = i == query ? 0 : -1;
    });
    this.field.value = spelled(ids, this.given.words);
    this.mark(false);
    this.tabulate();
    this.split();
    this.draw();
    this.relink();
  }

  // Write the sentence anew: each word a cell, of which one is chosen.
  spell() {
    this.cells?.forEach((cell) => this.spots.delete(cell));
    this.cells = this.state.ids.map((id, position) => {
      const [cell, number] = ["span", "small"].map((name) => document.createElement(name));
      cell.className = "tl-word";
      cell.role = "radio";
      cell.append(this.given.words[id], number);
      number.textContent = position;
      number.ariaHidden = true;
      cell.onclick = () => (cell.focus(), this.enter(cell));
      return cell;
    });
    this.names = this.state.ids.map((id, position, ids) => {
      const twice = ids.indexOf(id) != ids.lastIndexOf(id);
      if (twice) this.cells[position].ariaLabel = `${this.given.words[id]}, position ${position}`;
      return this.given.words[id] + (twice ? `\u00a0(${position})` : "");
    });
    const had = this.line.contains(document.activeElement);
    this.line.replaceChildren(this.line.firstElementChild, ...this.cells);
    this.rove([this.cells]);
    if (had) this.cells[this.state.query].focus();
  }

  choose(cell) {
    const query = this.cells.indexOf(cell);
    if (query >= 0 && query != this.state.query) this.change({ query });
  }

  keyed(cell, { key }) {
    const takes = this.cells.includes(cell) && ["Backspace", "Delete"].includes(key);
    return takes && (() => this.take());
  }

  // Write the next words, and what each head attends to.
  tabulate() {
    const { words } = this.given;
    const { query, ids, silenced } = this.state;
    this.after.lastElementChild.textContent = words[ids[query]];
    const shown = this.following(this.coming.flat().length);
    this.coming.forEach((rows) => this.list(rows, shown.splice(0, rows.length)));
    this.heads.forEach((head, i) => {
      const row = this.rows[i + 1];
      const quiet = silenced.includes(head);
      const [first = "", ...rest] = quiet ? ["silenced"] : this.looks(i);
      row.cells[1].textContent = first;
      rest.forEach((text) => {
        row.cells[1].appendChild(document.createElement("span")).textContent = `, ${text}`;
      });
      row.toggleAttribute("data-quiet", quiet);
      this.switches[i].ariaPressed = quiet;
    });
    this.unsilence.disabled = !silenced.length;
  }

  // Write words and their probabilities into rows.
  list(rows, shown) {
    const most = this.scale(rows, shown.map((word) => this.chances[word]));
    shown.forEach((word, i) => {
      const [name, bar, chance] = rows[i].cells;
      write(name, this.given.words[word]);
      write(chance, chanceOf(this.chances[word]));
      bar.firstElementChild.style.width = `${(100 * this.chances[word]) / most}%`;
      rows[i].toggleAttribute("data-asked", this.compared().includes(word));
    });
  }

  // The largest number that the bars of some rows have had: they keep their scale until Reset.
  scale(rows, numbers) {
    const most = Math.max(this.scales.get(rows) ?? 0, ...numbers.map(Math.abs));
    this.scales.set(rows, most);
    return most || 1;
  }

  // The words that are compared, and behind them the most probable others.
  compared() {
    return [this.state.word, this.state.minus].filter((word) => word >= 0);
  }

  following(count) {
    const pair = this.compared();
    const others = largest(this.chances, count).filter((word) => !pair.includes(word));
    return [...pair, ...others].slice(0, count);
  }

  looks(i) {
    const row = this.weights[i];
    const seen = largest(row, KEYS).filter((s) => row[s] >= 0.0005);
    return seen.map((s) => `${this.names[s]}\u00a0${three(row[s])}`);
  }

  // Write what each term adds to the logit, or to the difference of two.
  split() {
    const { words } = this.given;
    const { word, minus } = this.state;
    this.added = this.terms.map((term) => term[this.asked] - (minus < 0 ? 0 : term[minus]));
    const most = this.scale(this.rows, this.added);
    this.rows.forEach((row, i) => {
      const [text, svg] = row.cells[2].children;
      write(text, signed(this.added[i] ?? this.added.reduce(add)));
      const width = (50 * Math.abs(this.added[i])) / most;
      svg?.firstElementChild.setAttribute("x", this.added[i] < 0 ? -width : 0);
      svg?.firstElementChild.setAttribute("width", width);
    });
    write(this.adds, `adds to ${this.named(this.asked)}`);
    [word, minus].forEach((id, i) => {
      const not = words[[minus, this.asked][i]];
      this.menus[i].value = words[id] ?? "";
      for (const option of this.menus[i].options) option.disabled = option.value == not;
    });
  }

  // What is split.
  named(word) {
    const off = this.given.words[this.state.minus];
    return `“${this.given.words[word]}”${off ? ` − “${off}”` : ""}`;
  }

  // Say which term adds most to it.
  most() {
    const [top] = largest(this.added, 1);
    const which = top ? `Head ${this.heads[top - 1]}` : `The ${nounOf(this.given.words)} itself`;
    const [term, sum] = [this.added[top], this.added.reduce(add)].map(signed);
    return `${which} adds most to ${this.named(this.asked)}: ${term} of ${sum}.`;
  }

  // Draw the arcs of all heads, or of one.
  draw(only) {
    const { query, silenced } = this.state;
    const hidden = (i) => (only ?? i) != i || silenced.includes(this.heads[i]);
    const heads = this.weights.map((row, i) => (hidden(i) ? null : row));
    drawArcs(this.line.firstElementChild, this.cells, query, heads, this.model.sizes.H);
  }

  sentence() {
    const { words } = this.given;
    const { ids, query } = this.state;
    const told = (word) => `“${words[word]}” ${chanceOf(this.chances[word])}`;
    const next = this.following(Math.min(3, this.coming[0].length)).filter(
      (word) => this.compared().includes(word) || this.chances[word] >= 0.0005);
    const where = this.cells[query].ariaLabel ? `, position ${query}` : "";
    return `Next after “${words[ids[query]]}”${where}: ${next.map(told).join(", ")}.`;
  }

  toQuery() {
    const { words } = this.given;
    const { ids, query, silenced, word, minus } = this.state;
    return [
      ...(`${ids}` == `${this.first.ids}` ? [] : [["text", spelled(ids, words)]]),
      ...(query == ids.length - 1 ? [] : [["query", query]]),
      ...(silenced.length ? [["silenced", silenced.join()]] : []),
      ...(word == this.first.word ? [] : [["word", words[word] ?? ""]]),
      ...(minus == this.first.minus ? [] : [["minus", words[minus] ?? ""]]),
    ];
  }

  applyQuery(entries) {
    const next = linked(entries, this.given, this.heads);
    if (typeof next == "string") return next;
    this.paint({ ...this.first, ...next });
  }

  announce() {
    const { silenced } = this.state;
    const quiet = silenced.length ? `Silenced: ${silenced.join(", ")}. ` : "";
    this.say(quiet + this.sentence());
  }
}

define("tl-ask", (element) => {
  const { name } = JSON.parse(element.querySelector("[data-given]").dataset.given);
  const weights = globalThis.tlModels?.[name];
  // In an untrusted notebook, or where Python ran in the page with other weights.
  if (!weights) return element.toggleAttribute("data-bare", true);
  new Ask(element, weights).addLink("Link to this sentence");
});
