// What happens when a reader acts on an element: quiz, prediction, puzzle, playground, inspector,
// gallery.
//
// Python writes each element as a form that reads without any script: the question, its options
// and, in <details>, the answer with its reasons. Once an element is defined here, the style sheet
// hides its <details> and shows its buttons, and the script tells one reason at a time, in regions
// that were there, empty, from the start: a screen reader speaks for no others.
//
// A part begins at a line "// part: name". Python embeds with each element only the parts that it
// needs, in a block of their own, without indentation and lines of comment.

// part: shared
const all = (root, selector) => [...root.querySelectorAll(selector)];

const define = (name, build) =>
  customElements.get(name) ||
  customElements.define(name, class extends HTMLElement {
    connectedCallback() {
      if (document.readyState == "loading" && !this.nextSibling) {
        // The parser connects an element before it has read what is inside.
        addEventListener("DOMContentLoaded", () => this.connectedCallback());
      } else if (!this.built) {
        this.built = true;
        build(this);
      }
    }
  });

// part: choice
const choice = (box, answered) => {
  const inputs = all(box, "input");
  const reasons = all(box, "dd");
  const regions = all(box, "p");
  box.querySelector("button").onclick = () => {
    const picked = inputs.findIndex((input) => input.checked);
    regions.forEach((node, i) => (node.innerHTML = i == picked ? reasons[i].innerHTML : ""));
    if (picked < 0) regions.at(-1).textContent = "Choose an answer first.";
    else answered(reasons[picked].querySelector(".tl-right"));
  };
};

// part: quiz
define("tl-quiz", (quiz) => {
  const boxes = all(quiz, "fieldset");
  const score = quiz.lastElementChild;
  const tries = new Map();
  boxes.forEach((box) =>
    choice(box, (right) => {
      if (!tries.has(box)) tries.set(box, right);
      const won = [...tries.values()].filter(Boolean).length;
      score.textContent =
        tries.size < boxes.length
          ? `${tries.size} of ${boxes.length} answered.`
          : `${won} of ${boxes.length} right at the first try.`;
    })
  );
});

// part: prediction
const prediction = (element, ask) => {
  const open = () => {
    // The next closed output, of the site or of JupyterLab, if no other prediction comes before it.
    const closed = ".tl-predict, details.below-input, .jp-Placeholder-content";
    const next = all(document, closed).find((node) => element.compareDocumentPosition(node) & 4);
    const found = next && !next.matches(".tl-predict");
    if (found) {
      next.open = true;
      next.click();
    }
    element.lastElementChild.textContent = found
      ? "The output below is open."
      : "Now run the next cell.";
  };
  ask(element.firstElementChild, open);
  all(element, "button")[1].onclick = open;
};

// part: predict-choice
define("tl-predict-choice", (element) => prediction(element, choice));

// part: readings
// "4/7", "0.25", "0,25"; "3,072" may mean either number, so there can be two readings.
const readings = (text) => {
  const plain = text.normalize("NFKC").replace(/\s/g, "").replace("−", "-").replace("⁄", "/");
  return [plain.replace(",", "."), plain.replace(/,(?=\d{3}\b)/g, "")]
    .map((number) => {
      const [, top, bottom = 1] = /^([-+]?[\d.]+)(?:\/([\d.]+))?$/.exec(number) || [];
      return top / bottom;
    })
    .filter(isFinite);
};

// part: predict-number
const number = (box, answered) => {
  const input = box.querySelector("input");
  const reasons = all(box, "dd");
  const region = box.querySelector("p");
  const commit = () => {
    const values = readings(input.value);
    input.ariaInvalid = !values.length;
    if (values.length) {
      const known = ({ dataset }) =>
        values.some((value) => Math.abs(value - dataset.value) <= dataset.within);
      region.innerHTML = (reasons.find(known) || reasons.at(-1)).innerHTML;
      answered();
    } else region.textContent = "Please write a number, such as 12, 0.25 or 1/4.";
  };
  box.querySelector("button").onclick = commit;
  input.onkeydown = ({ key }) => {
    if (key == "Enter") commit();
  };
};

define("tl-predict-number", (element) => prediction(element, number));

