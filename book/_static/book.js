// The foot of a page and its printing. Everything reads without this script, which adds a mark on
// what has been read, the section to a report, and the answers to the end of what is printed.
(() => {
  const all = (root, selector) => [...root.querySelectorAll(selector)];
  const page = document.documentElement;

  // Read pages, by their place below the book's root; only this browser knows them.
  const root = new URL(page.dataset.content_root, location).pathname;
  const placeOf = (url) => new URL(url, location).pathname.slice(root.length);
  const key = `read:${root}`;
  const here = placeOf("");
  let read = [];

  const recall = () => {
    try {
      const kept = JSON.parse(localStorage.getItem(key));
      if (Array.isArray(kept)) read = kept;
    } catch {
      // Refused or spoilt: what this page has marked so far stays.
    }
  };

  const keep = () => {
    try {
      localStorage.setItem(key, JSON.stringify(read));
      return true;
    } catch {
      return false;
    }
  };

  const box = document.querySelector(".book-mark input");

  const show = () => {
    if (box) box.checked = read.includes(here);
    for (const link of all(document, ".bd-links a.internal")) {
      const done = read.includes(placeOf(link.href));
      link.classList.toggle("book-read", done);
      link.querySelector(".visually-hidden")?.remove();
      if (done) link.insertAdjacentHTML("beforeend", '<span class="visually-hidden"> (read)</span>');
    }
  };

  const mark = (done) => {
    recall();
    read = read.filter((place) => place != here);
    if (done) read.push(here);
    if (!keep()) {
      document.querySelector(".book-kept").textContent =
        "This browser keeps nothing for the book: the mark lasts until you leave the page.";
    }
    show();
  };

  addEventListener("pageshow", () => {
    recall();
    show();
  });

  if (box) {
    // The end marks the page once; who takes the mark away is not overruled.
    const end = new IntersectionObserver(([{ isIntersecting }]) => {
      if (isIntersecting) {
        end.disconnect();
        mark(true);
      }
    });
    end.observe(document.querySelector(".book-foot"));
    box.onchange = () => {
      end.disconnect();
      mark(box.checked);
    };
  }

  // A report names the section that is on the screen when its link is reached for.
  const titleOf = (heading) => {
    const copy = heading.cloneNode(true);
    copy.querySelector(".headerlink")?.remove();
    return copy.textContent;
  };

  const sectionOnScreen = () =>
    all(document, "article section[id] > :is(h1, h2, h3)")
      .filter((heading) => heading.getBoundingClientRect().top < innerHeight / 2)
      .at(-1);

  for (const link of all(document, ".book-report, .btn-source-issues-button")) {
    const report = new URL(link.href);
    const body = report.searchParams.get("body");
    const name = () => {
      const heading = sectionOnScreen();
      if (!heading) return;
      const filled = body
        .replace(/^Address: .*/m, (line) => `${line}#${heading.parentNode.id}`)
        .replace(/^Section:/m, (line) => `${line} ${titleOf(heading)}`);
      report.searchParams.set("body", filled);
      link.href = report;
    };
    for (const event of ["pointerenter", "focus", "click"]) link.addEventListener(event, name);
  }

  // On paper nothing can be pressed: the answers go to the end of the page, in light colours.
  const answersOf = (article) => {
    const section = document.createElement("section");
    section.className = "book-answers";
    const title = section.appendChild(document.createElement("h2"));
    title.textContent = "Answers";
    title.ariaLevel = article.querySelector("h2")?.ariaLevel;
    for (const answer of all(article, ":is(.tl-quiz, .tl-predict, .tl-parsons) details")) {
      const copy = section.appendChild(document.createElement("div"));
      const element = answer.closest(".tl");
      const number = answer.closest("fieldset")?.querySelector("legend b").textContent;
      const question = element.matches(".tl-quiz") ? ` ${number}` : "";
      copy.className = element.className;
      copy.append(...all(answer, ":scope > :not(summary)").map((node) => node.cloneNode(true)));
      copy.insertAdjacentHTML("afterbegin", `<p><b>${element.ariaLabel}${question}</b></p>`);
    }
    return section;
  };

  let theme;
  addEventListener("beforeprint", () => {
    theme = page.dataset.theme;
    page.dataset.theme = "light";
    for (const article of all(document, "article")) {
      if (article.querySelector(".tl details")) article.append(answersOf(article));
    }
  });
  addEventListener("afterprint", () => {
    page.dataset.theme = theme;
    all(document, ".book-answers").forEach((section) => section.remove());
  });
})();
