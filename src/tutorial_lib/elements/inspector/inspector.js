// The inspector: where one head lets one query look, in a sentence, a table and a map.

import { all, define } from "../shared.js";
import { drawMap, unpack } from "../weights.js";

const among = new Intl.ListFormat("en");

class Inspector {
  constructor(element) {
    [this.head, this.query] = all(element, "select");
    this.sentence = element.querySelector("[aria-live]");
    this.table = element.querySelector("tbody");
    this.every = element.querySelector("button");
    this.cells = element.querySelector("svg g");
    Object.assign(this, unpack(element));
  }

  number(weight) {
    return this.fractions[weight] ?? (weight / 1000).toFixed(3);
  }

  // Where a row of weights looks, in words; its keys come in order.
  tell(row, order) {
    const name = (s) => `<em>${this.keys[s]}</em>`;
    const top = order.filter((s) => row[s] == row[order[0]]);
    const [most] = top.map((s) => row[s]);
    if (!most) return "looks at nothing";
    const names = top.slice(0, 5).map(name);
    if (top.length > 5) names.push(`${top.length - 5} more`);
    const each = top.length > 1 ? " each" : "";
    const then = order.slice(top.length, top.length + 2).filter((s) => row[s]);
    const rest = then.map((s) => `${name(s)} ${this.number(row[s])}`);
    const others = rest.length ? `, then ${among.format(rest)}` : "";
    return `gives most to ${among.format(names)}: ${this.number(most)}${each}${others}`;
  }

  // One key in the table.
  line(key, weight) {
    const [text, share] = weight >= 0 ? [this.number(weight), weight / 10] : ["hidden", 0];
    const bar = `<span class="tl-bar" style="width: ${share}%"></span>`;
    return `<tr><th scope="row">${key}</th><td>${text}</td><td>${bar}</td></tr>`;
  }

  choose() {
    const { head, query, keys, every } = this;
    const row = this.rows[query.value];
    const seen = [...keys.keys()].filter((s) => row[s] >= 0).sort((a, b) => row[b] - row[a]);
    const hidden = [...keys.keys()].filter((s) => !(row[s] >= 0));
    const shown = every?.ariaPressed == "false" ? seen.slice(0, 5) : [...seen, ...hidden];
    const name = `<em>${this.queries[query.value]}</em>`;
    const place = `in <b data-head="${head.value % 4}">head ${head.value}</b>`;
    this.sentence.innerHTML = `${name} ${place} ${this.tell(row, seen)}.`;
    this.table.innerHTML = shown.map((s) => this.line(keys[s], row[s])).join("");
    this.cells.lastElementChild.setAttribute("y", query.value);
  }

  change() {
    this.rows = this.map(this.head.value);
    drawMap(this.cells, this.rows);
    this.cells.insertAdjacentHTML("beforeend", `<rect width="${this.keys.length}" height="1"/>`);
    this.choose();
  }

  // Choose the query whose row of the map was clicked.
  point({ clientX, clientY }) {
    const place = new DOMPoint(clientX, clientY);
    const { y } = place.matrixTransform(this.cells.getScreenCTM().inverse());
    if (this.queries[Math.floor(y)]) {
      this.query.value = Math.floor(y);
      this.choose();
    }
  }
}

define("tl-inspector", (element) => {
  const inspector = new Inspector(element);
  const { head, query, every } = inspector;
  head.oninput = () => inspector.change();
  query.oninput = () => inspector.choose();
  if (every) {
    every.onclick = () => {
      every.ariaPressed = every.ariaPressed != "true";
      inspector.choose();
    };
  }
  element.querySelector("svg").onclick = (event) => inspector.point(event);
  inspector.change();
});
