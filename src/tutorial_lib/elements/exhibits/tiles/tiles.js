// The softmax tile by tile: scores are folded into the maximum, the total and the mix of their
// queries, in tiles of any size and in any order, or by processes that pass keys and values round.

import { all, define } from "../../shared.js";
import { Exhibit } from "../exhibit.js";
import { oneOf } from "../forms.js";
import { written } from "../numbers.js";
import { NOTHING, foldInto, inBlocks, inTurn, tilesOf, upTo } from "./folding.js";
import { chosenText, endText, howMany, stepText, tileText, vectorText } from "./telling.js";

const TILE_ORDERS = {
  rows: (a, b) => a.i - b.i || a.j - b.j,
  columns: (a, b) => a.j - b.j || a.i - b.i,
  last: (a, b) => a.i - b.i || b.j - a.j,
};
const TILE_DEALS = ["halves", "turn"];
const ALONE = { rows: 2, keys: 2, order: "rows", factor: "yes", tiles: "0" };
const IN_A_RING = { deal: "halves", steps: 1 };
const FATES = { now: "just folded in", in: "is in", skipped: "skipped" };

class Tiles extends Exhibit {
  constructor(element) {
    super(element);
    this.T = this.given.words.length;
    this.ring = this.given.owners > 1;
    this.first = this.ring ? IN_A_RING : ALONE;
    const [grid, held] = all(element, ".tl-fold table");
    [this.tops, this.sides] = ["thead", "tbody"].map((part) => all(grid, `${part} small`));
    this.cells = [...grid.tBodies[0].rows].map((row) => all(row, "td"));
    this.rows = [...held.tBodies[0].rows].map((row) => [...row.cells].slice(1));
    this.meters = all(element, ".tl-meter > p");
    this.sliders = all(element, "[type=range]");
    this.choices = all(element, "button");
    [this.forward, this.rest, this.reset] = this.choices.splice(-3);
    this.listen(grid);
    this.restore(this.first);
  }

  listen(grid) {
    this.forward.onclick = () => this.go(this.left.slice(0, 1));
    this.rest.onclick = () => this.go(this.left);
    this.reset.onclick = () => this.begin({});
    this.sliders.forEach((slider, i) => {
      slider.oninput = () => this.begin({ [i ? "keys" : "rows"]: Number(slider.value) });
    });
    this.choices.forEach((button, i) => (button.onclick = () => this.pick(i)));
    if (this.ring) return;
    grid.role = "grid";
    this.rove(this.cells);
    grid.onclick = ({ target }) => {
      const cell = target.closest("td");
      if (!this.spots.has(cell)) return;
      cell.focus();
      this.enter(cell);
    };
  }

  pick(i) {
    const order = Object.keys(TILE_ORDERS)[i];
    if (this.ring) this.begin({ deal: TILE_DEALS[i] });
    else if (order) this.begin({ order });
    else this.begin({ factor: this.state.factor == "yes" ? "no" : "yes" });
  }

  begin(part) {
    this.change({ ...part, ...(this.ring ? { steps: 0 } : { tiles: "" }) }, chosenText);
  }

  // Fold in tiles, or do the steps of a ring.
  go(groups) {
    const { steps } = this.state;
    if (!groups.length) return this.say("All pairs are in: start over, or choose anew.");
    const next = this.ring
      ? { steps: steps + groups.length }
      : { tiles: [...this.numbers, ...groups.map(([tile]) => tile.n)].join(".") };
    this.change(next, () => this.told());
  }

  // The tiles that are in, by their numbers.
  get numbers() {
    return this.state.tiles.split(".").filter(Boolean);
  }

  change(part, text) {
    this.restore({ ...this.state, ...part });
    this.changed(text(this));
  }

  told() {
    if (!this.left.length) return endText(this);
    return this.now.length ? stepText(this) : chosenText(this);
  }

  // Fold in the tile of a cell.
  enter(cell) {
    const { t, j } = this.spots.get(cell);
    const tile = this.tile(t, j);
    const where = `The tile of ${tileText(tile)}`;
    if (!tile.pairs) this.say(`${where} lies wholly beyond the mask, so it is skipped.`);
    else if (this.come.has(tile)) this.say(`${where} is in already.`);
    else this.go([[tile]]);
  }

  tile(t, s) {
    return this.tiles.find(({ queries, keys }) => queries.includes(t) && keys.includes(s));
  }

  restore(state) {
    this.state = state;
    this.tiles = this.cut(state);
    this.run();
    this.paint();
    this.relink();
  }

  cut({ rows, keys, deal }) {
    const { T, given: { owners } } = this;
    if (!this.ring) return tilesOf(inBlocks(T, rows), inBlocks(T, keys));
    const own = deal == "turn" ? inTurn(T, owners) : inBlocks(T, T / owners);
    return tilesOf(own, own);
  }

  // The tiles in their order, one at a time; or those of each step of the ring, from home on.
  line() {
    const { owners } = this.given;
    if (!this.ring)
      return [...this.tiles].sort(TILE_ORDERS[this.state.order]).map((tile) => [tile]);
    const step = ({ i, j }) => (i - j + owners) % owners;
    return upTo(owners).map((n) => this.tiles.filter((tile) => step(tile) == n));
  }

