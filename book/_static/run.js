// *Run here*: the page's code cells become editable and run in order, in a worker.
//
// Nothing is loaded before the button is pressed. `book/_ext/runnable.py` places the button;
// `run-worker.js` is the other side. One request goes to it at a time, and Stop ends it. What is
// typed is told to the page as elements tell their work, and what the page has kept comes back.

{
  const bar = document.querySelector(".tl-run");
  const [startButton, stopButton] = bar.querySelectorAll("button");
  const meter = bar.querySelector("progress");
  const status = bar.querySelector("[role=status]");
  const here = document.currentScript.src;
  const file = (name) => new URL(name, here).href;

  const KEYWORDS =
    "and as assert break class continue def del elif else except finally for from global if " +
    "import in is lambda nonlocal not or pass raise return try while with yield None True False";
  const QUOTED = /("""|''')[^]*?(?:\3|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?/.source;
  const TOKEN = RegExp(
    `(#.*)|([bfruBFRU]{0,2}(?:${QUOTED}))|\\b(${KEYWORDS.replaceAll(" ", "|")})\\b|\\b(\\d[\\w.]*)`,
    "g"
  );
  const PAUSE = 400; // ms after a key until the text is told
  const OUTPUTS = {
    stdout: "stream highlight-myst-ansi",
    stderr: "stream stderr highlight-myst-ansi",
    text: "text_plain",
    error: "traceback highlight-ipythontb",
    html: "text_html",
  };

  const tell = (text) => (status.textContent = text);
  const trouble = (text) =>
    Error(`${text} To try again, press the button again. The link to Colab runs the chapter too.`);

  // The worker: `ask` sends it one message and waits for its answer, `end` ends it and the wait.

  let worker, giveUp;
  const ask = (message, onNews) =>
    new Promise((resolve, reject) => {
      giveUp = reject;
      worker.onmessage = ({ data }) => {
        if ("done" in data) resolve(data.done);
        else if ("failed" in data) reject(trouble(data.failed));
        else onNews(data);
      };
      worker.onerror = () => reject(trouble("run-worker.js did not load."));
      worker.postMessage(message);
    });

  const end = (reason) => {
    worker?.terminate();
    worker = null;
    giveUp?.(Error(reason));
  };

  const start = async () => {
    if (worker) return;
    if (location.protocol == "file:" || !isSecureContext) {
      throw Error(
        "Python needs a web server, and https unless the server is this computer. Run “make " +
          "serve” in the book’s folder, or “python3 -m http.server” in the site’s, and open the " +
          "address that it prints."
      );
    }
    worker = new Worker(file("run-worker.js"), { type: "module" });
    tell("Python is starting.");
    meter.hidden = false;
    const message = { lock: file("pyodide.json"), library: file(bar.dataset.library) };
    await ask(message, ({ host, files, of, bytes }) => {
      meter.max = of;
      meter.value = files;
      const size = `${(bytes / 1e6).toFixed(1)} MB`;
      tell(
        files < of
          ? `Python is loading from ${host}: ${files} of ${of} files, ${size}.`
          : `All ${of} files are here, ${size}. Python is starting.`
      );
    });
    meter.hidden = true;
  };

  // Cells: the text area lies over its own highlighted copy, which gives it its size.

  const paint = (cell) => {
    const text = cell.area.value;
    const nodes = [];
    let end = 0;
    for (const { 0: token, 1: comment, 2: quoted, 4: keyword, index } of text.matchAll(TOKEN)) {
      const kind = comment ? "c1" : quoted ? "s2" : keyword ? "k" : "mi";
      nodes.push(text.slice(end, index), element("span", kind, token));
      end = index + token.length;
    }
    cell.copy.replaceChildren(...nodes, text.slice(end) + "\n");
  };

  const newLine = (event) => {
    const { value, selectionStart } = event.target;
    const line = value.slice(value.lastIndexOf("\n", selectionStart - 1) + 1, selectionStart);
    const indent = line.match(/^ */)[0] + (/:\s*$/.test(line) ? "    " : "");
    if (indent && document.execCommand("insertText", false, "\n" + indent)) event.preventDefault();
  };

  const onKey = (cell, event) => {
    if (event.key != "Enter") return;
    if (event.shiftKey || event.ctrlKey || event.metaKey) {
      event.preventDefault();
      run([cell], cell);
      const later = cells.slice(cell.number).map((next) => next.area);
      const open = later.find((next) => next.checkVisibility()); // none that is folded
      if (event.shiftKey) open?.focus();
    } else newLine(event);
  };

  const button = (words, { number }, onclick) => {
    const node = element("button", "", words);
    node.type = "button";
    if (number) node.ariaLabel = `${words}: cell ${number}`;
    node.onclick = onclick;
    return node;
  };

  // The reader's own text of a cell, if it differs from the book's, which may stand in its place.

  const tellWork = (node, state) => {
    const detail = { state, done: 0, of: 0 };
    node.dispatchEvent(new CustomEvent("tl-work", { bubbles: true, detail }));
    return detail.kept;
  };

  const tellText = (cell) => {
    clearTimeout(cell.timer);
    cell.timer = null;
    const { mine, area, box } = cell;
    const kept = tellWork(box, mine == null ? null : { text: mine, aside: area.value != mine });
    if (mine != null && !kept) {
      mark(cell, "This browser keeps nothing: your text lasts until you leave the page.");
    }
  };

  const put = (cell, text) => {
    cell.area.value = text;
    paint(cell);
    nameOther(cell);
  };

  const nameOther = ({ other, mine, area, source, number }) => {
    other.hidden = mine == null;
    other.textContent = area.value == source ? "Your text" : "The book’s text";
    other.ariaLabel = `${other.textContent}: cell ${number}`;
  };

  const exchange = (cell) => {
    put(cell, cell.area.value == cell.source ? cell.mine : cell.source);
    mark(cell, "");
    tellText(cell);
  };

  const onInput = (cell) => {
    const { value } = cell.area;
    cell.mine = value == cell.source ? null : value;
    paint(cell);
    nameOther(cell);
    mark(cell, "");
    clearTimeout(cell.timer);
    cell.timer = setTimeout(() => tellText(cell), PAUSE);
  };

  const edit = (cell) => {
    cell.copy = cell.input.querySelector("pre");
    cell.copy.tabIndex = -1;
    cell.copy.ariaHidden = true;
    cell.area = element("textarea", "");
    Object.assign(cell.area, { value: cell.source, spellcheck: false, autocapitalize: "off" });
    cell.area.ariaLabel = `Code of cell ${cell.number}`;
    Object.assign(cell.area, { wrap: "off", rows: 1 });
    cell.area.oninput = () => onInput(cell);
    cell.area.onkeydown = (event) => onKey(cell, event);
    const frame = element("div", "tl-edit");
    cell.copy.replaceWith(frame);
    frame.append(cell.copy, cell.area);
    cell.state = element("span", "tl-state");
    cell.stop = button("Stop", cell, stop);
    cell.stop.hidden = true;
    cell.other = button("The book’s text", cell, () => exchange(cell));
    cell.other.hidden = true;
    cell.input.append(
      element(
        "div",
        "tl-tools",
        element("span", "", `Cell ${cell.number}`),
        button("Run", cell, () => run([cell], cell)),
        button("Run all above", cell, () => run(cells.slice(0, cell.number - 1))),
        cell.stop,
        cell.other,
        cell.state
      )
    );
  };

  // The text of code that may wait in a closed fold.
  const textOf = (pre) => {
    const copy = pre.cloneNode(true);
    unwrap(copy);
    return copy.textContent;
  };

  const cells = [...document.querySelectorAll("div.cell")]
    .map((box) => ({ box, input: box.querySelector(".cell_input") }))
    .filter(({ input }) => input)
    .map((cell, i) => ({
      ...cell,
      number: i + 1,
      source: textOf(cell.input.querySelector("pre")).replace(/\n$/, ""),
    }));

  // Two cells may begin with the same text; then their order tells them apart.
  for (const cell of cells) {
    const before = cells.slice(0, cell.number - 1);
    const same = before.filter(({ source }) => source == cell.source);
    cell.box.keptAs = `code ${cell.source}${"\n".repeat(same.length)}`;
    cell.box.recall = (state) => {
      if (typeof state?.text != "string" || cell.timer) return false;
      if (!cell.area) edit(cell);
      cell.mine = state.text == cell.source ? null : state.text;
      put(cell, state.aside === true ? cell.source : state.text);
      mark(cell, state.aside === true ? "" : "Your text is back.");
      return true;
    };
  }
  const flush = () => cells.filter(({ timer }) => timer).forEach(tellText);
  addEventListener("pagehide", flush);
  document.addEventListener("visibilitychange", flush);

  // Texts of the reader's whose cells read otherwise in this edition: [key, text] of each.
  bar.recall = (left) => {
    bar.querySelector(".tl-mine")?.remove();
    if (!left.length) return;
    const summary = element("summary", "", "Your code from an earlier edition");
    const box = element("details", "tl-mine", summary);
    for (const [key, text] of left) {
      const was = element("code", "", key.split("\n")[0].replace("code ", ""));
      const pre = element("pre", "", text);
      pre.tabIndex = 0; // a long line scrolls, also by keys
      const row = element("div", "", element("p", "", "In place of ", was, " you wrote:"), pre);
      row.keptAs = key;
      row.append(
        button("Remove", {}, () => {
          tellWork(row, null);
          summary.focus();
          row.remove();
          if (!box.querySelector("pre")) box.remove();
        })
      );
      box.append(row);
    }
    bar.append(box);
  };

  const mark = (cell, state) => (cell.state.textContent = state);

  const clear = (cell) => {
    cell.output = cell.box.querySelector(".cell_output");
    if (!cell.output) {
      cell.output = element("div", "cell_output");
      cell.input.after(cell.output);
    }
    cell.output.replaceChildren();
  };

  // What a cell shows. Scripts in it do not run: the page loads those of elements itself. What is
  // "live 1" takes the place of the last "live 1".
  const show = (cell, { kind, text }) => {
    const isLive = kind.startsWith("live");
    let block = isLive
      ? cell.output.querySelector(`[data-kind="${kind}"]`)
      : cell.output.lastElementChild;
    if (kind == "html" || block?.dataset.kind != kind) {
      block = element("div", `output ${OUTPUTS[kind] ?? OUTPUTS.html} notranslate`);
      block.dataset.kind = kind;
      cell.output.append(block);
    }
    if (kind == "html" || isLive) {
      block.innerHTML = text;
      block.dispatchEvent(new Event("tl-shown", { bubbles: true }));
      return;
    }
    const pre = block.querySelector("pre") ?? element("pre", "");
    pre.append(text);
    pre.tabIndex = 0; // a long line scrolls, also by keys
    if (!pre.parentNode) block.append(element("div", "highlight", pre));
  };

  // The queue: cells run one after the other; the first error, or Stop, empties it.

  let queue = [];
  let busy = false;

  const setBusy = (now) => {
    busy = now;
    for (const [stop, other] of [
      [stopButton, startButton],
      ...cells.map((cell) => [cell.stop, cell.stop?.previousElementSibling]),
    ]) {
      if (!stop) continue;
      if (!now && document.activeElement == stop) other.focus();
      stop.hidden = !now;
    }
  };

  const runNext = async () => {
    const cell = queue[0];
    mark(cell, "running");
    clear(cell);
    tell(`Cell ${cell.number} is running.`);
    let last = "";
    const message = { source: cell.area.value, name: `cell ${cell.number}` };
    const ended = await ask(message, (news) => {
      show(cell, news);
      if (news.kind == "error") last = news.text.trimEnd().split("\n").at(-1);
    });
    queue.shift();
    mark(cell, ended ? "done" : "error");
    tell(ended ? `Cell ${cell.number} has run.` : `Cell ${cell.number} ended in an error: ${last}`);
    if (ended) return;
    queue.forEach((waiting) => mark(waiting, ""));
    queue = [];
    const closed = cell.output.closest("details");
    if (closed) closed.open = true; // an error in what is folded
  };

  // The reason stands beside the button above the goal, and where the reader is.
  const fail = (error) => {
    const [cell] = queue;
    end();
    queue = [];
    meter.hidden = true;
    cells.forEach((cell) => cell.state && mark(cell, ""));
    tell(error.message);
    if (cell) mark(cell, error.message);
  };

  // Of an exercise alone, the cells above are hidden: a new Python runs them first.
  const isShown = ({ box }) => !box.closest("[hidden]");

  // Run cells; the output of the cell that was asked for opens if it was closed.
  const run = async (wanted, asked) => {
    wanted.filter((cell) => !queue.includes(cell)).forEach((cell) => {
      queue.push(cell);
      mark(cell, "waiting");
    });
    const closed = asked?.box.querySelector("details.below-input");
    if (closed) closed.open = true;
    if (busy) return;
    setBusy(true);
    try {
      const above = worker ? [] : cells.slice(0, cells.findIndex(isShown));
      await start();
      if (!isReady) ready();
      queue.unshift(...above.filter((cell) => !queue.includes(cell)));
      while (queue.length) await runNext();
    } catch (error) {
      fail(error);
    }
    setBusy(false);
  };

  let isReady = false;
  const ready = () => {
    isReady = true;
    cells.filter(({ area }) => !area).forEach(edit);
    startButton.textContent = "Run all cells";
    tell(
      "Python is ready, and every cell can be edited. Shift+Enter runs the cell you are in. " +
        "Your text stays in this browser; a button of its cell shows the book’s again."
    );
    setBusy(true);
  };

  const stop = () => {
    end(
      isReady
        ? "Stopped. Python has ended and its variables are gone. The next run starts it again; " +
            "“Run all above” brings the variables back."
        : "Stopped before Python was ready."
    );
  };

  startButton.onclick = () => run(isReady ? cells.filter(isShown) : []);
  stopButton.onclick = stop;
}
