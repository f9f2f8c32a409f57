// The softmax tile by tile: scores are folded into the maximum, the total and the mix of their
// queries, in tiles of any size and in any order.

import { all, define } from "../../shared.js";
import { Exhibit, oneOf } from "../exhibit.js";
import { numText } from "../numbers.js";

const TILE_ORDERS = {
  rows: (a, b) => a.i - b.i || a.j - b.j,
  columns: (a, b) => a.j - b.j || a.i - b.i,
  last: (a, b) => a.i - b.i || b.j - a.j,
};
const BY_ORDER = { rows: "row by row", columns: "column by column", last: "last keys first" };
const FATES = { now: "just folded in", in: "is in", skipped: "skipped" };

// Positions from 0 up to a number.
const range = (n) => Array.from({ length: n }, (_, i) => i);

// T positions in blocks of a size.
const blocksOf = (T, size) =>
  range(Math.ceil(T / size)).map((i) => range(T).slice(i * size, (i + 1) * size));

// Blocks of queries by blocks of keys, each with how many pairs the causal mask leaves.
const tilesOf = (T, rows, columns) => {
  const across = blocksOf(T, columns);
  return blocksOf(T, rows).flatMap((queries, i) => across.map((keys, j) => {
    const pairs = queries.flatMap((t) => keys.filter((s) => s <= t)).length;
    return { n: i * across.length + j, i, j, queries, keys, pairs };
  }));
};

// What a query has before its first key.
const EMPTY = { maximum: -Infinity, total: 0, mixed: [0, 0, 0, 0], came: 0 };

