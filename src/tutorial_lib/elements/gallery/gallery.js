// The gallery: all heads of a layer behind a question, which one of them answers best.

import { all, define } from "../shared.js";
import { WeightExhibit } from "../weights.js";

// Copies of a gallery on one page must not share their radio buttons.
let galleries = 0;

// Its state adds `tried`: the head that was first picked wrongly, whose score alone is shown; and
// `open`: 1 where all scores are shown, 2 where they judge the head that is picked.
class Gallery extends WeightExhibit {
  first = {};
  state = {};

  constructor(element) {
    super(element);
    this.inputs = all(element, "input");
    this.heads = all(element, ".tl-heads > div");
    this.spoken = all(element, "[aria-live]")[1];
    this.reasons = all(element, "dd");
    this.best = this.reasons.findIndex((reason) => reason.querySelector(".tl-right"));
    Object.assign(this.sizes, { tried: this.sizes.head, open: 3 });
    this.target = JSON.parse(element.querySelector(".tl-live").dataset.target ?? "[]");
    this.maps.forEach((map, h) => map.draw(this.weights(h), h));
  }

  // What the chosen query gives to the chosen key in a head.
  gives(h) {
    const { query, key } = this.state;
    if (query == null || key == null) return "";
    const weight = this.weight(h, query, key);
    const [from, to] = [this.queries[query], this.keys[key]].map((name) => `<em>${name}</em>`);
    const decides = this.target[query] == key ? ", the target" : "";
    return weight >= 0
      ? `${from} gives ${to} ${this.number(weight)}${decides}`
      : `${from} may not attend to ${to}${decides}`;
  }

  verdict() {
    const { head, tried, open } = this.state;
    const wrong = (h) => `<b class="tl-wrong">✗ Not head ${h}.</b>`;
    const judged = head == this.best ? '<b class="tl-right">✓ Right.</b>' : wrong(head);
    if (open) return `${open == 2 ? `${judged} ` : ""}Head ${this.best} scores highest.`;
    return tried >= 0 ? `${wrong(tried)} Another scores higher: choose again.` : "";
  }

  show() {
    const { head, tried, open } = this.state;
    this.inputs.forEach((input, h) => (input.checked = h == head));
    this.maps.forEach((map) => map.frame(this.state));
    this.heads.forEach((box, h) => {
      const [at, note] = all(box, "p");
      at.innerHTML = this.gives(h);
      note.innerHTML = open || h == tried ? this.reasons[h].innerHTML : "";
    });
    if (this.news.innerHTML != this.verdict()) this.news.innerHTML = this.verdict();
  }

  tell() {
    const words = this.heads.map((_, h) => this.gives(h) && `head ${h}: ${this.gives(h)}.`);
    if (this.spoken.innerHTML != words.join(" ")) this.spoken.innerHTML = words.join(" ");
  }
}

define("tl-gallery", (element) => {
  const gallery = new Gallery(element);
  const [commit, show] = all(element, "button");
  galleries += 1;
  gallery.inputs.forEach((input, head) => {
    input.name += galleries;
    // The scores stay open; they say nothing of a head that is picked after them.
    input.onchange = () => gallery.change({ head, open: gallery.state.open && 1 });
  });
  commit.onclick = () => {
    const { head, tried, open } = gallery.state;
    const last = open || tried >= 0 || head == gallery.best;
    if (head >= 0) gallery.change(last ? { open: 2 } : { tried: head });
    else gallery.say("Choose a head first.");
  };
  show.onclick = () => gallery.change({ open: 1 });
  gallery.addLink("Link to this choice", commit.parentNode);
});
