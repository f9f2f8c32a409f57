// A question with radio buttons: quiz and prediction.

import { all } from "./shared.js";

// Give a box its button; `answered` gets the mark of a right answer, or null, at each answer.
export const choice = (box, answered) => {
  const inputs = all(box, "input");
  const reasons = all(box, "dd");
  const regions = all(box, "p");
  box.querySelector("button").onclick = () => {
    const picked = inputs.findIndex((input) => input.checked);
    regions.forEach((node, i) => (node.innerHTML = i == picked ? reasons[i].innerHTML : ""));
    if (picked < 0) regions.at(-1).textContent = "Choose an answer first.";
    else answered(reasons[picked].querySelector(".tl-right"));
  };
};
