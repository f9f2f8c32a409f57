// A prediction of a number, with a reason for each number that it knows.

import { readings } from "../readings.js";
import { all, define } from "../shared.js";
import { prediction } from "./prediction.js";

const askNumber = (box, changed) => {
  const input = box.querySelector("input");
  const reasons = all(box, "dd");
  const region = box.querySelector("p");
  let told; // the number whose reason stands here, as it was typed
  const tell = (typed) => {
    const values = readings(typed);
    input.ariaInvalid = !values.length;
    const known = ({ dataset }) =>
      values.some((value) => Math.abs(value - dataset.value) <= dataset.within);
    if (values.length) {
      told = typed;
      region.innerHTML = (reasons.find(known) || reasons.at(-1)).innerHTML;
    } else region.textContent = "Please write a number, such as 12, 0.25 or 1/4.";
    return values.length > 0;
  };
  const commit = () => {
    if (tell(input.value)) changed(true);
  };
  box.querySelector("button").onclick = commit;
  input.oninput = () => changed();
  input.onkeydown = ({ key }) => {
    if (key == "Enter") commit();
  };
  return {
    state: () => ({ typed: input.value, told }),
    recall(state) {
      if (typeof state?.typed != "string") return false;
      if (readings(String(state.told)).length) tell(String(state.told));
      input.value = state.typed;
      return true;
    },
  };
};

define("tl-predict-number", (element) => prediction(element, askNumber));
