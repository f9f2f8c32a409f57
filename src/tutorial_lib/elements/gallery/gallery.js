// The gallery: all heads of a layer behind a question, which one of them answers best.

import { all, define } from "../shared.js";
import { drawMap, unpack } from "../weights.js";

// Copies of a gallery on one page must not share their radio buttons.
let galleries = 0;

define("tl-gallery", (gallery) => {
  const inputs = all(gallery, "input");
  const [commit, show] = all(gallery, "button");
  const notes = all(gallery, "label + p");
  const verdict = gallery.querySelector("[aria-live]");
  const reasons = all(gallery, "dd");
  const best = reasons.findIndex((reason) => reason.querySelector(".tl-right"));
  const { map } = unpack(gallery);
  galleries += 1;
  inputs.forEach((input) => (input.name += galleries));
  all(gallery, "g").forEach((cells, h) => drawMap(cells, map(h)));

  const open = (words) => {
    notes.forEach((note, h) => (note.innerHTML = reasons[h].innerHTML));
    verdict.innerHTML = `${words} Head ${best} scores highest.`;
  };
  commit.onclick = () => {
    const picked = inputs.findIndex((input) => input.checked);
    if (picked < 0) verdict.textContent = "Choose a head first.";
    else if (picked == best) open('<b class="tl-right">✓ Right.</b>');
    else open(`<b class="tl-wrong">✗ Not head ${picked}.</b>`);
  };
  show.onclick = () => open("");
});
