// A chapter as slides, one for each heading, for who teaches: F8 begins and ends, arrows turn.
// Nothing is copied: all else of the page is put away, so elements and exhibits stay as they are.
for (const start of document.querySelectorAll(".book-slides")) {
  const article = document.querySelector("article");
  const page = document.documentElement;
  const headings = [...article.querySelectorAll(":is(h1, h2, h3, h4)")];
  // A heading's section without the sections in it.
  const slides = headings
    .filter((heading) => heading.parentNode.matches("section[id]"))
    .map(({ parentNode }) => [...parentNode.children].filter((node) => !node.matches("section")));
  const bar = document.createElement("section");
  const news = document.createElement("p");
  let at = 0;

  const going = () => "lecture" in page.dataset;
  const titleOf = ([heading]) => {
    const copy = heading.cloneNode(true);
    copy.querySelector(".headerlink")?.remove();
    return copy.textContent;
  };

  const show = (to) => {
    at = Math.min(Math.max(to, 0), slides.length - 1);
    slides.forEach((slide, i) =>
      slide.forEach((node) => node.classList.toggle("book-away", i != at))
    );
    news.textContent = `${at + 1} of ${slides.length}: ${titleOf(slides[at])}`;
    scrollTo({ top: 0, behavior: "instant" });
  };

  // The heading that was read last, or the first.
  const first = () => {
    const isAbove = ([heading]) => heading.getBoundingClientRect().top < innerHeight / 2;
    const above = slides.filter(isAbove);
    return Math.max(slides.indexOf(above.at(-1)), 0);
  };

  const begin = () => {
    const slide = first();
    page.dataset.lecture = "";
    show(slide);
    // Where full screen is refused, the slides fill the window.
    page.requestFullscreen?.().catch(() => {});
  };

  const end = () => {
    delete page.dataset.lecture;
    slides.flat().forEach((node) => node.classList.remove("book-away"));
    slides[at][0].scrollIntoView({ behavior: "instant" });
    news.textContent = "";
    if (document.fullscreenElement) document.exitFullscreen();
  };

  const turns = {
    ArrowRight: () => at + 1,
    PageDown: () => at + 1,
    ArrowLeft: () => at - 1,
    PageUp: () => at - 1,
    Home: () => 0,
    End: () => slides.length - 1,
  };

  addEventListener("keydown", (event) => {
    const { key, target, altKey, ctrlKey, metaKey } = event;
    if (altKey || ctrlKey || metaKey || event.defaultPrevented) return;
    if (going() && ["F8", "Escape"].includes(key)) end();
    else if (key == "F8") begin();
    else if (!going() || !turns[key] || target.closest("input, textarea, select, .tl")) return;
    else show(turns[key]());
    event.preventDefault();
  });
  // A browser takes Escape for itself when it leaves full screen.
  addEventListener("fullscreenchange", () => !document.fullscreenElement && going() && end());
  addEventListener("beforeprint", () => going() && end());

  const button = (text, act) => {
    const made = bar.appendChild(document.createElement("button"));
    made.type = "button";
    made.textContent = text;
    made.onclick = act;
  };
  bar.className = "book-lecture d-print-none";
  bar.ariaLabel = "Slides";
  button("← Back", () => show(at - 1));
  button("On →", () => show(at + 1));
  button("End", end);
  news.role = "status";
  bar.append(news);
  document.body.append(bar);
  // The title of the chapter stays, and with it a heading of the first level.
  const title = document.createElement("b");
  title.role = "heading";
  title.ariaLevel = 1;
  title.textContent = titleOf(slides[0]);
  bar.prepend(title);
  start.onclick = begin;
}
