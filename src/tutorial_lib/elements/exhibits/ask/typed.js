// A sentence as a reader types it: its words, or what is wrong with it in the words of `encode` of
// `models/language.py`.

const FIRST = "<bos>";
const LONGEST = 20; // letters of a strange word that are repeated

// What the tokens are called.
export const nounOf = (words) => (words.every((word) => word.length == 1) ? "letter" : "word");

// How many letters must be put in, left out or replaced to make one word of another.
const distance = (a, b) => {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  [...a].forEach((x, i) => {
    const left = [i + 1];
    [...b].forEach((y, j) => left.push(Math.min(left[j] + 1, row[j + 1] + 1, row[j] + (x != y))));
    row = left;
  });
  return row[b.length];
};

// Up to three words that are nearly a given one, the nearest first.
const near = (shown, words) => {
  const { length } = [...shown];
  const far = Math.min(Math.max(2, Math.floor(length / 2)), length - 1);
  return words
    .filter((word) => word != FIRST)
    .map((word) => [distance(shown.toLowerCase(), word.toLowerCase()), word])
    .filter(([steps]) => steps <= far)
    .sort(([a], [b]) => a - b)
    .slice(0, 3)
    .map(([, word]) => word);
};

// Why a word is none of the words, and what to do.
const strange = (word, words, kinds) => {
  const noun = nounOf(words);
  if (word == FIRST) return "'<bos>' is put in front by itself. Leave it out.";
  const signs = [...word];
  const shown = signs.length > LONGEST ? `${signs.slice(0, LONGEST).join("")}…` : word;
  const tokens = word.match(/[\p{L}\p{N}]+|[^\p{L}\p{N}]/gu) ?? [];
  const none = `'${shown}' is no ${noun} of this text`;
  if (tokens.length > 1 && tokens.every((token) => words.includes(token)))
    return `${none}, but its parts are. Put blanks between them: “${tokens.join(" ")}”.`;
  const found = near(shown, words);
  if (found.length) return `${none}; near it: ${found.join(", ")}. Take one of its ${noun}s.`;
  return `${none}. ${kinds}`;
};

// The ids of a sentence, or words that say what was expected.
export const read = (text, { words, kinds, positions, example }) => {
  const noun = nounOf(words);
  const said = noun == "letter" ? [...text.replace(/\s/g, "")] : text.split(/\s+/).filter(Boolean);
  const bos = words[0] == FIRST;
  const most = positions - bos;
  const wanted = `expected 1 to ${most}`;
  const empty = `The sentence has no ${noun}; ${wanted}. Write some, such as “${example}”.`;
  if (!said.length) return empty;
  if (said.length > most) {
    const why = bos ? ` and ${FIRST} takes the first` : "";
    const given = `The sentence has ${said.length} ${noun}s; expected at most ${most}`;
    const known = `the model has ${positions} positions${why}`;
    return `${given}, since ${known}. Leave out ${said.length - most}.`;
  }
  const unknown = said.find((word) => word == FIRST || !words.includes(word));
  if (unknown) return strange(unknown, words, kinds);
  return [...(bos ? [0] : []), ...said.map((word) => words.indexOf(word))];
};

// A sentence as it is typed.
export const spelled = (ids, words) => {
  const said = ids.map((id) => words[id]).filter((word) => word != FIRST);
  return said.join(nounOf(words) == "letter" ? "" : " ");
};

// A position, heads and two words as a link names them, or what is wrong with one of them.
const parts = ({ query, silenced, ...named }, ids, words, heads) => {
  const last = ids.length - 1;
  if (query && !(/^\d+$/.test(query) && query <= last))
    return `query is “${query}”; expected a position from 0 to ${last}.`;
  const quiet = silenced ? [...new Set(silenced.split(","))] : [];
  const none = quiet.find((head) => !heads.includes(head));
  if (none !== undefined)
    return `there is no head “${none}”; expected ${heads[0]} to ${heads.at(-1)}.`;
  const wrong = Object.entries(named).find(([, word]) => word && !words.includes(word));
  if (wrong) return `${wrong[0]} is “${wrong[1]}”; expected a ${nounOf(words)} of the model.`;
  const [word, minus] = [named.word, named.minus].map((name) => words.indexOf(name));
  return { ids, query: Number(query || last), silenced: quiet, word, minus };
};

// The state that a link names, or what was expected.
export const linked = (entries, given, heads) => {
  const first = spelled(given.ids, given.words);
  const [word, minus] = [given.word, given.minus].map((id) => given.words[id] ?? "");
  const named = { text: first, query: "", silenced: "", word, minus };
  for (const [name, value] of entries) {
    if (!Object.hasOwn(named, name))
      return `“${name}” cannot be set; expected one of ${Object.keys(named).join(", ")}.`;
    named[name] = value;
  }
  const { text, ...others } = named;
  const ids = read(text, given);
  return typeof ids == "string" ? ids : parts(others, ids, given.words, heads);
};
