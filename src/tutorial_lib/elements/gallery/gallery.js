// The gallery: all heads of a layer behind a question, which one of them answers best.

import { arrow, Exhibit } from "../exhibits/exhibit.js";
import { all, define } from "../shared.js";
import { WeightMap } from "./weights.js";

// Copies of a gallery on one page must not share their radio buttons.
let galleries = 0;

// Its state is a head, a query and a key, each of which may be undefined; `tried`, the head that
// was first picked wrongly, whose score alone is shown; and `open`: 1 where all scores are shown,
// 2 where they judge the head that is picked.
class Gallery extends Exhibit {
  first = {};
  state = {};

  constructor(element) {
    super(element);
    const { dataset } = element.querySelector(".tl-live");
    this.tokens = JSON.parse(dataset.tokens);
    this.fractions = JSON.parse(dataset.fractions);
    this.target = JSON.parse(dataset.target ?? "[]");
    this.rows = dataset.weights.split(" ");
    this.inputs = all(element, "input");
    this.heads = all(element, ".tl-heads > div");
    this.spoken = all(element, "[aria-live]")[1];
    this.reasons = all(element, "dd");
    this.best = this.reasons.findIndex((reason) => reason.querySelector(".tl-right"));
    const [H, T] = [this.heads.length, this.tokens.length];
    this.sizes = { head: H, query: T, key: T, tried: H, open: 3 };
    this.number = (weight) => this.fractions[weight] ?? (weight / 1000).toFixed(3);
    this.maps = all(element, "svg").map((svg, h) => {
      this.rove([[svg]]);
      const map = new WeightMap(svg, this, (place) => this.change(place));
      map.draw(this.tokens.map((_, t) => this.tokens.map((_, s) => this.weight(h, t, s))), h);
      return map;
    });
    this.listen();
  }

  listen() {
    const [commit, show] = all(this.element, "button");
    galleries += 1;
    this.inputs.forEach((input, head) => {
      input.name += galleries;
      // The scores stay open; they say nothing of a head that is picked after them.
      input.onchange = () => this.change({ head, open: this.state.open && 1 });
    });
    commit.onclick = () => {
      const { head, tried, open } = this.state;
      const last = open || tried >= 0 || head == this.best;
      if (head >= 0) this.change(last ? { open: 2 } : { tried: head });
      else this.say("Choose a head first.");
    };
    show.onclick = () => this.change({ open: 1 });
    this.reset = show;
  }

  // A weight in thousandths, NaN where the key is hidden.
  weight(h, t, s) {
    return parseInt(this.rows[h * this.tokens.length + t].slice(2 * s, 2 * s + 2), 36);
  }

  // What the chosen query gives to the chosen key in a head.
  gives(h) {
    const { query, key } = this.state;
    if (query == null || key == null) return "";
    const weight = this.weight(h, query, key);
    const [from, to] = [query, key].map((place) => `<em>${this.tokens[place]}</em>`);
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

  forms() {
    const below = (size) => [
      (text) => (/^\d+$/.test(text) && text < size ? Number(text) : undefined),
      `0 to ${size - 1}`,
    ];
    return Object.fromEntries(
      Object.entries(this.sizes).map(([name, size]) => [name, below(size)])
    );
  }

  restore(state) {
    this.state = state;
    this.show();
  }

  // What a reader does.
  change(part) {
    this.state = { ...this.state, ...part };
    this.show();
    this.tell();
    this.changed();
  }

  keyed(svg, { key, ctrlKey, metaKey }) {
    if (ctrlKey || metaKey) return;
    const { query, key: chosen } = this.state;
    if (key == "Escape") return () => this.change({ key: undefined });
    const { length } = this.tokens;
    const to = arrow(key, [query ?? -1, chosen ?? -1], [length, length]);
    const stays = query >= 0 && chosen == null && /Up|Down/.test(key);
    return to && (() => this.change({ query: to[0], key: stays ? undefined : to[1] }));
  }
}

define("tl-gallery", (element) => new Gallery(element).addLink("Link to this choice"));
