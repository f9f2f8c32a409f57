// What every exhibit does: keys move among its cells, one sentence is shown and spoken beneath its
// question, and its state is a query: a link carries it, a page keeps it.

import { all, report } from "../shared.js";

const STEPS = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  Home: [0, -Infinity],
  End: [0, Infinity],
};
const within = (place, size) => Math.min(Math.max(place, 0), size - 1);

// A part of a state as a link writes it has a form: how it is read from a text, which gives nothing
// where the text does not fit, and what is expected. Here it is one of some texts or numbers.
export const oneOf = (...known) => [
  (text) => known.find((one) => `${one}` == text),
  `one of ${known.join(", ")}`,
];

// What entries say by their forms, and what is wrong with them, if anything.
export const parse = (forms, entries) => {
  const read = {};
  for (const [key, text] of entries) {
    const form = new Map(Object.entries(forms)).get(key);
    if (!form) return [, `“${key}” cannot be set; expected ${oneOf(...Object.keys(forms))[1]}.`];
    read[key] = form[0](text);
    if (read[key] === undefined) return [, `${key} is “${text}”; expected ${form[1]}.`];
  }
  return [read];
};

// An exhibit around an element, with a `state`, and `first`, how it begins. Each kind gives
// `forms`, how a link writes the parts of a state, `paint`, which shows it in silence, and `told`,
// what is said of it; if a state may not fit though each of its parts does, `misfit`, which says
// why. One whose state is more than its parts gives `toQuery` and `applyQuery` instead. One with
// cells of its own gives `choose`, which tells of a cell, `enter`, what Enter or Space does in it,
// `keyed`, a function for what another key does, and `beyond`, where keys lead from its edge.
export class Exhibit {
  spots = new Map();
  link = document.createElement("a");

  constructor(element) {
    this.element = element;
    this.kind = element.localName.slice(3);
    this.news = element.querySelector("[aria-live]");
    this.given = JSON.parse(element.querySelector("[data-given]")?.dataset.given ?? null);
    this.sliders = all(element, "[type=range]");
    this.fields = all(element, "[type=text]");
    this.bodies = all(element, "tbody").map((body) => [...body.rows]);
    this.buttons = all(element, "button");
    this.reset = this.buttons.at(-1);
    element.recall = (state) => this.recall(state);
    element.onkeydown = (event) => this.press(event);
    // A field in a cell is in the cell.
    element.addEventListener("focusin", ({ target }) => this.stop(target.closest("[tabindex]")));
    // JupyterLab takes a key pressed in an output for a command to the notebook, except here.
    element.dataset.lmSuppressShortcuts = "";
  }

  say(words) {
    if (this.news.textContent != words) this.news.textContent = words;
  }

  // Give grids, each a list of rows of cells, one stop for the Tab key, which roves among them.
  rove(...grids) {
    const cells = grids.flat(2);
    const place = (rows, t) => (cell, j) => this.spots.set(cell, { rows, t, j, cells });
    grids.forEach((rows) => rows.forEach((row, t) => row.forEach(place(rows, t))));
    cells.forEach((cell, i) => (cell.tabIndex = i ? -1 : 0));
  }

  // Offer cells as a group of which one is chosen.
  offer(cells, label) {
    this.rove([cells]);
    Object.assign(cells[0].parentNode, { role: "radiogroup", ariaLabel: label });
    cells.forEach((cell) => {
      cell.role = "radio";
      cell.onclick = () => cell.focus();
    });
  }

  // What was written in a field, by its form; what cannot be waits there, and words say why.
  writtenIn(field, [read, expected]) {
    const value = read(field.value);
    field.ariaInvalid = value === undefined || null;
    if (value === undefined)
      this.say(`“${field.value}” cannot be; expected ${expected}. Nothing has changed.`);
    return value;
  }

  // Let the last button show how all began.
  resets(words) {
    this.reset.onclick = () => {
      this.restore(this.first);
      this.changed(words);
    };
  }

  stop(cell) {
    if (!this.spots.has(cell)) return;
    this.spots.get(cell).cells.forEach((other) => (other.tabIndex = other == cell ? 0 : -1));
    this.choose?.(cell);
  }

