// Forms that Python answers in the page.
//
// A form names a function of the library, or its buttons do; its fields are the arguments. Python
// is loaded at the first press, in the worker of `run.js`, and all forms of a page share it.

{
  const file = (name, here = document.currentScript.src) => new URL(name, here).href;
  const [program, lock] = [file("run-worker.js"), file("pyodide.json")];
  const forms = document.querySelectorAll(".tl-python");
  const library = file(forms[0].dataset.library);
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

  const start = async (status) => {
    worker = new Worker(program, { type: "module" });
    await ask({ lock, library }, ({ host, files, of, bytes }) => {
      const size = `${(bytes / 1e6).toFixed(1)} MB`;
      status.textContent = `Python is loading from ${host}: ${files} of ${of} files, ${size}.`;
    });
    // The others say that Python would be loaded.
    for (const form of forms) form.querySelector("[role=status]").textContent = "";
  };

  const show = (form, { kind, text }) => {
    if (kind == "error") {
      const last = text.trimEnd().split("\n").at(-1);
      form.querySelector("[role=status]").textContent = last.replace(/^[\w.]+: /, "");
      return;
    }
    const block = document.createElement(kind == "html" ? "div" : "pre");
    block[kind == "html" ? "innerHTML" : "textContent"] = text;
    block.tabIndex = 0; // a long line scrolls, also by keys
    form.querySelector("output").append(block);
  };

  const valuesOf = (form) => Object.fromEntries(new FormData(form));

  const answer = async (form, name) => {
    const buttons = [...form.querySelectorAll("button")];
    const status = form.querySelector("[role=status]");
    const [module, call] = name.split(":");
    const given = JSON.stringify(JSON.stringify(valuesOf(form)));
    const source = `import json\nfrom ${module} import ${call}\n${call}(**json.loads(${given}))`;
    buttons.forEach((button) => (button.disabled = true));
    form.querySelector("output").replaceChildren();
    try {
      if (!worker) await start(status);
      status.textContent = "";
      await ask({ source, name: "form", address: "" }, (news) => show(form, news));
    } catch (error) {
      worker?.terminate();
      worker = null;
      status.textContent = error.message;
    }
    buttons.forEach((button) => (button.disabled = false));
  };

  for (const form of forms) {
    form.keptAs = `form ${form.querySelector("button").value}`;
    form.recall = (state) => {
      for (const [name, value] of Object.entries(state ?? {})) {
        if (form.elements[name]) form.elements[name].value = value;
      }
      return true;
    };
    form.onchange = () => {
      const detail = { state: valuesOf(form), done: 0, of: 0 };
      form.dispatchEvent(new CustomEvent("tl-work", { bubbles: true, detail }));
    };
    form.onsubmit = (event) => {
      event.preventDefault();
      const { value, dataset } = event.submitter;
      const field = form.elements[dataset.next];
      if (field) {
        field.value = Number(field.value) + 1;
        form.onchange();
      }
      answer(form, value);
    };
    form.hidden = false;
  }
}
