// What a reader does on a page stays in this browser: answers, lines in order, exhibits, code. The
// marks in the contents and the way to go on are made from it, and it can be forgotten. Every page
// reads and answers without this script, and without a store.
//
// An element tells its state by the event `tl-work` and takes it back by `recall(state)`. Each page
// has a record: { version, at, last, read, work, parts: { key: { state, done } } }. Anybody may
// have written it, so nothing in it is believed.
{
  const VERSION = 1;
  const KINDS = ["predict", "quiz", "parsons"];
  const LOST =
    "This browser keeps nothing for the book: what you do lasts until you leave the page.";
  const root = new URL(document.documentElement.dataset.content_root, location).pathname;
  const prefix = `kept:${root}`;
  const placeOf = (url) => new URL(url, location).pathname.slice(root.length);
  // An exercise alone, `?only=exercise-2`, begins blank and has a record of its own.
  const only = new URLSearchParams(location.search).get("only");
  const alone = document.getElementById(only)?.matches("p[id^=exercise-], #the-task");
  const script = new URL("alone.js", document.currentScript.src);
  const here = placeOf("") + (alone ? `?only=${only}` : "");
  const foot = document.querySelector(".book-foot");
  const said = foot?.querySelector(".book-kept");

  // Reading: what has another form than it should counts as nothing.

  const plain = (value) => (/^\[object O/.test({}.toString.call(value)) ? value : {});
  const count = (value) => (Number.isSafeInteger(value) && value > 0 ? value : 0);
  const textOf = (value) => (typeof value == "string" ? value : "");

  const load = (place) => {
    let found;
    try {
      found = plain(JSON.parse(localStorage.getItem(prefix + place)));
    } catch {
      found = {}; // refused, or no JSON
    }
    if (found.version !== VERSION) found = {};
    const work = plain(found.work);
    const pair = ([done, of]) => [Math.min(count(done), count(of)), count(of)];
    return {
      version: VERSION,
      at: count(found.at),
      last: textOf(found.last),
      read: found.read === true,
      work: Object.fromEntries(KINDS.map((kind) => [kind, pair([work[kind]].flat())])),
      parts: plain(found.parts),
    };
  };

  // Keys: the place on the page may change with the next edition, what is asked or shown there does
  // not.

  const keyOf = (element) => element.keptAs ?? element.id;

  const questions = all(document, KINDS.map((kind) => `.tl-${kind}`).join()).map((element) => ({
    kind: KINDS.find((kind) => element.matches(`.tl-${kind}`)),
    key: keyOf(element),
    of: all(element, "fieldset").length || 1,
  }));

  const workOf = (parts) => {
    const work = Object.fromEntries(KINDS.map((kind) => [kind, [0, 0]]));
    for (const { kind, key, of } of questions) {
      work[kind][0] += Math.min(count(plain(parts[key]).done), of);
      work[kind][1] += of;
    }
    return work;
  };

  // Writing: each time into what stands there now, which another tab may have written. What the
  // store does not take waits for the next time.

  let waiting = {};
  let forgotten = false;
  const merged = () => {
    const found = load(here);
    return { ...found, ...waiting, parts: { ...found.parts, ...waiting.parts } };
  };
  let record = merged();

  const store = (text) => {
    try {
      localStorage.setItem(prefix + here, text);
    } catch {
      return false; // refused, or full
    }
    // What the head of the page puts in the place of a refused store lasts as long as the page.
    return localStorage instanceof Storage;
  };

  const save = () => {
    if (forgotten) return true;
    record = merged();
    record.work = workOf(record.parts);
    const taken = store(JSON.stringify(record));
    if (taken) waiting = {};
    else if (said) said.textContent = LOST;
    showMarks(here);
    return taken;
  };

  const keep = (changes) => {
    const parts = { ...waiting.parts, ...changes.parts };
    waiting = { ...waiting, ...changes, parts, at: Date.now() };
    return save();
  };

  // Where a reader goes on: at an element, or else at the last exercise or section before it.
  const anchorOf = (node) => {
    const before = all(document, "article section[id], article [id^=exercise-]");
    const last = before.filter((place) => place.compareDocumentPosition(node) & 4).at(-1);
    return node.id || last?.id || "";
  };

  document.addEventListener("tl-work", ({ target, detail }) => {
    const key = keyOf(target);
    const { state, done } = detail;
    const part = state == null ? undefined : { state, done };
    if (key) detail.kept = keep({ parts: { [key]: part }, last: anchorOf(target) });
  });

  // Putting back, in silence.

  const silent = new Set();
  let silence;
  const speakAgain = () => {
    silent.forEach((region) => (region.ariaLive = "polite"));
    silent.clear();
  };

  const recall = (element, state) => {
    for (const region of all(element, "[aria-live=polite]")) {
      region.ariaLive = "off";
      silent.add(region);
    }
    clearTimeout(silence);
    silence = setTimeout(speakAgain, 1000);
    try {
      return element.recall(state);
    } catch {
      return false; // as if there were nothing
    }
  };

  const putBack = (within, old) => {
    const isNew = (key) =>
      record.parts[key] && JSON.stringify(record.parts[key]) != JSON.stringify(old[key]);
    for (const element of all(within, ".tl, .cell")) {
      const key = keyOf(element);
      if (!element.recall || !isNew(key)) continue;
      const { state, done } = plain(record.parts[key]);
      const found = recall(element, state);
      // In a changed chapter fewer questions may be answered than there were.
      record.parts[key] = { state, done: found ? count(found.done ?? done) : 0 };
    }
  };

  const textOfCode = (part) => textOf(plain(plain(part).state).text);

  // What an earlier visit to an exercise alone has left becomes a try.
  const beginBlank = () => {
    const [{ type }] = performance.getEntriesByType("navigation");
    const { tries, ...parts } = record.parts;
    const linesOf = ({ state }) => [plain(state).text ?? plain(state).program ?? []].flat();
    const text = Object.values(parts).flatMap((part) => linesOf(plain(part))).join("\n");
    if (type != "navigate" || !text) return;
    const blank = Object.fromEntries(Object.keys(parts).map((key) => [key, undefined]));
    const state = [plain(tries).state ?? [], text].flat();
    keep({ parts: { ...blank, tries: { state } } });
  };

  // Code whose cell reads otherwise in this edition.
  const offerCode = () => {
    const cells = new Set(all(document, ".cell").map(keyOf));
    const left = Object.entries(record.parts).filter(
      ([key, part]) => key.startsWith("code ") && !cells.has(key) && textOfCode(part)
    );
    document.querySelector(".tl-run")?.recall?.(left.map(([key, part]) => [key, textOfCode(part)]));
  };

  const renew = (old) => {
    putBack(document, old);
    offerCode();
    const { at, work, parts } = record;
    if (at && `${KINDS.map((kind) => work[kind])}` != `${Object.values(workOf(parts))}`) {
      waiting.parts = { ...parts, ...waiting.parts };
      save();
    }
    showMarks();
  };

  // What another tab has written, or happened while the page was left.
  const renewLater = () => {
    const old = record;
    record = merged();
    if (old.at && !record.at) beginAnew(); // forgotten there
    else renew(old.parts);
  };

  // The marks in the contents.

  const sum = (work, i) => KINDS.reduce((total, kind) => total + work[kind][i], 0);
  const isComplete = ({ work, read }) => (sum(work, 1) ? sum(work, 0) == sum(work, 1) : read);

  const wordsOf = ({ work, read }) => {
    const { predict, quiz, parsons } = work;
    const words = [
      predict[1] && `${predict.join(" of ")} prediction${predict[1] > 1 ? "s" : ""}`,
      quiz[1] && `quiz ${quiz.join(" of ")}`,
      parsons[1] && (parsons[0] ? "lines in order" : "lines not yet in order"),
    ];
    return [...(sum(work, 0) ? words : []), read && "read"].filter(Boolean).join(", ");
  };

  const showMark = (link, page) => {
    all(link, ".book-done, .visually-hidden").forEach((node) => node.remove());
    const [done, of] = [0, 1].map((i) => sum(page.work, i));
    if (!done && !page.read) return;
    const sign = isComplete(page) ? "✓" : done ? `${done}/${of}` : "read";
    const mark = element("span", "book-done", sign);
    mark.ariaHidden = true;
    mark.title = wordsOf(page);
    link.append(mark, element("span", "visually-hidden", ` (${mark.title})`));
  };

  const links = all(document, ".bd-links a.internal").map((link) => ({
    link,
    place: placeOf(link.href),
  }));
  const start = document.querySelector("a.book-start[href*='notebooks/']");
  const box = foot?.querySelector(".book-mark input");
  // The mark of one page, or those of all.
  const showMarks = (only) => {
    if (box) box.checked = record.read;
    for (const { link, place } of links) {
      if ((only ?? place) == place) showMark(link, place == here ? record : load(place));
    }
    if (start && only != here) showNext();
  };

  // The way to go on, on the first page: the chapter of the last work, or the one after it.
  const showNext = () => {
    const folder = placeOf(start.href).replace(/[^/]*$/, "");
    const chapters = links
      .filter(({ place }) => place.startsWith(folder))
      .map(({ link, place }) => ({ link, ...load(place) }));
    const [latest] = chapters.filter(({ at }) => at).sort((a, b) => b.at - a.at);
    const next = latest && isComplete(latest) ? chapters[chapters.indexOf(latest) + 1] : latest;
    if (!next) return;
    const title = next.link.firstChild.textContent.trim();
    start.textContent = `Continue with ${title.match(/^\d+/)?.[0] ?? title.split(":")[0]}`;
    start.title = next.link.title || title;
    start.href = next.link.href.split("#")[0];
    if (next.last) start.hash = next.last;
    start.closest("ul").prepend(start.closest("li")); // the first button is filled
  };

  // Forgetting, once the reader has confirmed it. A page that is read anew is as new.

  const beginAnew = () => {
    forgotten = true; // also what is told while the page is left
    // A browser may put back what stood in the fields of a page.
    all(document, "article input").forEach((input) => {
      input.checked = input.defaultChecked;
      if (input.type == "text") input.value = input.defaultValue;
    });
    location.reload();
  };

  const forget = (whole) => {
    const names = Array.from({ length: localStorage.length }, (_, i) => localStorage.key(i));
    for (const name of names) {
      if (name.startsWith(whole ? prefix : prefix + here)) localStorage.removeItem(name);
    }
    beginAnew();
  };

  if (foot) {
    box.onchange = () => keep({ read: box.checked });
    for (const button of all(foot, ".book-forget button")) {
      const { dataset, textContent } = button;
      button.onclick = () => confirm(`${textContent}?`) && forget(dataset.forget == "book");
    }
  }
  document.addEventListener("tl-shown", ({ target }) => putBack(target, {}));
  addEventListener("storage", ({ key }) => {
    if (key == null || key == prefix + here) renewLater();
    else if (key.startsWith(prefix)) showMarks(key.slice(prefix.length));
  });
  addEventListener("pageshow", ({ persisted }) => persisted && renewLater());
  // The elements of a page are built when all of it is read.
  addEventListener("DOMContentLoaded", () => {
    if (alone) beginBlank();
    renew({});
    if (alone) loadScript(script);
  });
}
