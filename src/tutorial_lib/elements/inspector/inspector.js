// The inspector: where one head lets one query look, and which queries ask one key.

import { all, define } from "../shared.js";
import { WeightExhibit } from "../weights.js";

const among = new Intl.ListFormat("en");

class Inspector extends WeightExhibit {
  constructor(element) {
    super(element);
    this.menus = all(element, "select");
    this.lists = all(element, ".tl-list");
    this.first = this.state = { head: 0, query: this.queries.length - 1, key: undefined };
  }

  // The places of some weights that are not hidden, the largest first.
  order(weights) {
    const seen = [...weights.keys()].filter((i) => weights[i] >= 0);
    return seen.sort((a, b) => weights[b] - weights[a]);
  }

  // The largest of some weights in words, or nothing if all are 0.
  largest(weights, names) {
    const order = this.order(weights);
    const name = (i) => `<em>${names[i]}</em>`;
    const top = order.filter((i) => weights[i] == weights[order[0]]);
    const [most] = top.map((i) => weights[i]);
    if (!most) return "";
    const named = top.slice(0, 5).map(name);
    if (top.length > 5) named.push(`${top.length - 5} more`);
    const each = top.length > 1 ? " each" : "";
    const then = order.slice(top.length, top.length + 2).filter((i) => weights[i]);
    const rest = then.map((i) => `${name(i)} ${this.number(weights[i])}`);
    const others = rest.length ? `, then ${among.format(rest)}` : "";
    return `${among.format(named)}: ${this.number(most)}${each}${others}`;
  }

  tell() {
    const { head, query, key } = this.state;
    const name = `<em>${this.queries[query]}</em> in ${this.headed(`head ${head}`)}`;
    const [row, column] = [this.row, this.column].map((weights, i) =>
      this.largest(weights, i ? this.queries : this.keys)
    );
    const asked = `<em>${this.keys[key]}</em>`;
    const gives = this.row[key] >= 0 ? `gives ${asked} ${this.number(this.row[key])}` : "";
    const none = `No query gives ${asked} more than ${this.number(0)}`;
    const who = column ? `${asked} is asked most by ${column}` : none;
    const looks = row ? `gives most to ${row}` : "looks at nothing";
    const pair = `${gives || `may not look at ${asked}`}. ${who}`;
    this.news.innerHTML = `${name} ${key >= 0 ? pair : looks}.`;
  }

  headed(words) {
    return `<b data-head="${this.state.head % 4}">${words}</b>`;
  }

  // Fill a table: the largest five, or all, those last that are hidden.
  list(box, weights, names) {
    const every = box.querySelector("button");
    const order = this.order(weights);
    const hidden = [...weights.keys()].filter((i) => !(weights[i] >= 0));
    const shown = every?.ariaPressed == "false" ? order.slice(0, 5) : [...order, ...hidden];
    const line = (i) => {
      const text = weights[i] >= 0 ? this.number(weights[i]) : "hidden";
      const bar = `<span class="tl-bar" style="width: ${(weights[i] || 0) / 10}%"></span>`;
      const head = `data-head="${this.state.head % 4}"`;
      return `<tr><th scope="row">${names[i]}</th><td>${text}</td><td ${head}>${bar}</td></tr>`;
    };
    box.querySelector("tbody").innerHTML = shown.map(line).join("");
  }

  show() {
    const { head, query, key } = this.state;
    const [gives, asked] = this.lists;
    if (this.drawn != head) {
      this.drawn = head;
      this.map = this.weights(head);
      this.maps[0].draw(this.map, head);
    }
    this.row = this.map[query];
    this.column = this.map.map((row) => row[key]);
    this.maps[0].frame(this.state);
    this.menus.forEach((menu, i) => (menu.value = [head, query, key ?? ""][i]));
    gives.firstElementChild.innerHTML = `What <em>${this.queries[query]}</em> gives`;
    this.list(gives, this.row, this.keys);
    asked.style.display = key >= 0 ? "" : "none";
    asked.firstElementChild.innerHTML = `What <em>${this.keys[key]}</em> is asked by`;
    this.list(asked, this.column, this.queries);
  }

  // From a row to the key that gets most.
  enter() {
    const [key] = this.order(this.row);
    this.change({ key });
  }
}

define("tl-inspector", (element) => {
  const inspector = new Inspector(element);
  ["head", "query", "key"].forEach((name, i) => {
    const menu = inspector.menus[i];
    menu.oninput = () => inspector.change({ [name]: menu.value ? Number(menu.value) : undefined });
  });
  all(element, ".tl-list button").forEach((every) => {
    every.onclick = () => {
      every.ariaPressed = every.ariaPressed != "true";
      inspector.show();
    };
  });
  inspector.show();
  inspector.addLink("Link to this choice", element.querySelector(".tl-row"));
});
