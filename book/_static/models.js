// The page of model cards: the filter of its table, and the reader of a configuration.
//
// The reader is `tutorial_lib.models_card`, in the worker of `run.js`; nothing is loaded before the
// button is pressed.

{
  const file = (name, here = document.currentScript.src) => new URL(name, here).href;
  const [program, lock] = [file("run-worker.js"), file("pyodide.json")];
  const filter = document.querySelector(".cards-filter");
  const rows = [...document.querySelectorAll(".cards-all tbody tr")];
  const count = filter.querySelector("output");

  filter.oninput = ({ target }) => {
    const words = target.value.toLowerCase().split(/\s+/);
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
    count.textContent = `${rows.filter((row) => !row.hidden).length} models`;
  };
  filter.hidden = false;

  const form = document.querySelector(".tl-config");
  const library = file(form.dataset.library);
  const status = form.querySelector("[role=status]");
  const card = form.querySelector(".tl-config-card");
  let worker;

  const ask = (message, onNews) =>
    new Promise((resolve, reject) => {
      worker.onmessage = ({ data }) => {
        if ("done" in data) resolve(data.done);
        else if ("failed" in data) reject(Error(data.failed));
        else onNews(data);
      };
      worker.onerror = () => reject(Error("run-worker.js did not load."));
      worker.postMessage(message);
    });

  const start = async () => {
    worker = new Worker(program, { type: "module" });
    await ask({ lock, library }, ({ host, files, of, bytes }) => {
      const size = `${(bytes / 1e6).toFixed(1)} MB`;
      status.textContent = `Python is loading from ${host}: ${files} of ${of} files, ${size}.`;
    });
  };

  const show = ({ kind, text }) => {
    if (kind == "error") {
      status.textContent = text.trimEnd().split("\n").at(-1).replace(/^[\w.]+: /, "");
      return;
    }
    const block = document.createElement(kind == "html" ? "div" : "pre");
    block[kind == "html" ? "innerHTML" : "textContent"] = text;
    block.tabIndex = 0; // a long line scrolls, also by keys
    card.append(block);
  };

  form.onsubmit = async (event) => {
    event.preventDefault();
    const button = form.querySelector("button");
    const texts = [...form.querySelectorAll("textarea")].map(({ value }) => value);
    const given = JSON.stringify(texts.filter((text) => text.trim()));
    button.disabled = true;
    card.replaceChildren();
    try {
      if (!worker) await start();
      status.textContent = "";
      const source = `from tutorial_lib.models_card import show_cards\nshow_cards(*${given})`;
      await ask({ source, name: "card", address: "" }, show);
    } catch (error) {
      worker?.terminate();
      worker = null;
      status.textContent = error.message;
    }
    button.disabled = false;
  };
  form.hidden = false;
}
