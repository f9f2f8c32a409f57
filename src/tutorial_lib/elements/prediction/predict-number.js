// A prediction of a number, with a reason for each number that it knows.

import { readings } from "../readings.js";
import { all, define } from "../shared.js";
import { prediction } from "./prediction.js";

const askNumber = (box, answered) => {
  const input = box.querySelector("input");
  const reasons = all(box, "dd");
  const region = box.querySelector("p");
  const commit = () => {
    const values = readings(input.value);
    input.ariaInvalid = !values.length;
    if (values.length) {
      const known = ({ dataset }) =>
        values.some((value) => Math.abs(value - dataset.value) <= dataset.within);
      region.innerHTML = (reasons.find(known) || reasons.at(-1)).innerHTML;
      answered();
    } else region.textContent = "Please write a number, such as 12, 0.25 or 1/4.";
  };
  box.querySelector("button").onclick = commit;
  input.onkeydown = ({ key }) => {
    if (key == "Enter") commit();
  };
};

define("tl-predict-number", (element) => prediction(element, askNumber));