// part: parsons
define("tl-parsons", (element) => {
  const [source] = all(element, "pre");
  const [pool, program] = all(element, "ul, ol");
  const [verdict, news] = all(element, "[aria-live]");
  const reasons = all(element, "dd");
  const lines = all(source, "code");
  const solution = lines
    .filter(({ dataset }) => dataset.place)
    .sort((a, b) => a.dataset.place - b.dataset.place)
    .map((line) => line.textContent);
  source.remove();

  // Every line carries all four buttons; the style sheet shows those that its list uses.
  const item = (line) => {
    const node = document.createElement("li");
    const act = (name, sign, label, move) => {
      const control = document.createElement("button");
      control.type = "button";
      // JupyterLab takes a key pressed in an output for a command to the notebook, except here.
      control.dataset.lmSuppressShortcuts = "";
      control.className = name;
      control.textContent = sign;
      control.ariaLabel = `${label}: ${line.textContent.trim()}`;
      control.onclick = () => {
        const focus = move() || control;
        focus.focus();
        all(element, "[data-wrong]").forEach((marked) => delete marked.dataset.wrong);
        verdict.textContent = "";
        const place = all(program, "li").indexOf(node) + 1;
        news.textContent = place ? `Line ${place} of ${program.children.length}` : "Taken out";
      };
      node.append(control);
      return control;
    };
    const take = act("tl-add", "+", "Add", () => {
      const next = node.nextElementSibling || node.previousElementSibling;
      program.append(node);
      return next ? next.querySelector(".tl-add") : node.querySelector(".tl-up");
    });
    // What does not fit on a narrow screen goes on to the right of where the line begins.
    const hang = line.textContent.search(/\S/) + 2;
    line.style = `padding-left: ${hang}ch; text-indent: -${hang}ch`;
    node.append(line);
    act("tl-up", "↑", "Move up", () => {
      node.previousElementSibling?.before(node);
    });
    act("tl-down", "↓", "Move down", () => {
      node.nextElementSibling?.after(node);
    });
    act("tl-out", "×", "Take out", () => {
      pool.append(node);
      return take;
    });
    line.onclick = () => pool.contains(line) && take.click();
    pool.append(node);
  };
  lines.forEach(item);

  const say = (kind, start, rest) => {
    verdict.innerHTML = `<b class="tl-${kind}">${start}</b> ${rest}`;
  };
  element.querySelector(".tl-row button").onclick = () => {
    const placed = all(program, "code");
    const wrong = placed.findIndex((line, i) => line.textContent != solution[i]);
    placed.forEach((line, i) => line.parentNode.toggleAttribute("data-wrong", i == wrong));
    const bug = placed[wrong]?.dataset.why;
    if (bug) {
      verdict.innerHTML = `Line ${wrong + 1}: ${reasons[bug].innerHTML}`;
    } else if (wrong >= 0) {
      say("wrong", "✗ Not yet.", `Line ${wrong + 1} is the first out of place.`);
    } else if (placed.length < solution.length) {
      say("more", "Not complete.", placed.length ? "Every line so far is in its place." : "");
    } else {
      say("right", "✓ Right.", "Every line is in its place.");
    }
  };
});

// part: layer
// The library's trace() of one sentence, in the units that make the running example's numbers
// whole: W_Q and Q count 2·ln 2 and scores count ln 2, so that softmax raises 2 instead of e.
// Every array is a list of matrices, one for each head; the mask holds 1 and 0.
const turned = (A) => A[0].map((_, j) => A.map((row) => row[j]));
const dot = (a, b) => a.reduce((sum, number, i) => sum + number * b[i], 0);
const times = (A, B) => A.map((row) => turned(B).map((column) => dot(row, column)));
const share = (scores, mask) => {
  const top = Math.max(...scores.filter((_, s) => mask[s]));
  const powers = scores.map((score, s) => (mask[s] ? 2 ** (score - top) : 0));
  // A row with nothing to look at stays 0.
  const sum = powers.reduce((a, b) => a + b) || 1;
  return powers.map((power) => power / sum);
};
const layer = ({ X: [X], W_Q, W_K, W_V, W_O: [W_O], mask: [mask], scale: [[[scale]]] }) => {
  const [Q, K, V] = [W_Q, W_K, W_V].map((heads) => heads.map((W) => times(X, W)));
  const products = Q.map((queries, h) => times(queries, turned(K[h])));
  const scores = products.map((head) => head.map((row) => row.map((n) => (2 * n) / scale)));
  const weights = scores.map((head) => head.map((row, t) => share(row, mask[t])));
  const heads = weights.map((head, h) => times(head, V[h]));
  const concat = X.map((_, t) => heads.flatMap((head) => head[t]));
  return { Q, K, V, scores, weights, heads, concat: [concat], Y: [times(concat, W_O)] };
};

