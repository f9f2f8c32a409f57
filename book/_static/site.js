// What the theme leaves undone, and what a Content-Security-Policy keeps it from doing in the page.

// The theme asks the system for its mode when the page is read; until then both logos would show.
if (document.documentElement.dataset.theme == "auto") {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}

// What the other scripts of a page make and look for.
const all = (root, selector) => [...root.querySelectorAll(selector)];
const element = (tag, name, ...content) => {
  const made = document.createElement(tag);
  if (name) made.className = name;
  made.append(...content);
  return made;
};

// Code, tables and drawings in closed folds wait as text, so that a page is soon there. They become
// markup before a fold opens, is printed, is searched, or is shown with everything.
const unwrap = (root) => {
  for (const folded of root.querySelectorAll(".book-folded")) folded.outerHTML = folded.textContent;
};
addEventListener("click", ({ target }) => unwrap(target.closest("details") ?? target), true);
addEventListener("beforeprint", () => unwrap(document));

// Instead of an `onclick` attribute.
document.addEventListener("click", ({ target }) => {
  if (target.closest(".btn-download-pdf-button, .book-pdf")) print();
});

// A reader's setting for the whole book: outputs wait for an answer, or everything is shown. The
// button says what it would change to.
{
  const page = document.documentElement;
  const NAME = `kept:${new URL(page.dataset.content_root, location).pathname}shows`;
  const CHOICES = { "questions first": "Show everything", everything: "Ask me first" };
  const show = (choice) => {
    page.dataset.shows = choice in CHOICES ? choice : "questions first";
    if (page.dataset.shows == "everything") unwrap(document);
    for (const button of document.querySelectorAll(".book-shows")) {
      button.textContent = CHOICES[page.dataset.shows];
    }
  };
  show(localStorage.getItem(NAME));
  addEventListener("DOMContentLoaded", () => show(page.dataset.shows));
  addEventListener("storage", ({ key, newValue }) => key == NAME && show(newValue));
  document.addEventListener("click", ({ target }) => {
    const button = target.closest(".book-shows");
    if (!button) return;
    const { top } = button.getBoundingClientRect();
    show(page.dataset.shows == "everything" ? "questions first" : "everything");
    localStorage.setItem(NAME, page.dataset.shows);
    scrollBy({ top: button.getBoundingClientRect().top - top, behavior: "instant" });
  });
}

// The theme says by an icon alone which colours are on. What changes later is spoken, too.
addEventListener("DOMContentLoaded", () => {
  const names = document.querySelectorAll(".theme-switch-button > .visually-hidden");
  const say = () => {
    const { mode } = document.documentElement.dataset;
    for (const name of names) {
      name.textContent = `Colour mode: ${mode == "auto" ? "that of the system" : mode}`;
    }
  };
  say();
  for (const name of names) name.ariaLive = "polite";
  new MutationObserver(say).observe(document.documentElement, { attributeFilter: ["data-mode"] });
});

// The theme scrolls the contents where they stood on the page before. A page reached by other ways
// has its line out of sight; the page itself stays where it is.
addEventListener("DOMContentLoaded", () => {
  const contents = document.querySelector(".bd-sidebar-primary");
  const line = contents?.querySelector(".bd-links li.current > a")?.getBoundingClientRect();
  if (!line) return;
  const { top, bottom } = contents.getBoundingClientRect();
  const below = line.bottom - Math.min(bottom, innerHeight);
  contents.scrollTop += Math.min(line.top - top, Math.max(below, 0));
});

// The menus above a page: the button opens one, or an arrow; Escape, or going elsewhere, closes it.
const MENUS = ".article-header-buttons .dropdown";
const openMenu = (menu, open) => {
  const [button, list] = menu.children;
  button.setAttribute("aria-expanded", open);
  list.classList.toggle("show", open);
};
const leaveMenus = (place) => {
  for (const menu of document.querySelectorAll(MENUS)) {
    if (!menu.contains(place)) openMenu(menu, false);
  }
};
addEventListener("focusin", ({ target }) => leaveMenus(target));
addEventListener("click", ({ target }) => {
  const button = target.closest(`${MENUS} > button`);
  leaveMenus(button);
  if (button) openMenu(button.parentNode, button.ariaExpanded != "true");
});
addEventListener("keydown", (event) => {
  const menu = event.target.closest(MENUS);
  if (!menu) return;
  const [button, ...choices] = menu.querySelectorAll("a, button");
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) {
    openMenu(menu, true);
    const place = choices.indexOf(event.target) + step;
    choices[Math.max(0, Math.min(place, choices.length - 1))].focus();
    event.preventDefault(); // else the page scrolls
  }
  if (event.key == "Escape" && button.ariaExpanded == "true") {
    openMenu(menu, false);
    button.focus();
  }
});

// What scrolls must be reached by keys. A box opens, the page narrows, a formula is set: each time
// the text changes its size.
const reachWideFormulas = () => {
  const formulas = [...document.querySelectorAll(".math")];
  const wide = formulas.map(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth + 2);
  formulas.forEach((formula, i) => {
    if (wide[i]) formula.tabIndex = 0;
    else formula.removeAttribute("tabindex");
  });
};
addEventListener("DOMContentLoaded", () =>
  new ResizeObserver(reachWideFormulas).observe(document.querySelector("main"))
);
// A script may open a fold, too. The theme asks which code scrolls when the window changes, and not
// when a fold opens.
document.addEventListener(
  "toggle",
  ({ target }) => {
    unwrap(target);
    dispatchEvent(new Event("resize"));
  },
  true
);

// The script of an exhibit comes when it nears the screen; before it, the model that it asks. All
// come where a page is not read from its top, so that what is above changes its height at once.
const loadScript = (src) =>
  new Promise((onload, onerror) =>
    document.head.append(Object.assign(document.createElement("script"), { src, onload, onerror }))
  );
{
  const folder = new URL(".", document.currentScript.src);
  const started = new Set();
  const start = async ({ localName }) => {
    if (started.has(localName)) return;
    started.add(localName);
    const exhibits = [...document.querySelectorAll(localName)];
    const models = document.querySelectorAll(`${localName} > template[data-model]`);
    for (const { dataset } of models) await loadScript(dataset.model);
    await loadScript(new URL(`${localName}.js`, folder));
    // What the page has kept of them is put back.
    for (const { parentNode } of exhibits) {
      parentNode.dispatchEvent(new Event("tl-shown", { bubbles: true }));
    }
  };
  const near = new IntersectionObserver(
    (entries) => entries.filter((e) => e.isIntersecting).forEach(({ target }) => start(target)),
    { rootMargin: "100%" }
  );
  const waiting = (root) => root.querySelectorAll("article :not(:defined)");
  const watch = ({ target }) => waiting(target).forEach((exhibit) => near.observe(exhibit));
  const startAll = () => {
    if (location.hash.includes("=")) unwrap(document); // a state may lie in a fold
    waiting(document).forEach(start);
  };
  addEventListener("DOMContentLoaded", (event) => {
    const [{ type }] = performance.getEntriesByType("navigation");
    if (location.hash || location.search || type != "navigate") startAll();
    else watch(event);
  });
  addEventListener("hashchange", startAll);
  document.addEventListener("tl-shown", watch); // by a cell that has run
}

// The search and its index are loaded on use: when a field is reached for, and on the pages that
// search at once.
{
  const address = new URL("search.js", document.currentScript.src);
  let script;
  const load = () => (script ??= loadScript(address));
  addEventListener("focusin", ({ target }) => target.closest(".bd-search") && load());
  addEventListener("DOMContentLoaded", () => document.querySelector("main .bd-search") && load());
}
