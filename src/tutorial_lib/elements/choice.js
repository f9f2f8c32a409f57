// A question with radio buttons: quiz and prediction.

import { asked } from "./asked.js";
import { all } from "./shared.js";

// Wake a question; `changed(answered)` follows each thing its reader does. Returns its text,
// whether it is answered, and rightly at the first try, and its state by the texts of options.
export const choice = (box, changed) => {
  const inputs = all(box, "input");
  const options = inputs.map((input) => input.nextElementSibling.textContent);
  const reasons = all(box, "dd");
  const regions = all(box, "p");
  let first = -1; // the option that was answered first, and the one whose reason stands here
  let told = -1;
  const picked = () => inputs.findIndex((input) => input.checked);
  const tell = (option) => {
    told = option;
    if (first < 0) first = told;
    regions.forEach((node, i) => (node.innerHTML = i == told ? reasons[i].innerHTML : ""));
  };
  box.onchange = () => changed();
  box.querySelector("button").onclick = () => {
    tell(picked());
    if (told < 0) regions.at(-1).textContent = "Choose an answer first.";
    else changed(true);
  };
  return {
    name: asked(box),
    answered: () => first >= 0,
    right: () => reasons[first]?.querySelector(".tl-right"),
    state: () => ({ picked: options[picked()], told: options[told], first: options[first] }),
    recall(state) {
      const places = ["picked", "told", "first"].map((key) => options.indexOf(state?.[key]));
      if (!inputs[places[0]]) return false;
      inputs[places[0]].checked = true;
      if (Math.min(...places) >= 0) {
        first = places[2];
        tell(places[1]);
      }
      return true;
    },
  };
};
