// What every prediction does: open the output that it keeps closed, once answered or asked.

import { asked } from "../asked.js";
import { all, report } from "../shared.js";

// Give an element its two buttons: `ask` serves its question, and calls back when it is answered.
export const prediction = (element, ask) => {
  let opened; // the code whose output was opened
  // The next closed output, of the site or of JupyterLab, if no other prediction comes before it.
  const output = () => {
    const closed = ".tl-predict, details.below-input, .jp-Placeholder-content";
    const next = all(document, closed).find((node) => element.compareDocumentPosition(node) & 4);
    return next?.matches(".tl-predict") ? null : next;
  };
  const codeOf = (node) => node?.parentNode.querySelector("pre")?.textContent ?? "";
  const open = () => {
    const found = output();
    opened = codeOf(found);
    if (found) {
      found.open = true;
      found.click();
    }
    element.lastElementChild.textContent = found
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
    if (known && opened == codeOf(output())) open();
    return { done: done(), of: 1 };
  };
};