// part: playground
// A fraction where the number is one, with a denominator up to 1000, or else four decimals.
const fraction = (value) => {
  for (let bottom = 1; bottom <= 1000; bottom++) {
    const top = Math.round(value * bottom);
    if (Math.abs(value - top / bottom) <= 1e-13 * Math.max(1, Math.abs(value))) {
      const written = bottom > 1 ? `${top}/${bottom}` : `${top}`;
      return written.length < 9 && written;
    }
  }
};
const decimals = (value) => (Math.abs(value) < 1e5 ? value.toFixed(4) : value.toExponential(3));
const written = (value) => (fraction(value) || decimals(value)).replace("-", "−");

define("tl-playground", (element) => {
  const inputs = ["X", "W_Q", "W_K", "W_V", "W_O", "mask", "scale"];
  // By name, for each head: its rows of cells, and of numbers. The state is the inputs' numbers.
  const tables = {};
  let values = {};
  let state;
  const past = [];
  // Where each cell stands, and which one was chosen last.
  const places = new Map();
  let chosen;
  const mine = all(document, "tl-playground").indexOf(element);
  const news = element.lastElementChild;
  const rules = new Map(all(element, ".tl-sum").map((line) => [line, line.textContent]));
  const [controls] = rules.keys();

  all(element, "table").forEach((table) => {
    const [title, unit] = [...table.caption.childNodes].map((node) => node.textContent.trim());
    const [name] = title.split(",");
    const [top, ...rows] = table.rows;
    const lines = rows.map((line) => all(line, "td"));
    const h = (tables[name] ??= []).push(lines) - 1;
    table.role = "grid";
    table.ariaReadOnly = !inputs.includes(name);
    lines.forEach((cells, t) =>
      cells.forEach((cell, j) => {
        const heads = [rows[t].cells[0], top.cells[j + 1]].map((head) => head.textContent);
        const label = [title, ...heads].join(", ");
        places.set(cell, { table, name, h, t, j, label, unit: unit ? ` ${unit}` : "" });
        cell.tabIndex = t + j ? -1 : 0;
      })
    );
  });
  const read = ({ textContent }) =>
    ({ "✓": 1, "·": 0 })[textContent] ?? readings(textContent)[0];
  const first = Object.fromEntries(
    inputs.map((name) => [name, tables[name].map((lines) => lines.map((cells) => cells.map(read)))])
  );

  const number = (cell) => {
    const { name, h, t, j } = places.get(cell);
    return values[name][h][t][j];
  };
  const shown = (cell) =>
    places.get(cell).name == "mask" ? "·✓"[number(cell)] : written(number(cell));
  const grid = (name, h) => tables[name][h] || tables[name][0];
  const row = (name, h, t) => grid(name, h)[t];
  const column = (name, h, j) => grid(name, h).map((cells) => cells[j]);

  // What made a number: the cells to light, and the sum as text.
  const factor = (cell) => (number(cell) < 0 ? `(${shown(cell)})` : shown(cell));
  const sum = (left, right) =>
    left.map((cell, i) => `${factor(cell)}·${factor(right[i])}`).join(" + ");
  const product = (A, B) => ({ h, t, j }) => {
    const [left, right] = [row(A, h, t), column(B, h, j)];
    return [[...left, ...right], sum(left, right)];
  };
  const made = {
    Q: product("X", "W_Q"),
    K: product("X", "W_K"),
    V: product("X", "W_V"),
    scores({ h, t, j }) {
      const [query, key, [scale]] = [row("Q", h, t), row("K", h, j), row("scale", 0, 0)];
      return [[...query, ...key, scale], `2·(${sum(query, key)}) / ${factor(scale)}`];
    },
    weights({ h, t, j }) {
      const [scores, mask] = [row("scores", h, t), row("mask", 0, t)];
      const seen = scores.filter((_, s) => number(mask[s])).map(number);
      const top = Math.max(...seen);
      // Less the largest score where powers of 2 are too long to read: the weights are the same.
      const shift = Math.abs(top) > 40 ? top : 0;
      const power = (score) => written(2 ** (score - shift));
      const words = `${power(number(scores[j]))} / (${seen.map(power).join(" + ")})`;
      return [[...scores, ...mask], number(mask[j]) ? words : "nothing, since the mask hides it"];
    },
    heads: product("weights", "V"),
    concat({ t, j }) {
      const width = row("heads", 0, t).length;
      const cell = row("heads", Math.floor(j / width), t)[j % width];
      return [[cell], places.get(cell).label];
    },
    Y: product("concat", "W_O"),
  };

  const say = (line, words) => {
    rules.forEach((rule, other) => {
      if (other == line) other.textContent = words;
      else if (!other.parentNode.querySelector("[aria-invalid=true]")) other.textContent = rule;
    });
    if (news.textContent != words) news.textContent = words;
  };
  const lineOf = (cell) => cell.closest(".tl-step").lastElementChild;

  const light = (cell, lit = []) => {
    chosen = cell;
    places.forEach(({ table }, other) => {
      other.toggleAttribute("data-lit", lit.includes(other));
      other.ariaSelected = other == cell;
      if (table == places.get(cell)?.table) other.tabIndex = other == cell ? 0 : -1;
    });
  };
  const choose = (cell) => {
    const { name, label, unit } = places.get(cell);
    const [lit, words] = made[name]?.(places.get(cell)) || [];
    light(cell, lit);
    const equals = fraction(number(cell)) ? "=" : "≈";
    const sentence = lit
      ? `${label} = ${words} ${equals} ${shown(cell)}${unit}`
      : fault(cell) || `${cell.ariaLabel}. Enter changes it.`;
    say(lineOf(cell), sentence);
  };

  // Show another state; the answer says which numbers followed.
  const paint = (next) => {
    const before = values;
    state = next;
    values = { ...next, ...layer(next) };
    const moved = {};
    places.forEach(({ name, h, t, j, label, unit }, cell) => {
      const change = Math.abs(values[name][h][t][j] - (before[name]?.[h][t][j] ?? NaN));
      cell.toggleAttribute("data-moved", change > 1e-12);
      if (change > 1e-12 && made[name]) moved[name] = (moved[name] || 0) + 1;
      const hidden = name == "scores" && !values.mask[0][t][j];
      cell.toggleAttribute("data-hidden", hidden);
      const text = shown(cell);
      const spoken = { "✓": "may look", "·": "hidden" }[text] || text + unit;
      cell.ariaLabel = `${label}: ${spoken}${hidden ? ", hidden by the mask" : ""}`;
      if (!cell.firstElementChild) cell.textContent = text;
    });
    address();
    const counts = Object.entries(moved).map(([name, count]) => `${count} of ${name}`);
    return `Numbers that follow: ${counts.join(", ") || "none"}.`;
  };
  const sound = (next) => Object.values(layer(next)).flat(3).every(isFinite);
  const changed = (cell, value) => {
    const { name, h, t, j } = places.get(cell);
    const next = structuredClone(state);
    next[name][h][t][j] = value;
    return next;
  };

  // What is wrong with the text in a cell that is being written.
  const fault = (cell) => {
    const input = cell.firstElementChild;
    if (!input) return;
    const [value] = readings(input.value);
    if (value === undefined) return `“${input.value}” is not a number. Write 2, −0.5 or 1/4.`;
    if (!sound(changed(cell, value))) return `${input.value} makes a number after it infinite.`;
  };
  const change = (cell, value) => {
    past.push(state);
    const was = shown(cell);
    const followers = paint(changed(cell, value));
    say(lineOf(cell), `${places.get(cell).label} was ${was}, is ${shown(cell)}. ${followers}`);
  };
  const edit = (cell, typed) => {
    if (places.get(cell).name == "mask") return change(cell, 1 - number(cell));
    if (cell.firstElementChild) return cell.firstElementChild.focus();
    const input = document.createElement("input");
    const exact = readings(shown(cell))[0] == number(cell);
    Object.assign(input, { type: "text", autocomplete: "off", spellcheck: false });
    input.ariaLabel = `A number for ${places.get(cell).label}`;
    input.value = typed || (exact ? shown(cell) : number(cell));
    const close = () => {
      input.onblur = null;
      cell.textContent = shown(cell);
    };
    const commit = () => {
      const wrong = fault(cell);
      input.ariaInvalid = Boolean(wrong);
      if (wrong) return say(lineOf(cell), wrong);
      const [value] = readings(input.value);
      close();
      if (value != number(cell)) change(cell, value);
    };
    input.onblur = commit;
    input.onkeydown = ({ key }) => {
      if (key == "Enter") commit();
      if (key == "Escape") close();
      if (!input.isConnected) cell.focus();
    };
    cell.replaceChildren(input);
    input.focus();
    if (!typed) input.select();
  };

  const tell = (words) => {
    light();
    say(controls, words);
  };
  const undo = () => {
    if (!past.length) tell("There is nothing to undo.");
    else tell(`The last change is undone. ${paint(past.pop())}`);
  };
  const differs = (next) => JSON.stringify(next) != JSON.stringify(state);
  const load = (next, words) => {
    if (differs(next)) past.push(state);
    tell(`${words} ${paint(next)}`);
  };

  // The link names every number that differs from the example's: #playground=0&X.0.2.1=1.5
  const keyOf = ({ name, h, t, j }) => [name, h, t, j].join(".");
  const editable = () => [...places].filter(([, { name }]) => inputs.includes(name));
  const link = document.createElement("a");
  link.textContent = "Link to these numbers";
  const address = () => {
    const query = new URLSearchParams({ playground: mine });
    editable().forEach(([cell, place]) => {
      const { name, h, t, j } = place;
      if (number(cell) != first[name][h][t][j]) query.set(keyOf(place), number(cell));
    });
    link.href = `#${query}`;
  };
  const follow = () => {
    const query = new URLSearchParams(location.hash.slice(1));
    if (query.get("playground") != mine) return;
    query.delete("playground");
    const next = structuredClone(first);
    const known = new Map(editable().map(([, place]) => [keyOf(place), place]));
    const fits = [...query].every(([key, text]) => {
      const { name, h, t, j } = known.get(key) || {};
      if (!name || !(name == "mask" ? /^[01]$/ : /\d/).test(text) || !isFinite(text)) return false;
      next[name][h][t][j] = Number(text);
      return true;
    });
    if (!fits || !sound(next)) tell("The link does not fit this example: its numbers are left out.");
    else if (differs(next)) load(next, "The numbers of the link are here.");
  };

  const [back, reset] = all(element, "button");
  back.onclick = undo;
  reset.onclick = () => load(first, "The example's own numbers are back.");
  // JupyterLab takes a key pressed in an output for a command to the notebook, except here.
  element.dataset.lmSuppressShortcuts = "";
  element.onkeydown = (event) => {
    const { target, key, ctrlKey, metaKey, altKey } = event;
    const place = places.get(target);
    if (!place || altKey) return;
    const { name, h, t, j } = place;
    const go = (down, right) => (grid(name, h)[t + down]?.[j + right] || target).focus();
    const open = inputs.includes(name) && (() => edit(target));
    const acts = {
      ArrowUp: () => go(-1, 0),
      ArrowDown: () => go(1, 0),
      ArrowLeft: () => go(0, -1),
      ArrowRight: () => go(0, 1),
      Home: () => go(0, -j),
      End: () => row(name, h, t).at(-1).focus(),
      Enter: open,
      " ": open,
    };
    const types = open && name != "mask" && /^[-−+.\d]$/.test(key) && (() => edit(target, key));
    const act = ctrlKey || metaKey ? key == "z" && undo : acts[key] || types;
    if (act) {
      act();
      event.preventDefault();
    }
  };
  element.onclick = ({ target }) => {
    if (!places.has(target)) return;
    if (inputs.includes(places.get(target).name)) edit(target);
    else choose(target);
  };
  element.addEventListener("focusin", ({ target }) => {
    const cell = target.closest("td");
    if (cell && cell != chosen) choose(cell);
  });

  paint(first);
  // In Colab and JupyterLab the address of the page is not that of a state.
  if (top == self && !element.closest(".jp-Notebook")) {
    back.parentNode.append(link);
    link.onclick = () => tell("The address of this page carries these numbers now: copy it.");
    addEventListener("hashchange", follow);
    if (location.hash.includes("playground=")) {
      follow();
      element.scrollIntoView();
    }
  }
});