  // The cell to which an arrow leads from another.
  next(key, cell) {
    const { rows, t, j } = this.spots.get(cell);
    const [down, right] = STEPS[key] || [];
    const to = rows[within(t + down, rows.length)]?.[within(j + right, rows[0].length)];
    return (to == cell && this.beyond?.(key, cell)) || to;
  }

  press(event) {
    const { target, key, altKey, ctrlKey, metaKey } = event;
    if (!this.spots.has(target) || altKey) return;
    const to = !ctrlKey && !metaKey && this.next(key, target);
    const enters = [" ", "Enter"].includes(key) && (() => this.enter?.(target));
    const act = this.keyed?.(target, event) || enters || (to && (() => to.focus()));
    if (act) {
      act();
      event.preventDefault();
    }
  }

  restore(state) {
    this.state = { ...state };
    this.paint();
  }

  // Change parts of the state as a reader did, and say what became of it.
  change(part, words = () => this.told()) {
    this.restore({ ...this.state, ...part });
    this.changed(words());
  }

  // The state as [key, value], for all in which it differs from how it began.
  toQuery() {
    return Object.entries(this.state).filter(([key, value]) => value != this.first[key]);
  }

  // Show the state of a query; where it cannot be, nothing changes, and words say what was
  // expected.
  applyQuery(entries) {
    const [given, wrong] = parse(this.forms(), entries);
    const next = { ...this.first, ...given };
    return wrong || this.misfit?.(next) || this.restore(next);
  }

  query() {
    return `${new URLSearchParams(this.toQuery())}`;
  }

  peers() {
    return all(document, this.element.localName);
  }

  // Bring the link up to date, and after a change by the reader, of which words tell, the page too.
  relink() {
    const which = `${this.kind}=${this.peers().indexOf(this.element)}`;
    this.link.href = `#${[which, this.query()].filter(Boolean).join("&")}`;
  }

  changed(words) {
    if (words) this.say(words);
    this.relink();
    report(this.element, this.query());
  }

  // Put back what the page has kept; an address that names this exhibit goes before it.
  recall(state) {
    if (typeof state != "string") return false;
    if (this.linked) return true;
    const fits = !this.applyQuery(new URLSearchParams(state));
    this.relink();
    return fits;
  }

  // Listen, show how all begins, offer a link to the state, and follow one. In Colab and JupyterLab
  // the address of the page is not that of a state.
  wake(words) {
    this.listen?.();
    this.restore(this.first);
    this.relink();
    if (top != self || this.element.closest(".jp-Notebook")) return;
    this.link.textContent = words;
    this.link.onclick = () => this.say("The address of this page carries it now: copy it.");
    this.reset.parentNode.append(this.link);
    const arrive = () => {
      if (!this.follow()) return;
      const fold = this.element.closest("details");
      if (fold) fold.open = true;
      // Who follows the exhibit's own link is there.
      if (document.activeElement != this.link) this.element.scrollIntoView();
    };
    addEventListener("hashchange", arrive);
    // How many there are is known when the page is read.
    if (document.readyState == "loading") addEventListener("DOMContentLoaded", arrive);
    else arrive();
  }

  // Show what the address of the page names; true if it speaks to this exhibit.
  follow() {
    // "#map" alone is an anchor of the page.
    if (!location.hash.includes("=")) return false;
    const [[kind, which] = [], ...rest] = new URLSearchParams(location.hash.slice(1));
    const peers = this.peers();
    const named = /^\d+$/.test(which) && peers[which];
    // The first answers for one that is not there.
    if (kind != this.kind || (named || peers[0]) != this.element) return false;
    const last = peers.length - 1;
    // The address that the exhibit itself wrote is no news.
    if (named && `${new URLSearchParams(rest)}` == this.query() && this.query()) return true;
    const wrong = named
      ? this.applyQuery(rest)
      : `“${which}” is no ${kind} of this page; expected ${last ? `0 to ${last}` : 0}.`;
    this.linked ||= !wrong;
    this.relink();
    if (wrong) this.say(`The link does not fit: ${wrong} Nothing has changed.`);
    else this.say(this.told());
    return true;
  }
}
