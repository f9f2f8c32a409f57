// The parts of a state as a link writes them. Each has a form: how it is read from a text, which
// gives nothing where the text does not fit, and what is expected.

// The form of what is one of some texts or numbers.
export const oneOf = (...known) => [
  (text) => known.find((one) => `${one}` == text),
  `one of ${known.join(", ")}`,
];

// What entries say by their forms, and what is wrong with them, if anything.
export const parse = (forms, entries) => {
  const read = {};
  for (const [key, text] of entries) {
    const form = new Map(Object.entries(forms)).get(key);
    if (!form) return [, `“${key}” cannot be set; expected ${oneOf(...Object.keys(forms))[1]}.`];
    read[key] = form[0](text);
    if (read[key] === undefined) return [, `${key} is “${text}”; expected ${form[1]}.`];
  }
  return [read];
};