// part: weights
// The weights of one head, row by row: thousandths, NaN where a key is hidden, as Python packs them.
const unpack = (element) => {
  const { dataset } = element.querySelector(".tl-live");
  const [queries, keys] = [dataset.queries, dataset.keys].map((names) => JSON.parse(names));
  const rows = dataset.weights.split(" ");
  const map = (h) =>
    rows
      .slice(h * queries.length)
      .slice(0, queries.length)
      .map((row) => keys.map((_, s) => parseInt(row.slice(2 * s, 2 * s + 2), 36)));
  return { queries, keys, map, fractions: JSON.parse(dataset.fractions) };
};

// One path for each of 11 tints, and one that strikes out what is hidden. Neighbours of one kind are
// drawn as one, or a large map would keep the reader waiting; in a small one, gaps part the cells.
const drawMap = (cells, rows) => {
  const paths = Array(12).fill("");
  const kind = (weight) => (weight >= 0 ? Math.round(weight / 100) : 11);
  const gap = rows.length + rows[0].length > 48 ? 0 : 0.06;
  rows.forEach((row, t) => {
    for (let s = 0, end; s < row.length; s = end) {
      const here = kind(row[s]);
      for (end = s + 1; (here == 11 || !gap) && kind(row[end]) == here && end < row.length; ) end += 1;
      const wide = end - s - gap;
      paths[here] +=
        here == 11 ? `M${s + 0.15} ${t + 0.5}H${end - 0.15}` : `M${s} ${t}h${wide}v${1 - gap}h-${wide}z`;
    }
  });
  const shapes = paths.map((d, i) => `<path d="${d}" fill-opacity="${0.08 + i * 0.092}"/>`);
  cells.innerHTML = shapes.join("");
};

