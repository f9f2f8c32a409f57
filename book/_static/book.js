// Lists and tables that filter, and the printing of a page. Everything reads without this script.
{
  const page = document.documentElement;

  // A list of entries shows those that have all words of its field; where none has, those that
  // have most of them.
  for (const field of all(document, ".book-filter input")) {
    const entries = all(document, "article section section section");
    const texts = entries.map((entry) => entry.textContent.toLowerCase());
    const status = field.closest(".book-filter").querySelector("[role=status]");
    const filter = () => {
      const words = field.value.toLowerCase().match(/[a-z_]{3,}/g) ?? [];
      const counts = texts.map((text) => words.filter((word) => text.includes(word)).length);
      const most = Math.max(...counts);
      const shown = entries.filter((entry, i) => {
        entry.hidden = words.length > 0 && (most == 0 || counts[i] < most);
        return !entry.hidden;
      });
      for (const group of all(document, "article > section > section")) {
        group.hidden = all(group, "section").every((entry) => entry.hidden);
      }
      const count = `${shown.length} of ${entries.length} entries`;
      status.textContent = words.length ? `${count} fit best.` : "";
    };
    field.closest(".book-filter").hidden = false;
    field.oninput = filter;
    filter();
  }

  for (const filter of all(document, ".cards-filter")) {
    const rows = all(document, ":is(.cards-all, .book-exercises) tbody tr");
    const status = filter.querySelector("output");
    filter.oninput = ({ target }) => {
      const words = target.value.toLowerCase().split(/\s+/);
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      }
      const left = rows.filter((row) => !row.hidden).length;
      status.textContent = status.textContent.replace(/\d+/, left);
    };
    filter.hidden = false;
  }

  // From the index an exercise opens alone: see `alone.js`.
  for (const link of all(document, ".book-exercises td:first-child a")) {
    link.search = `?only=${link.hash.slice(1)}`;
  }

  // On paper nothing can be pressed: the answers go to the end of the page, in light colours.
  const answersOf = (article) => {
    const title = element("h2", "", "Answers");
    title.ariaLevel = article.querySelector("h2")?.ariaLevel;
    const section = element("section", "book-answers", title);
    for (const answer of all(article, ":is(.tl-quiz, .tl-predict, .tl-parsons) details")) {
      const asked = answer.closest(".tl");
      const number = answer.closest("fieldset")?.querySelector("legend b").textContent;
      const question = asked.matches(".tl-quiz") ? ` ${number}` : "";
      const title = element("p", "", element("b", "", `${asked.ariaLabel}${question}`));
      const parts = all(answer, ":scope > :not(summary)").map((node) => node.cloneNode(true));
      section.append(element("div", asked.className, title, ...parts));
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
}
