// The playground: every array of the layer, worked by mouse, by keys and by the page's address.

import { all, define } from "../../shared.js";
import { Editor } from "./editor.js";
import { follow } from "./link.js";

// What a key does in a cell, if anything.
const actOf = (editor, event) => {
  const { target, key, ctrlKey, metaKey } = event;
  const { name, given, h, t, j } = editor.places.get(target);
  if (ctrlKey || metaKey) return key == "z" && (() => editor.undo());
  const rows = editor.grid(name, h);
  const go = (down, right) => (rows[t + down]?.[j + right] || target).focus();
  const open = given && (() => editor.edit(target));
  const acts = {
    ArrowUp: () => go(-1, 0),
    ArrowDown: () => go(1, 0),
    ArrowLeft: () => go(0, -1),
    ArrowRight: () => go(0, 1),
    Home: () => go(0, -j),
    End: () => rows[t].at(-1).focus(),
    Enter: open,
    " ": open,
  };
  const types = given && name != "mask" && /^[-−+.\d]$/.test(key);
  return acts[key] || (types && (() => editor.edit(target, key)));
};

const listen = (element, editor) => {
  element.onkeydown = (event) => {
    if (!editor.places.get(event.target) || event.altKey) return;
    const act = actOf(editor, event);
    if (act) {
      act();
      event.preventDefault();
    }
  };
  element.onclick = ({ target }) => {
    const place = editor.places.get(target);
    if (place?.given) editor.edit(target);
    else if (place) editor.choose(target);
  };
  element.addEventListener("focusin", ({ target }) => {
    const cell = target.closest("td");
    if (cell && cell != editor.chosen) editor.choose(cell);
  });
};

const offerLink = (element, editor, controls) => {
  const { link } = editor;
  link.textContent = "Link to these numbers";
  controls.append(link);
  link.onclick = () => editor.tell("The address of this page carries these numbers now: copy it.");
  addEventListener("hashchange", () => follow(editor));
  if (location.hash.includes("playground=")) {
    follow(editor);
    element.scrollIntoView();
  }
};

define("tl-playground", (element) => {
  const editor = new Editor(element);
  const [back, reset] = all(element, "button");
  back.onclick = () => editor.undo();
  reset.onclick = () => editor.load(editor.first, "The example's own numbers are back.");
  // JupyterLab takes a key pressed in an output for a command to the notebook, except here.
  element.dataset.lmSuppressShortcuts = "";
  listen(element, editor);
  // In Colab and JupyterLab the address of the page is not that of a state.
  if (top == self && !element.closest(".jp-Notebook")) offerLink(element, editor, back.parentNode);
});
