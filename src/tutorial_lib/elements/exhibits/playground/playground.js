// The playground: every array of the layer, below a map of them all.

import { define } from "../../shared.js";
import { Editor } from "./editor.js";

define("tl-playground", (element) => {
  const editor = new Editor(element);
  editor.addLink(editor.reset.parentNode, "Link to these numbers");
});
