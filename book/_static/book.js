// A list that filters, the printing of a page, and a model that it loads late. Everything reads
// without this script.
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

  // The weights of a model may wait in a file until a reader loads them: by a button, or by an
  // address that names a sentence. Until then the controls of its exhibit rest in their places, so
  // nothing moves when the weights come; then the exhibit is built anew.
  for (const button of all(document, "tl-ask > button[data-model]")) {
    const exhibit = button.parentNode;
    const band = exhibit.querySelector(".tl-said");
    const [news] = band.children;
    const link = element("a", "", "Link to this sentence"); // as the exhibit will offer one
    const rest = (waits) => {
      exhibit.removeAttribute("data-bare");
      exhibit.toggleAttribute("data-waiting", waits);
      for (const part of all(exhibit, ".tl-lists, .tl-row, .tl-legend")) part.inert = waits;
    };
    let kept;
    const start = () => {
      const pressed = document.activeElement == button;
      button.remove();
      link.remove();
      rest(false);
      news.textContent = "The model is loaded. Choose a word, or silence a head.";
      exhibit.built = false;
      exhibit.connectedCallback();
      exhibit.recall(kept);
      if (pressed) exhibit.querySelector("[aria-checked=true]").focus({ preventScroll: true });
    };
    const load = () => {
      button.onclick = null;
      news.textContent = "The model is loading.";
      loadScript(button.dataset.model).then(start, () => {
        news.textContent = "The model did not arrive. Check the connection and press again.";
        button.onclick = load;
      });
    };
    const follow = () => location.hash.startsWith("#ask=") && button.onclick?.();
    exhibit.recall = (state) => {
      kept = state;
      return true;
    };
    customElements.whenDefined("tl-ask").then(() => {
      button.onclick = load;
      button.hidden = false;
      band.append(button);
      all(exhibit, ".tl-asked > .tl-row").at(-1).append(link);
      rest(true);
      follow();
      addEventListener("hashchange", follow);
    });
  }
}
