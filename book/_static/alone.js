// One exercise of a page by itself: `?only=exercise-2` hides the rest. `kept.js` loads this, keeps
// apart what is done here from what was done on the page, and hands over the earlier tries.
{
  const only = new URLSearchParams(location.search).get("only");
  const start = document.getElementById(only);
  const head = document.querySelector(".book-head");
  const root = new URL(document.documentElement.dataset.content_root, location);

  // An exercise goes on to the next one, the task of a review to what uses its answer.
  const parts = [];
  let next = start.matches("section") ? start.firstElementChild : start.nextElementSibling;
  for (; next && !next.matches("section, [id^=exercise-]"); next = next.nextElementSibling) {
    parts.push(next);
  }
  const shown = new Set([...parts, start, head, document.querySelector("article h1")]);
  const hideRest = (parent) => {
    for (const child of parent.children) child.hidden ||= !shown.has(child);
    shown.add(parent);
    if (!parent.matches("article")) hideRest(parent.parentNode);
  };
  hideRest(start.matches("section") ? start : start.parentNode);
  for (const rest of all(document, ".bd-sidebar-secondary, .secondary-toggle, .book-mark")) {
    rest.hidden = true;
  }
  const hasCode = parts.some((part) => part.querySelector(".cell_input"));
  for (const bar of all(head, ".tl-run, .book-elsewhere")) bar.hidden = !hasCode;

  const link = (words, href) => Object.assign(element("a", "", words), { href });
  const note = element(
    "p",
    "",
    "One exercise by itself, and blank. What you did on the whole page is kept there. ",
    link("The whole page", `${location.pathname}#${only}`),
    " · ",
    link("All exercises", new URL("book/exercises.html", root))
  );
  const tries = element("details", "tl tl-mine", element("summary", "", "Your earlier tries"));
  tries.hidden = true;
  tries.keptAs = "tries";
  tries.recall = (state) => {
    const texts = Array.isArray(state) ? state.filter((text) => typeof text == "string") : [];
    const blocks = texts.map((text) => {
      const block = element("pre", "", text);
      block.tabIndex = 0; // a long line scrolls, also by keys
      return block;
    });
    tries.replaceChildren(tries.firstChild, ...blocks);
    tries.hidden = !blocks.length;
    return true;
  };
  const box = element("div", "book-alone", note, tries);
  head.after(box);
  box.dispatchEvent(new Event("tl-shown", { bubbles: true }));
  scrollTo(0, 0);
}
