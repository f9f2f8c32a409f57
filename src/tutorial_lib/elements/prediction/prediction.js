// What every prediction does: open the output that it keeps closed, once answered or asked.

import { all } from "../shared.js";

// Give an element its two buttons: `ask` serves its question, and calls back when it is answered.
export const prediction = (element, ask) => {
  const open = () => {
    // The next closed output, of the site or of JupyterLab, if no other prediction comes before it.
    const closed = ".tl-predict, details.below-input, .jp-Placeholder-content";
    const next = all(document, closed).find((node) => element.compareDocumentPosition(node) & 4);
    const found = next && !next.matches(".tl-predict");
    if (found) {
      next.open = true;
      next.click();
    }
    element.lastElementChild.textContent = found
      ? "The output below is open."
      : "Now run the next cell.";
  };
  ask(element.firstElementChild, open);
  all(element, "button")[1].onclick = open;
};
