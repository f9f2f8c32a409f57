// A prediction among options.

import { choice } from "../choice.js";
import { define } from "../shared.js";
import { prediction } from "./prediction.js";

define("tl-predict-choice", (element) => prediction(element, choice));
