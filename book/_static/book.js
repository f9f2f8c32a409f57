// The foot of a page, its printing, and a model that it fetches late. Everything reads without this
// script, which adds the section to a report, and the answers to the end of what is printed.
{
  const all = (root, selector) => [...root.querySelectorAll(selector)];
  const page = document.documentElement;

  // A report names the section that is on the screen when its link is reached for.
  const titleOf = (heading) => {
    const copy = heading.cloneNode(true);
    copy.querySelector(".headerlink")?.remove();
    return copy.textContent;
  };

  const sectionOnScreen = () =>
    all(document, "article section[id] > :is(h1, h2, h3, h4)")
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

  // The weights of a model may wait in a file until a reader comes near: by scrolling, by an
  // address, or by what the page has kept. The exhibit was made without them; a copy replaces it.
  for (const file of all(document, "tl-ask script[src]")) {
    const bare = file.closest("tl-ask");
    const script = document.createElement("script");
    let kept;
    const fetchModel = () => {
      near.disconnect();
      script.src = file.src;
      document.head.append(script);
    };
    const arrive = ([entry]) => entry.isIntersecting && fetchModel();
    const near = new IntersectionObserver(arrive, { rootMargin: "100%" });
    bare.recall = (state) => {
      kept = state;
      fetchModel();
      return true;
    };
    script.onload = () => {
      bare.removeAttribute("data-bare");
      const whole = bare.cloneNode(true);
      bare.replaceWith(whole);
      whole.recall(kept);
    };
    if (location.hash.startsWith("#ask=")) fetchModel();
    else near.observe(bare);
  }
}