  // Fold in what the state names, from the beginning.
  run() {
    const { steps } = this.state;
    const line = this.line();
    const groups = this.ring ? line.slice(0, steps) : this.numbers.map((n) => [this.tiles[n]]);
    this.come = new Set(groups.flat());
    this.left = line.filter((group) => group.some((tile) => tile.pairs && !this.come.has(tile)));
    this.now = groups.at(-1) ?? [];
    this.made = upTo(this.T).map(() => NOTHING);
    this.held = this.most = 0;
    groups.forEach((group) => {
      const finished = upTo(this.T).filter((t) => this.complete(t));
      this.made = this.made.map((row) => ({ ...row, factor: undefined }));
      group.forEach((tile) => this.fold(tile));
      const open = upTo(this.T).filter((t) => this.made[t].came && !finished.includes(t));
      // The scores of the tile, and of each query at work a maximum, a total and a mix.
      const scores = group.map(({ queries, keys }) => queries.length * keys.length);
      this.held = scores.reduce((a, b) => a + b) + (2 + NOTHING.mixed.length) * open.length;
      this.most = Math.max(this.most, this.held);
    });
  }

  fold({ queries, keys }) {
    const { S, V } = this.given;
    queries.forEach((t) => {
      const seen = keys.filter((s) => s <= t);
      const [scores, values] = [seen.map((s) => S[t][s]), seen.map((s) => V[s])];
      this.made[t] = foldInto(this.made[t], scores, values, this.state.factor != "no");
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
    const { order, factor, deal } = this.state;
    this.cells.forEach((row, t) => row.forEach((cell, s) => this.mark(cell, t, s)));
    this.rows.forEach(([maximum, shrink, total, mixed], t) => {
      const row = this.made[t];
      maximum.textContent = row.came ? written(row.maximum) : "–";
      shrink.textContent = row.factor ? written(factor == "no" ? 1 : row.factor) : "";
      total.textContent = row.came ? written(row.total) : "–";
      mixed.firstChild.data = row.came ? vectorText(row.mixed) : "–";
      const right = this.right(t);
      const verdict = `${right ? "✓" : "✗"} ${vectorText(this.output(t))}`;
      mixed.lastChild.className = right ? "tl-right" : "tl-wrong";
      mixed.lastChild.textContent = this.complete(t) ? verdict : "";
    });
    const names = this.ring ? TILE_DEALS : Object.keys(TILE_ORDERS);
    const on = [...names.map((name) => name == (deal ?? order)), factor == "no"];
    this.choices.forEach((button, i) => (button.ariaPressed = on[i]));
    this.sliders.forEach((slider, i) => {
      const { rows, keys } = this.state;
      slider.value = i ? keys : rows;
      const text = i ? howMany(keys, "key") : howMany(rows, "query", "queries");
      slider.previousElementSibling.textContent = slider.ariaValueText = text;
    });
    this.measure();
  }

  // Draw where the tile of a cell ends, and what has become of it.
  mark(cell, t, s) {
    const tile = this.tile(t, s);
    const come = this.come.has(tile);
    const gone = this.ring ? come : tile.queries.every((query) => this.complete(query));
    const fate = this.now.includes(tile) ? "now" : come ? "in" : "";
    cell.dataset.fate = tile.pairs ? fate : gone ? "skipped" : "";
    cell.toggleAttribute("data-top", t > 0 && this.tile(t - 1, s) != tile);
    cell.toggleAttribute("data-left", s > 0 && this.tile(t, s - 1) != tile);
    if (this.ring) return;
    const { words, S } = this.given;
    const score = s > t ? "beyond the mask" : `score ${written(S[t][s])}`;
    const fateText = FATES[cell.dataset.fate] || "not in yet";
    cell.ariaLabel = `query ${t} ${words[t]}, key ${s} ${words[s]}: ${score}, ${fateText}`;
  }

  // How much is held; or who has scored how much, and where the keys are.
  measure() {
    const { T, ring, come, state, given: { owners } } = this;
    const ranks = upTo(owners);
    this.scored = ranks.map((rank) =>
      [...come].reduce((sum, { i, pairs }) => sum + (i == rank ? pairs : 0), 0));
    const held = `${this.held} numbers held now, at most ${this.most} so far`;
    const bars = ring
      ? this.scored.map((n, i) => [`rank ${i} has scored ${howMany(n, "pair")}`, n / 21])
      : [[held, this.held / 72], [`${T ** 2} numbers in the table`, T ** 2 / 72]];
    bars.forEach(([text, share], i) => {
      const [name, bar] = this.meters[i].children;
      name.textContent = text;
      bar.style.width = `${(100 * share).toFixed(1)}%`;
    });
    if (!ring) return;
    upTo(T).forEach((t) => {
      const { i } = this.tile(t, t);
      this.sides[t].textContent = `rank ${i}`;
      // Where it is in this step; it is passed on before the next one.
      this.tops[t].textContent = `at ${(i + Math.max(state.steps - 1, 0)) % owners}`;
    });
  }

  forms() {
    const { T, given: { owners } } = this;
    if (this.ring) return { deal: oneOf(...TILE_DEALS), steps: oneOf(...upTo(owners + 1)) };
    const size = oneOf(...upTo(T).map((n) => n + 1));
    const order = oneOf(...Object.keys(TILE_ORDERS));
    return { rows: size, keys: size, order, factor: oneOf("yes", "no"), tiles: [(text) => text] };
  }

  misfit(state) {
    if (this.ring) return;
    const [cut, numbers] = [this.cut(state), state.tiles.split(".").filter(Boolean)];
    const fits = (n, i) => /^\d+$/.test(n) && cut[n]?.pairs && numbers.indexOf(n) == i;
    if (!numbers.every(fits))
      return `tiles is “${state.tiles}”; expected tiles that the mask leaves, each once: 0.2.`;
  }

  announce() {
    this.say(this.told());
  }
}

define("tl-tiles", (element) => new Tiles(element).addLink("Link to these tiles"));
