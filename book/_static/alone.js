// One exercise of a page by itself: `?only=exercise-2` hides the rest. `kept.js` loads this, keeps
// apart what is done here from what was done on the page, and hands over the earlier tries.
{
  const start = document.getElementById(new URLSearchParams(location.search).get("only"));
  const head = document.querySelector(".book-head");

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
  const idle = parts.some((part) => part.querySelector(".cell_input")) ? "" : ".tl-run, ";
  for (const rest of all(document, `${idle}.bd-sidebar-secondary, .secondary-toggle, .book-mark`)) {
    rest.hidden = true;
  }

  const link = (words, href) => Object.assign(element("a", "", words), { href });
  const words = "One exercise by itself, and blank. What you did on the whole page is kept there. ";
  const whole = link("The whole page", `${location.pathname}#${start.id}`);
  const index = link("All exercises", "../book/exercises.html");
  const note = element("p", "", words, whole, " · ", index);
  const tries = element("details", "tl tl-mine", element("summary", "", "Your earlier tries"));
  Object.assign(tries, { hidden: true, keptAs: "tries" });
  tries.recall = (texts) => {
    tries.append(...[texts].flat().map((text) => element("pre", "", `${text}`)));
    for (const block of tries.children) block.tabIndex = 0; // a long line scrolls, also by keys
    tries.hidden = false;
  };
  const box = element("div", "book-alone", note, tries);
  head.after(box);
  box.dispatchEvent(new Event("tl-shown", { bubbles: true }));
  scrollTo(0, 0);
}