// part: inspector
define("tl-inspector", (inspector) => {
  const [head, query] = all(inspector, "select");
  const sentence = inspector.querySelector("[aria-live]");
  const table = inspector.querySelector("tbody");
  const every = inspector.querySelector("button");
  const svg = inspector.querySelector("svg");
  const cells = svg.querySelector("g");
  const { queries, keys, map, fractions } = unpack(inspector);
  const list = new Intl.ListFormat("en");
  const name = (s) => `<em>${keys[s]}</em>`;
  const number = (weight) => fractions[weight] ?? (weight / 1000).toFixed(3);
  let rows;

  const tell = (row, order) => {
    const top = order.filter((s) => row[s] == row[order[0]]);
    const [most] = top.map((s) => row[s]);
    if (!most) return "looks at nothing";
    const names = top.slice(0, 5).map(name);
    if (top.length > 5) names.push(`${top.length - 5} more`);
    const each = top.length > 1 ? " each" : "";
    const then = order.slice(top.length, top.length + 2).filter((s) => row[s]);
    const rest = then.map((s) => `${name(s)} ${number(row[s])}`);
    const others = rest.length ? `, then ${list.format(rest)}` : "";
    return `gives most to ${list.format(names)}: ${number(most)}${each}${others}`;
  };
  const choose = () => {
    const row = rows[query.value];
    const seen = [...keys.keys()].filter((s) => row[s] >= 0).sort((a, b) => row[b] - row[a]);
    const hidden = [...keys.keys()].filter((s) => !(row[s] >= 0));
    const shown = every?.ariaPressed == "false" ? seen.slice(0, 5) : [...seen, ...hidden];
    const place = `in <b data-head="${head.value % 4}">head ${head.value}</b>`;
    sentence.innerHTML = `<em>${queries[query.value]}</em> ${place} ${tell(row, seen)}.`;
    table.innerHTML = shown
      .map((s) => {
        const [text, share] = row[s] >= 0 ? [number(row[s]), row[s] / 10] : ["hidden", 0];
        const bar = `<span class="tl-bar" style="width: ${share}%"></span>`;
        return `<tr><th scope="row">${keys[s]}</th><td>${text}</td><td>${bar}</td></tr>`;
      })
      .join("");
    cells.lastElementChild.setAttribute("y", query.value);
  };
  const change = () => {
    rows = map(head.value);
    drawMap(cells, rows);
    cells.insertAdjacentHTML("beforeend", `<rect width="${keys.length}" height="1"/>`);
    choose();
  };
  head.oninput = change;
  query.oninput = choose;
  if (every) {
    every.onclick = () => {
      every.ariaPressed = every.ariaPressed != "true";
      choose();
    };
  }
  svg.onclick = ({ clientX, clientY }) => {
    const { y } = new DOMPoint(clientX, clientY).matrixTransform(cells.getScreenCTM().inverse());
    if (queries[Math.floor(y)]) {
      query.value = Math.floor(y);
      choose();
    }
  };
  change();
});

// part: gallery
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
