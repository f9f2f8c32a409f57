// The playground: every array of the layer, below a map of them all.

import { define } from "../../shared.js";
import { Editor } from "./editor.js";

define("tl-playground", (element) => new Editor(element).wake("Link to these numbers"));