// Fold keys into what a query has, as fold_block of chapter 12 does, but with powers of 2. What is
// old is shrunk by the factor, unless that is left out.
const foldKeys = (row, scores, values, shrinks) => {
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

// So many things.
const counted = (n, one, more = `${one}s`) => `${n} ${n == 1 ? one : more}`;

// An array of fractions.
const vectorText = (numbers) => `(${numbers.map(numText).join(", ")})`;

const listText = (texts) =>
  texts.length > 1 ? `${texts.slice(0, -1).join(", ")} and ${texts.at(-1)}` : `${texts}`;
const blockText = (one, more, places) =>
  places.length > 1 ? `${more} ${places[0]}–${places.at(-1)}` : `${one} ${places[0]}`;

// Where a tile is.
const tileText = ({ queries, keys }) =>
  `${blockText("query", "queries", queries)}, ${blockText("key", "keys", keys)}`;

// What is chosen.
const chosenText = ({ state, tiles }) => {
  const { rows, keys, order, factor } = state;
  const beyond = tiles.filter(({ pairs }) => !pairs).length;
  const size = `${counted(rows, "query", "queries")} by ${counted(keys, "key")}`;
  const lost = factor == "no" ? ", and what is old will not be shrunk" : "";
  const count = `${counted(tiles.length, "tile")} of ${size}, ${BY_ORDER[order]}`;
  return `${count}: ${beyond || "none"} of them wholly beyond the mask${lost}.`;
};

// What the last tile did.
const stepText = ({ now, made, state, held, T }) => {
  const rose = now.queries.filter((t) => made[t].rose);
  const names = listText(rose.map((t) => `query ${t}`));
  const factors = listText(rose.map((t) => numText(made[t].factor)));
  const shrunk = `so old total and mixed are multiplied by ${factors}`;
  const done = state.factor == "no" ? "and nothing shrinks" : shrunk;
  const rise = rose.length ? `a higher maximum for ${names}, ${done}` : "no old maximum rises";
  const where = tileText(now).replace("q", "Q");
  return `${where}: ${rise}; ${held} numbers are held, the table has ${T ** 2}.`;
};

// How it ended.
const endText = (it) => {
  const { words, heads } = it.given;
  const wrong = range(it.T).filter((t) => !it.right(t));
  if (wrong.length) {
    const t = wrong.includes(2) ? 2 : wrong[0];
    const lands = `${vectorText(it.output(t))} in place of ${vectorText(heads[t])}`;
    const count = `${wrong.length} of ${it.T} outputs ${wrong.length == 1 ? "is" : "are"} wrong`;
    return `All pairs are in, but ${count}: query ${t}, ${words[t]}, ends at ${lands}.`;
  }
  const same = `bark ends at ${vectorText(it.output(2))}, and all outputs are plain attention's`;
  const count = `${counted(it.come.size, "tile")}, ${it.tiles.length - it.come.size} more skipped`;
  const most = `at most ${it.most} numbers were held, the table has ${it.T ** 2}`;
  return `After ${count}, ${same}; ${most}.`;
};

class Tiles extends Exhibit {
  first = { rows: 2, keys: 2, order: "rows", factor: "yes", tiles: "0" };

  constructor(element) {
    super(element);
    this.T = this.given.words.length;
    const [grid, held] = this.bodies;
    this.cells = grid.map((row) => all(row, "td"));
    this.rows = held.map((row) => [...row.cells].slice(1));
    this.choices = this.buttons.slice(0, -3);
    [this.forward, this.rest] = this.buttons.slice(-3);
  }

  listen() {
    this.forward.onclick = () => this.go(this.left.slice(0, 1));
    this.rest.onclick = () => this.go(this.left);
    this.reset.onclick = () => this.begin({});
    this.sliders.forEach((slider, i) => {
      slider.oninput = () => this.begin({ [i ? "keys" : "rows"]: Number(slider.value) });
    });
    this.choices.forEach((button, i) => (button.onclick = () => this.pick(i)));
    this.element.querySelector(".tl-scores").role = "grid";
    this.rove(this.cells);
    this.cells.flat().forEach((cell) => {
      cell.onclick = () => (cell.focus(), this.enter(cell));
    });
  }

  pick(i) {
    const order = Object.keys(TILE_ORDERS)[i];
    const other = this.state.factor == "yes" ? "no" : "yes";
    this.begin(order ? { order } : { factor: other });
  }

  begin(part) {
    this.change({ ...part, tiles: "" }, () => chosenText(this));
  }

  // Fold in tiles.
  go(tiles) {
    if (!tiles.length) return this.say("All pairs are in: start over, or choose anew.");
    const numbers = [...this.come, ...tiles].map(({ n }) => n);
    this.change({ tiles: numbers.join(".") });
  }

  told() {
    if (!this.left.length) return endText(this);
    return this.now ? stepText(this) : chosenText(this);
  }

  // Fold in the tile of a cell.
  enter(cell) {
    const { t, j } = this.spots.get(cell);
    const tile = this.tile(t, j);
    const where = `The tile of ${tileText(tile)}`;
    if (!tile.pairs) this.say(`${where} lies wholly beyond the mask, so it is skipped.`);
    else if (this.come.has(tile)) this.say(`${where} is in already.`);
    else this.go([tile]);
  }

  tile(t, s) {
    return this.tiles.find(({ queries, keys }) => queries.includes(t) && keys.includes(s));
  }

  // Fold in what the state names, from the beginning.
  run() {
    const { state } = this;
    this.tiles = tilesOf(this.T, state.rows, state.keys);
    this.come = new Set(numbersOf(state).map((n) => this.tiles[n]));
    const line = [...this.tiles].sort(TILE_ORDERS[state.order]);
    this.left = line.filter((tile) => tile.pairs && !this.come.has(tile));
    this.now = [...this.come].at(-1);
    this.made = range(this.T).map(() => EMPTY);
    this.held = this.most = 0;
    this.come.forEach((tile) => {
      const finished = range(this.T).filter((t) => this.complete(t));
      this.made = this.made.map((row) => ({ ...row, factor: undefined }));
      this.fold(tile);
      const open = range(this.T).filter((t) => this.made[t].came && !finished.includes(t));
      // The scores of the tile, and of each query at work a maximum, a total and a mix.
      this.held = tile.queries.length * tile.keys.length;
      this.held += (2 + EMPTY.mixed.length) * open.length;
      this.most = Math.max(this.most, this.held);
    });
  }

  fold({ queries, keys }) {
    const { S, V } = this.given;
    queries.forEach((t) => {
      const seen = keys.filter((s) => s <= t);
      const [scores, values] = [seen.map((s) => S[t][s]), seen.map((s) => V[s])];
      this.made[t] = foldKeys(this.made[t], scores, values, this.state.factor != "no");
    });
  }

  // Whether a query has seen all its keys; what it has then; whether plain attention has the same.
  complete(t) {
    return this.made[t].came == t + 1;
  }

  output(t) {
    return this.made[t].mixed.map((number) => number / this.made[t].total);
  }

  right(t) {
    const { heads } = this.given;
    return this.output(t).every((number, c) => Math.abs(number - heads[t][c]) < 1e-9);
  }

  paint() {
    const { rows, keys, order, factor } = this.state;
    this.run();
    this.cells.forEach((row, t) => row.forEach((cell, s) => this.mark(cell, t, s)));
    this.rows.forEach((cells, t) => this.list(cells, t));
    const on = [...Object.keys(TILE_ORDERS).map((name) => name == order), factor == "no"];
    this.choices.forEach((button, i) => (button.ariaPressed = on[i]));
    const sizes = [[rows, counted(rows, "query", "queries")], [keys, counted(keys, "key")]];
    sizes.forEach(([size, text], i) => {
      const slider = this.sliders[i];
      slider.value = size;
      slider.previousElementSibling.textContent = slider.ariaValueText = text;
    });
  }

  // Write what a query has.
  list([maximum, shrink, total, mixed], t) {
    const row = this.made[t];
    maximum.textContent = row.came ? numText(row.maximum) : "–";
    shrink.textContent = row.factor ? numText(row.factor) : "";
    total.textContent = row.came ? numText(row.total) : "–";
    mixed.firstChild.data = row.came ? vectorText(row.mixed) : "–";
    const right = this.complete(t) && this.right(t);
    const verdict = `${right ? "✓" : "✗"} ${vectorText(this.output(t))}`;
    mixed.lastChild.className = right ? "tl-right" : "tl-wrong";
    mixed.lastChild.textContent = this.complete(t) ? verdict : "";
  }

  // Draw where the tile of a cell ends, and what has become of it.
  mark(cell, t, s) {
    const tile = this.tile(t, s);
    const gone = tile.queries.every((query) => this.complete(query));
    const fate = this.now == tile ? "now" : this.come.has(tile) ? "in" : "";
    cell.dataset.fate = tile.pairs ? fate : gone ? "skipped" : "";
    cell.toggleAttribute("data-top", t > 0 && this.tile(t - 1, s) != tile);
    cell.toggleAttribute("data-left", s > 0 && this.tile(t, s - 1) != tile);
    const { words, S } = this.given;
    const score = s > t ? "beyond the mask" : `score ${numText(S[t][s])}`;
    const fateText = FATES[cell.dataset.fate] || "not in yet";
    cell.ariaLabel = `query ${t} ${words[t]}, key ${s} ${words[s]}: ${score}, ${fateText}`;
  }

  forms() {
    const size = oneOf(...range(this.T).map((n) => n + 1));
    const order = oneOf(...Object.keys(TILE_ORDERS));
    return { rows: size, keys: size, order, factor: oneOf("yes", "no"), tiles: [(text) => text] };
  }

  misfit(state) {
    const [tiles, numbers] = [tilesOf(this.T, state.rows, state.keys), numbersOf(state)];
    const fits = (n, i) => /^\d+$/.test(n) && tiles[n]?.pairs && numbers.indexOf(n) == i;
    if (!numbers.every(fits))
      return `tiles is “${state.tiles}”; expected tiles that the mask leaves, each once: 0.2.`;
  }
}

// The tiles that are in, by their numbers.
const numbersOf = ({ tiles }) => tiles.split(".").filter(Boolean);

define("tl-tiles", (element) => new Tiles(element).wake("Link to these tiles"));
