// What is said of tiles: what was chosen, what a step did, how it ended; each in one sentence.

import { written } from "../numbers.js";
import { upTo } from "./folding.js";

const BY_ORDER = { rows: "row by row", columns: "column by column", last: "last keys first" };

// So many things.
export const howMany = (n, one, more = `${one}s`) => `${n} ${n == 1 ? one : more}`;

// An array of fractions.
export const vectorText = (numbers) => `(${numbers.map(written).join(", ")})`;

const inWords = (texts) =>
  texts.length > 1 ? `${texts.slice(0, -1).join(", ")} and ${texts.at(-1)}` : `${texts}`;
// Consecutive positions are written by the first and the last.
const placesText = (places) => {
  const [first, last] = [places[0], places.at(-1)];
  if (last - first >= places.length) return inWords(places);
  return first == last ? `${first}` : `${first}–${last}`;
};
const keysText = (keys) => `key${keys.length > 1 ? "s" : ""} ${placesText(keys)}`;

// Where a tile is.
export const tileText = ({ queries, keys }) =>
  `${queries.length > 1 ? "queries" : "query"} ${placesText(queries)}, ${keysText(keys)}`;

// What is chosen.
export const chosenText = ({ state, tiles, ring }) => {
  const { rows, keys, order, factor, deal } = state;
  if (ring) {
    const home = tiles.filter(({ i, j }) => i == j);
    const held = home.map((tile) => `rank ${tile.i} holds words ${placesText(tile.keys)}`);
    return `Dealt in ${deal == "turn" ? "turn" : "halves"}, ${inWords(held)}.`;
  }
  const beyond = tiles.filter(({ pairs }) => !pairs).length;
  const size = `${howMany(rows, "query", "queries")} by ${howMany(keys, "key")}`;
  const lost = factor == "no" ? ", and what is old will not be shrunk" : "";
  const count = `${howMany(tiles.length, "tile")} of ${size}, ${BY_ORDER[order]}`;
  return `${count}: ${beyond || "none"} of them wholly beyond the mask${lost}.`;
};

// What the last tile did.
const folded = (it) => {
  const [tile] = it.now;
  const rose = tile.queries.filter((t) => it.made[t].factor < 1);
  const names = inWords(rose.map((t) => `query ${t}`));
  const factors = inWords(rose.map((t) => written(it.made[t].factor)));
  const kept = it.state.factor == "no";
  const done = kept ? "and nothing shrinks" : `so old total and mixed are multiplied by ${factors}`;
  const rise = rose.length ? `a higher maximum for ${names}, ${done}` : "no old maximum rises";
  const beyond = it.tiles.filter(({ i, pairs }) => i == tile.i && !pairs).length;
  const ends = beyond && tile.queries.every((t) => it.complete(t));
  const skips = ends ? `; ${howMany(beyond, "tile")} beyond the mask skipped` : "";
  const held = `${it.held} numbers are held, the table has ${it.T ** 2}`;
  return `${tileText(tile).replace("q", "Q")}: ${rise}; ${held}${skips}.`;
};

// What each process did in the last step of a ring, and how much one sends in a step.
const ringText = ({ now, state }) => {
  const did = now.map(({ i, keys, pairs }) =>
    pairs
      ? `rank ${i} folds in ${keysText(keys)} (${howMany(pairs, "pair")})`
      : `rank ${i} waits, for ${keysText(keys)} are wholly beyond its queries`);
  return `Step ${state.steps}: ${did.join("; ")}`;
};
const sentBy = ({ owners, words, width }) => (words.length / owners) * width;
const passed = (it) =>
  `${ringText(it)}; then each sends these keys and values on, ${sentBy(it.given)} numbers.`;

// What the last step did.
export const stepText = (it) => (it.ring ? passed(it) : folded(it));

// How it ended.
export const endText = (it) => {
  const { words, heads, owners } = it.given;
  const wrong = upTo(it.T).filter((t) => !it.right(t));
  if (wrong.length) {
    const t = wrong.includes(2) ? 2 : wrong[0];
    const lands = `${vectorText(it.output(t))} in place of ${vectorText(heads[t])}`;
    const count = `${wrong.length} of ${it.T} outputs ${wrong.length == 1 ? "is" : "are"} wrong`;
    return `All pairs are in, but ${count}: query ${t}, ${words[t]}, ends at ${lands}.`;
  }
  if (it.ring) {
    const sent = (owners - 1) * sentBy(it.given);
    const work = `In all they scored ${inWords(it.scored)} pairs and sent ${sent} numbers each`;
    return `${ringText(it)}. ${work}; all outputs are plain attention's.`;
  }
  const same = `bark ends at ${vectorText(it.output(2))}, and all outputs are plain attention's`;
  const skipped = it.tiles.length - it.come.size;
  const count = `${howMany(it.come.size, "tile")}, ${skipped} more skipped`;
  const most = `at most ${it.most} numbers were held, the table has ${it.T ** 2}`;
  return `After ${count}, ${same}; ${most}.`;
};
