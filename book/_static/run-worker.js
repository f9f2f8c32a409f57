// Python for one page, in a worker of its own: `run.js` starts it and asks it to run cells.
//
// Every file of Pyodide is compared with the sha256 in `pyodide.json` before a byte of it is used,
// and Pyodide gets these files and no others.

const fetched = new Map(); // from the name of a file of Pyodide to its bytes
let pyodide, runCell;

const load = async (url) => {
  const name = url.pathname.split("/").at(-1);
  const response = await fetch(url).catch(() => {
    throw Error(`${name} did not load: ${url.host} does not answer, or something blocks it.`);
  });
  if (!response.ok) {
    throw Error(`${name} did not load: ${url.host} answers ${response.status}.`);
  }
  return response.arrayBuffer();
};

const check = async (name, bytes, expected) => {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const found = [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  if (found != expected) {
    throw Error(
      `${name} is not the file that the book was tested with (its sha256 is ${found}, ` +
        `not ${expected}), so it was not used.`
    );
  }
};

const loadAll = async (lock, base) => {
  const names = Object.keys(lock.files);
  let size = 0;
  const tell = () =>
    postMessage({ host: base.host, files: fetched.size, of: names.length, bytes: size });
  const one = async (name) => {
    const bytes = await load(new URL(name, base));
    await check(name, bytes, lock.files[name]);
    fetched.set(name, bytes);
    size += bytes.byteLength;
    tell();
  };
  tell();
  await Promise.all(names.map(one));
};

// Pyodide asks for its files by `fetch`; it gets those that were checked.
const fetchChecked = async (url) => {
  const name = new URL(url).pathname.split("/").at(-1);
  if (!fetched.has(name)) throw Error(`${name} is not in the book's list of files.`);
  const type = name.endsWith(".wasm") ? "application/wasm" : "application/octet-stream";
  return new Response(fetched.get(name), { headers: { "Content-Type": type } });
};

const importChecked = (name) =>
  import(URL.createObjectURL(new Blob([fetched.get(name)], { type: "text/javascript" })));

const start = async ({ lock, library }) => {
  const url = new URL(lock);
  const [json, code, program] = await Promise.all(
    [url, new URL(library), new URL("run_cell.py", url)].map(load)
  );
  const text = (bytes) => new TextDecoder().decode(bytes);
  lock = JSON.parse(text(json));
  const base = new URL(lock.base, url);
  await loadAll(lock, base);
  self.fetch = fetchChecked;
  const { loadPyodide } = await importChecked("pyodide.mjs");
  const { default: createPyodideModule } = await importChecked("pyodide.asm.mjs");
  pyodide = await loadPyodide({
    indexURL: base.href,
    packageBaseUrl: base.href,
    lockFileContents: text(fetched.get("pyodide-lock.json")),
    createPyodideModule,
    env: { MPLBACKEND: "agg", TUTORIAL_LIB_DATA: new URL("data/", url).href },
  });
  await pyodide.loadPackage(lock.packages, { messageCallback: () => {} });
  fetched.clear();
  const extractDir = pyodide.runPython("import sysconfig; sysconfig.get_path('purelib')");
  pyodide.unpackArchive(code, "bztar", { extractDir });
  const tools = pyodide.toPy({ __name__: "run_cell" });
  pyodide.runPython(text(program), { globals: tools });
  runCell = tools.get("run_cell");
};

const run = ({ source, name }) =>
  runCell(source, name, pyodide.globals, (kind, text) => postMessage({ kind, text }));

onmessage = async ({ data }) => {
  try {
    postMessage({ done: data.lock ? await start(data) : run(data) });
  } catch (error) {
    postMessage({ failed: error.message });
  }
};
