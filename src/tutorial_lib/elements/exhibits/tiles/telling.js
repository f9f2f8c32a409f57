// What is said of tiles: what was chosen, what a step did, how it ended; each in one sentence.

import { numText } from "../numbers.js";
import { range } from "./folding.js";

const BY_ORDER = { rows: "row by row", columns: "column by column", last: "last keys first" };

// So many things.
export const counted = (n, one, more = `${one}s`) => `${n} ${n == 1 ? one : more}`;

// An array of fractions.
export const vectorText = (numbers) => `(${numbers.map(numText).join(", ")})`;

const listText = (texts) =>
  texts.length > 1 ? `${texts.slice(0, -1).join(", ")} and ${texts.at(-1)}` : `${texts}`;
const blockText = (one, more, places) =>
  places.length > 1 ? `${more} ${places[0]}–${places.at(-1)}` : `${one} ${places[0]}`;

// Where a tile is.
export const tileText = ({ queries, keys }) =>
  `${blockText("query", "queries", queries)}, ${blockText("key", "keys", keys)}`;

// What is chosen.
export const chosenText = ({ state, tiles }) => {
  const { rows, keys, order, factor } = state;
  const beyond = tiles.filter(({ pairs }) => !pairs).length;
  const size = `${counted(rows, "query", "queries")} by ${counted(keys, "key")}`;
  const lost = factor == "no" ? ", and what is old will not be shrunk" : "";
  const count = `${counted(tiles.length, "tile")} of ${size}, ${BY_ORDER[order]}`;
  return `${count}: ${beyond || "none"} of them wholly beyond the mask${lost}.`;
};

// What the last tile did.
export const stepText = ({ now, made, state, held, T }) => {
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
export const endText = (it) => {
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
