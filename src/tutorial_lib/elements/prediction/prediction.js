// What every prediction does: open what it keeps closed, once answered or asked.

import { asked } from "../asked.js";
import { all, report } from "../shared.js";

const END = ".tl-predict, h2, h3, h4";
const CLOSED = "details.below-input, .jp-OutputPlaceholder .jp-Placeholder-content";

// The closed outputs below, of the site or of JupyterLab, up to a heading or another prediction.
const outputsOf = (element) => {
  const below = all(document, `${END}, ${CLOSED}`).filter(
    (node) => element.compareDocumentPosition(node) & 4
  );
  const many = below.findIndex((node) => node.matches(END));
  return many < 0 ? below : below.slice(0, many);
};

const codeOf = (node) => node?.parentNode.querySelector("pre")?.textContent ?? "";

// Give an element its two buttons: `ask` serves its question, and calls back when it is answered.
export const prediction = (element, ask) => {
  let opened; // the code whose output was opened
  const open = () => {
    const found = outputsOf(element);
    opened = codeOf(found[0]);
    for (const node of found) {
      node.open = true;
      node.click();
    }
    element.lastElementChild.textContent = found.length
      ? "The output below is open."
      : "Now run the next cell.";
  };
  const done = () => Number(opened != null);
  const changed = (answered) => {
    if (answered) open();
    report(element, { ...question.state(), opened }, done(), 1);
  };
  const question = ask(element.firstElementChild, changed);
  all(element, "button")[1].onclick = () => changed(true);
  element.keptAs = `predict ${asked(element)}`;
  element.recall = (state) => {
    const known = typeof state?.opened == "string";
    if (!question.recall(state) && !known) return false;
    if (known) opened = state.opened;
    // And not what stands there in another edition.
    if (known && opened == codeOf(outputsOf(element)[0])) open();
    return { done: done(), of: 1 };
  };
};
