// Ask the model: a sentence of its tokens, where each head attends from the chosen one, which is
// next, and what each term adds to a logit. A head can be silenced.

import { all, define } from "../../shared.js";
import { Exhibit, oneOf } from "../exhibit.js";
import { nextProbabilities, forward, terms, unpackModel } from "../model.js";

const BOS = "<bos>"; // stands in front of a sentence, if it is the first token
const LEAST = 0.05; // of a weight that is drawn as an arc
const SPACE = "\u00a0"; // where a line does not break

const threeDecimals = (number) => number.toFixed(3);
const probabilityText = (number) => (number < 0.0005 ? "< 0.001" : threeDecimals(number));
const signedText = (number) => {
  const text = Math.abs(number).toFixed(2);
  return `${number < 0 && Number(text) ? "−" : "+"}${text}`;
};
const topOf = (numbers, count) =>
  Array.from(numbers, (_, i) => i).sort((a, b) => numbers[b] - numbers[a]).slice(0, count);
const sumOf = (numbers) => numbers.reduce((a, b) => a + b);

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
const drawArcs = (svg, cells, query, heads, H) => {
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

class Ask extends Exhibit {
  constructor(element, weights) {
    super(element);
    this.model = unpackModel(weights);
    this.first = this.given.first;
    this.line = element.querySelector(".tl-sentence");
    [this.field] = this.fields;
    this.menus = all(element, "select");
    [this.after, this.adds] = all(element, ".tl-after, .tl-paths th:nth-child(3)");
    [this.coming, this.rows] = this.bodies;
    this.switches = all(element, ".tl-silence > button");
    this.heads = this.switches.map((button) => button.textContent);
  }

  listen() {
    this.rove([this.switches]);
    this.field.onchange = () => this.type();
    this.resets("The sentence is as it was.");
    ["word", "minus"].forEach((part, i) => {
      this.menus[i].onchange = () =>
        this.change({ [part]: this.menus[i].value }, () => this.mostText());
    });
    this.switches.forEach((button, i) => {
      const row = this.rows[i + 1];
      button.onclick = () => this.silence(this.heads[i]);
      for (const shows of [button, row])
        [shows.onpointerenter, shows.onpointerleave] = [() => this.draw(i), () => this.draw()];
      [button.onfocus, button.onblur] = [() => this.draw(i), () => this.draw()];
    });
    new ResizeObserver(() => this.draw()).observe(this.line);
  }

  type() {
    const [known, expected] = this.forms().text;
    const stranger = this.split(this.field.value).find((name) => !this.given.tokens.includes(name));
    const words = stranger ? `${expected}, and “${stranger}” is none of them` : expected;
    const text = this.writtenIn(this.field, [known, words]);
    if (text !== undefined) this.change({ text, query: "" }, () => this.nextText());
  }

  // Silence a head.
  enter(button) {
    if (this.switches.includes(button)) this.silence(button.textContent);
  }

  silence(head) {
    const others = this.silenced.filter((other) => other != head);
    const quiet = others.length == this.silenced.length;
    const { asked } = this;
    const value = () =>
      this.state.minus ? signedText(sumOf(this.added)) : probabilityText(this.chances[asked]);
    const [was, what] = [value(), this.splitText(asked)];
    const which = `Head ${head} ${quiet ? "is silenced" : "is no longer silenced"}`;
    this.change(
      { silenced: (quiet ? [...others, head] : others).join() },
      () => `${which}: ${what} goes from ${was} to ${value()}. ${this.nextText()}`
    );
  }

  // The tokens of a text.
  split(text) {
    const { tokens } = this.given;
    const letters = tokens.every((token) => token.length == 1);
    const typed = letters ? [...text.replace(/\s/g, "")] : text.split(/\s+/).filter(Boolean);
    return tokens[0] == BOS ? [BOS, ...typed] : typed;
  }

  restore(state) {
    this.state = state;
    const { tokens } = this.given;
    const [word, minus] = [state.word, state.minus].map((token) => tokens.indexOf(token));
    this.names = this.split(state.text);
    this.ids = this.names.map((name) => tokens.indexOf(name));
    this.chosen = state.query === "" ? this.ids.length - 1 : Number(state.query);
    this.silenced = state.silenced.split(",").filter(Boolean);
    const made = forward(this.model, this.ids, this.silenced);
    const parts = terms(this.model, made, this.chosen);
    this.chances = nextProbabilities(parts);
    this.weights = made.heads.flat().map(({ weights }) => weights[this.chosen]);
    this.asked = word < 0 ? topOf(this.chances, 1)[0] : word;
    this.compared = [word, minus].filter((token) => token >= 0);
    const added = (term) => term[this.asked] - (minus < 0 ? 0 : term[minus]);
    this.added = parts.map(added);
    const whole = forward(this.model, this.ids);
    this.most = Math.max(...terms(this.model, whole, this.chosen).map(added).map(Math.abs));
    this.paint();
  }

  paint() {
    const { text, word, minus } = this.state;
    this.spell();
    this.cells.forEach((cell, i) => {
      cell.ariaChecked = i == this.chosen;
      cell.tabIndex = i == this.chosen ? 0 : -1;
    });
    this.field.value = text;
    this.field.ariaInvalid = null;
    this.switches.forEach((button, i) => {
      button.ariaPressed = this.silenced.includes(this.heads[i]);
    });
    this.after.lastElementChild.textContent = this.names[this.chosen];
    const following = this.following(this.coming.length);
    this.coming.forEach((row, i) => this.list(row, following[i]));
    this.rows.forEach((row, i) => this.term(row, i));
    this.adds.textContent = `adds to ${this.splitText(this.asked)}`;
    [word, minus].forEach((token, i) => {
      const not = i ? this.given.tokens[this.asked] : minus;
      this.menus[i].value = token;
      for (const option of this.menus[i].options)
        option.disabled = option.value && option.value == not;
    });
    this.draw();
  }

  // Write the sentence anew, if it is another: each token a cell, of which one is chosen.
  spell() {
    if (`${this.cells?.map((cell) => cell.firstChild.data)}` == `${this.names}`) return;
    this.cells = this.names.map((name, t) => {
      const [cell, number] = ["span", "small"].map((kind) => document.createElement(kind));
      cell.className = "tl-word";
      cell.append(name, number);
      number.textContent = t;
      number.ariaHidden = true;
      if (this.nameOf(t) != name) cell.ariaLabel = `${name}, position ${t}`;
      return cell;
    });
    this.line.replaceChildren(this.line.firstElementChild, ...this.cells);
    this.offer(this.cells, "tokens of the sentence");
    this.cells.forEach((cell) => (cell.onclick = () => (cell.focus(), this.say(this.nextText()))));
  }

  choose(cell) {
    const query = this.cells.indexOf(cell);
    if (query < 0 || query == this.chosen) return;
    const last = query == this.cells.length - 1;
    this.change({ query: last ? "" : `${query}` }, () => this.nextText());
  }

  // A token, with its position where it occurs twice.
  nameOf(t) {
    const name = this.names[t];
    const once = this.names.indexOf(name) == this.names.lastIndexOf(name);
    return once ? name : `${name}${SPACE}(${t})`;
  }

  // Write a next token and its probability into a row.
  list(row, token) {
    const [name, bar, chance] = row.cells;
    name.textContent = this.given.tokens[token];
    chance.textContent = probabilityText(this.chances[token]);
    bar.firstElementChild.style.width = `${100 * this.chances[token]}%`;
    row.toggleAttribute("data-asked", this.compared.includes(token));
  }

  // The tokens that are compared, and behind them the most probable others.
  following(count) {
    const others = topOf(this.chances, count).filter((token) => !this.compared.includes(token));
    return [...this.compared, ...others].slice(0, count);
  }

  // Write into a row of the terms what its head attends to, and what it adds.
  term(row, i) {
    const head = this.heads[i - 1];
    if (head) {
      const quiet = this.silenced.includes(head);
      const [first = "", ...rest] = quiet ? ["silenced"] : this.keysOf(i - 1);
      row.cells[1].textContent = first;
      rest.forEach((text) => {
        row.cells[1].appendChild(document.createElement("span")).textContent = `, ${text}`;
      });
      row.toggleAttribute("data-quiet", quiet);
    }
    const [text, svg] = row.cells[2].children;
    text.textContent = signedText(this.added[i] ?? sumOf(this.added));
    const width = Math.min((50 * Math.abs(this.added[i])) / (this.most || 1), 50);
    svg?.firstElementChild.setAttribute("x", this.added[i] < 0 ? -width : 0);
    svg?.firstElementChild.setAttribute("width", width);
  }

  // The keys with the largest weights of a head.
  keysOf(i) {
    const row = this.weights[i];
    const seen = topOf(row, 2).filter((s) => row[s] >= 0.0005);
    return seen.map((s) => `${this.nameOf(s)}${SPACE}${threeDecimals(row[s])}`);
  }

  // What is split.
  splitText(token) {
    const { minus } = this.state;
    return `“${this.given.tokens[token]}”${minus ? ` − “${minus}”` : ""}`;
  }

  // Which term adds most to it.
  mostText() {
    const [top] = topOf(this.added, 1);
    const which = top ? `Head ${this.heads[top - 1]}` : "The token itself";
    const [term, total] = [this.added[top], sumOf(this.added)].map(signedText);
    return `${which} adds most to ${this.splitText(this.asked)}: ${term} of ${total}.`;
  }

  nextText() {
    const name = (token) => `“${this.given.tokens[token]}” ${probabilityText(this.chances[token])}`;
    const twice = this.cells[this.chosen].ariaLabel ? `, position ${this.chosen}` : "";
    const next = this.following(3).map(name).join(", ");
    return `Next after “${this.names[this.chosen]}”${twice}: ${next}.`;
  }

  // Draw the arcs of all heads, or of one.
  draw(only) {
    const hidden = (i) => (only ?? i) != i || this.silenced.includes(this.heads[i]);
    const heads = this.weights.map((row, i) => (hidden(i) ? null : row));
    drawArcs(this.line.firstElementChild, this.cells, this.chosen, heads, this.model.sizes.H);
  }

  forms() {
    const { tokens, positions } = this.given;
    const most = positions - (tokens[0] == BOS);
    const known = (text) => {
      const names = this.split(text).slice(tokens[0] == BOS);
      const fits = names.length > 0 && names.length <= most;
      return fits && names.every((name) => name != BOS && tokens.includes(name)) ? text : undefined;
    };
    const heads = (text) =>
      text.split(",").every((head) => this.heads.includes(head)) || !text ? text : undefined;
    const ends = `${this.heads[0]} to ${this.heads.at(-1)}`;
    const token = [oneOf("", ...tokens)[0], "a token of the model"];
    return {
      text: [known, `1 to ${most} tokens of the list at the end`],
      query: [(text) => (/^\d*$/.test(text) ? text : undefined), "a position of the sentence"],
      silenced: [heads, `heads from ${ends}, with commas between`],
      word: token,
      minus: token,
    };
  }

  misfit({ text, query }) {
    const last = this.split(text).length - 1;
    if (query > last) return `query is “${query}”; expected a position from 0 to ${last}.`;
  }

  told() {
    const quiet = this.silenced.length ? `Silenced: ${this.silenced.join(", ")}. ` : "";
    return quiet + this.nextText();
  }
}

define("tl-ask", (element) => {
  const { name } = JSON.parse(element.querySelector("[data-given]").dataset.given);
  const weights = globalThis.tlModels?.[name];
  // In an untrusted notebook, or where Python ran in the page with other weights.
  if (!weights) return element.toggleAttribute("data-bare", true);
  new Ask(element, weights).wake("Link to this sentence");
});
