// The link to a state: it names every number that differs from the example's, such as
// #playground=0&X.0.2.1=1.5

import { sound } from "./layer.js";

const keyOf = ({ name, h, t, j }) => [name, h, t, j].join(".");
const inputsOf = (tables) => [...tables.places].filter(([, { given }]) => given);

// The link to what a playground shows.
export const address = (editor) => {
  const query = new URLSearchParams({ playground: editor.mine });
  inputsOf(editor).forEach(([cell, place]) => {
    const { name, h, t, j } = place;
    const number = editor.number(cell);
    if (number != editor.first[name][h][t][j]) query.set(keyOf(place), number);
  });
  return `#${query}`;
};

// The inputs that a query names, or undefined where it does not fit the example.
const named = (editor, query) => {
  const next = structuredClone(editor.first);
  const known = new Map(inputsOf(editor).map(([, place]) => [keyOf(place), place]));
  const fits = [...query].every(([key, text]) => {
    const { name, h, t, j } = known.get(key) || {};
    if (!name || !(name == "mask" ? /^[01]$/ : /\d/).test(text) || !isFinite(text)) return false;
    next[name][h][t][j] = Number(text);
    return true;
  });
  if (fits && sound(next)) return next;
};

// Show what the address of the page names, if it names this playground.
export const follow = (editor) => {
  const query = new URLSearchParams(location.hash.slice(1));
  if (query.get("playground") != editor.mine) return;
  query.delete("playground");
  const next = named(editor, query);
  if (!next) editor.tell("The link does not fit this example: its numbers are left out.");
  else if (editor.differs(next)) editor.load(next, "The numbers of the link are here.");
};
