// The site's own search: sections ranked by how much they say of what was asked. `search.py` writes
// the INDEX in front of this file, so it works from disk too; `site.js` loads it on use.
{
  // Where a thing is explained, rather than used, asked or listed.
  const EXPLAINS = {
    ...{ Idea: 1.1, "Myth and measurement": 0.85, Goal: 0.8, Exercises: 0.9, Check: 0.7 },
    ...{ Quiz: 0.5, Recap: 0.8, Deeper: 0.8, Look: 1 },
  };
  const MENTIONED = 0.5; // in what the glossary says of another term
  const FIELDS = { title: 6, name: 4, above: 2.5 };
  const HEADING = 1; // a title that all chapters have
  const SYNONYM = 0.5;
  const BEGINNING = 0.4; // of a word that is longer than what was typed
  const [SATURATION, LENGTH, SHORT] = [1.5, 0.4, 1];
  const PAPER = 0.2;
  const CITED = 0.5; // what the title of a paper says, in a section that cites it
  const TERM = 0.8;
  const [SYMPTOM, PASTED] = [2.2, 5]; // of what one sees, where so many words were asked: a message
  const BESIDE = 0.6; // pages that look up or look back, after the chapters that explain
  const [NOTHING_SAID, NOT_TOLD] = [0.001, 0.01]; // of a sentence: no word asked for; a question
  const SLIP = 0.8; // of a word as it was meant
  const [PART, ASKED_PART] = [0.7, 0.4]; // of a name, as its words, where it stands and as asked
  const [TOGETHER, NEARED] = [0.4, 40]; // for words that stand together as asked; hits looked at
  const [NAMED, PHRASE] = [1.5, 3]; // an entry called as was asked, or with so many words of it
  const SHOWN = { dialogue: [8, 2], page: [20, 5] }; // hits, and those of pages that come last
  const [EXCERPT, QUOTED, LONGEST_QUERY] = [170, 60, 200]; // characters
  const ROOT = new URL("..", document.currentScript.src);

  const ENDINGS = new RegExp(INDEX.endings);
  const COMMON = new Set(INDEX.common.split(" "));

  // What is said: words as readers type them. W_O is one word with wo, ½ with 1/2.
  const WORD = /\d+\/\d+|[\p{L}\p{N}]+(?:[_.\-][\p{L}\p{N}]+)*/gu;
  const plainly = (text) =>
    text
      .replace(/[¼-¾⅐-⅞]/g, " $&")
      .normalize("NFKC")
      .replace(/([a-z])(?=[A-Z][a-z])/g, "$1-")
      .toLowerCase()
      .replace(/(\d)\s*[⁄÷/]\s*(?=\d)/g, "$1/")
      .replace(/(\d),(?=\d{3}\b)/g, "$1")
      .replace(/√/g, " sqrt ")
      .replace(/∞/g, " inf ")
      .replace(/@/g, " matmul ")
      .replace(/->/g, " einsum ")
      .replace(/∑/g, " sum ")
      .replace(/\b\p{L}+n['’]t\b/gu, " not ")
      .replace(/['’](s|re|ve|ll|d|m)\b/g, "");

  const stemOf = (word) =>
    /[\d/]/.test(word) ? word : word.replace(ENDINGS, "").replace(/([bdgmnprt])\1$/, "$1");

  // Each word of a text as its stem, and the parts of a name such as nn.functional.cross_entropy.
  const TOKENS = new Map();
  const tokenOf = (word) => {
    if (!TOKENS.has(word)) {
      const joined = (name) => stemOf(name.replace(/[_-]/g, ""));
      const isNumber = /^[\d.]+$/.test(word);
      const whole = isNumber ? word : joined(word.replaceAll(".", ""));
      const pieces = isNumber ? [] : [...word.split("."), ...word.split(/[_.-]/)].map(joined);
      const parts = [...new Set(pieces)].filter((stem) => stem.length > 1 && stem != whole);
      TOKENS.set(word, { word, whole, parts });
    }
    return TOKENS.get(word);
  };
  const read = (text) => (plainly(text).replace(/\^/g, "").match(WORD) ?? []).map(tokenOf);

  const isRare = ({ word }) => !COMMON.has(word);

  const decode = (code) => {
    let place = 0;
    return [...code.matchAll(/([a-z]?)([#-Z])/g)].map(([, high, low]) => {
      place += (high ? high.charCodeAt() - 96 : 0) * 56 + low.charCodeAt() - 35;
      return place;
    });
  };

  const dashed = (title) => title.replace(/[^a-zA-Z0-9_]+/g, "-").replace(/^-|-$/g, "");
  const idOf = (id, title) => {
    if (id == "term-") return id + dashed(title);
    return id === 0 ? dashed(title).toLowerCase() : id;
  };

  // Each entry with its page and the title of the section that it stands in.
  const COLUMNS = INDEX.entries;
  const PAGES = INDEX.pages.flatMap((page) => Array(page.at(-1)).fill(page));
  const ENTRIES = PAGES.map(([path, label, pageTitle, rest, last], place) => {
    const [title, names, cited] = ["title", "names", "cited"].map(
      (column) => COLUMNS[column][place]
    );
    const id = idOf(COLUMNS.id[place], title);
    const section = COLUMNS.inside[place];
    const crumbs = [label, id && pageTitle, section].filter(Boolean);
    const isTerm = id.startsWith("term-");
    const paper = /references$/.test(path) && id;
    const kind = id.startsWith("exercise-") ? "Exercises" : title.split(": ")[0];
    const beside = /\/(notation|negative|symptoms)$/.test(path) ? BESIDE : 1;
    const worth = isTerm ? TERM : paper ? PAPER : (EXPLAINS[kind] ?? beside);
    const whole = [pageTitle, rest, section, path.replace(/.*\/[\d_]*/, "")].join(" ");
    const said = { title, names, cited, whole };
    const isSymptom = path == "book/symptoms";
    return { place, path, id, crumbs, worth, isTerm, isSymptom, last, size: 0, ...said };
  });

  // Where each stem stands, and with what weight: a Map from an entry's place for each stem.
  const PLACES = new Map();
  const FORMS = new Map(); // a word for each stem, as the book writes it
  const add = (stem, place, weight) => {
    let places = PLACES.get(stem);
    if (!places) PLACES.set(stem, (places = new Map()));
    places.set(place, (places.get(place) ?? 0) + weight);
  };
  const note = (entry, { word, whole, parts }, weight) => {
    add(whole, entry.place, weight);
    for (const part of parts) add(part, entry.place, weight * PART);
    if (!(FORMS.get(whole)?.length <= word.length)) FORMS.set(whole, word);
    entry.size += 1;
  };

  const build = () => {
    for (const entry of ENTRIES) {
      const fields = { title: entry.title, name: entry.names, above: entry.whole };
      for (const [field, text] of Object.entries(fields)) {
        const weight = field == "title" && EXPLAINS[text] ? HEADING : FIELDS[field];
        for (const token of read(text)) note(entry, token, weight);
      }
    }
    const codes = INDEX.places.split(" ");
    let word = "";
    for (const [, shared, rest] of INDEX.words.matchAll(/([#-,])([^#-,]+)/g)) {
      word = word.slice(0, shared.charCodeAt() - 35) + rest;
      const [token] = read(word);
      const count = (place, degree) => {
        const weight = 2 ** degree * (ENTRIES[place].isTerm ? MENTIONED : 1);
        if (token) note(ENTRIES[place], token, weight);
      };
      codes.shift().split("|").forEach((places, degree) =>
        decode(places).forEach((place) => count(place, degree))
      );
    }
    for (const { title, cited } of ENTRIES) {
      for (const place of decode(cited)) {
        for (const { whole, parts } of read(title)) {
          for (const stem of [whole, ...parts]) {
            if (!PLACES.get(stem)?.has(place)) add(stem, place, CITED);
          }
        }
      }
    }
  };
  build();
  const MEAN_SIZE = ENTRIES.reduce((sum, { size }) => sum + size, 0) / ENTRIES.length;
  // Common words alone mean nothing here.
  const SYNONYMS = INDEX.synonyms.map((line) =>
    line
      .map((words) => read(words).filter(isRare).map(({ whole }) => whole))
      .filter((words) => words.length)
  );

  // Each word that was asked for, with all stems that answer it and how well each does.
  const ask = (query) => {
    const all = read(query.slice(0, LONGEST_QUERY));
    const rare = all.filter(isRare);
    const asked = rare.map((token) => ({ ...token, stems: new Map([[token.whole, 1]]) }));
    asked.forEach((term, i) => {
      const joined = asked[i + 1] && term.whole + asked[i + 1].whole;
      if (PLACES.has(joined)) for (const { stems } of [term, asked[i + 1]]) stems.set(joined, 1);
    });
    const last = asked.at(-1);
    for (const term of asked) {
      const known = PLACES.has(term.whole);
      if ((term == last || !known) && term.word.length > 2) addLonger(term, known ? 0.25 : 1);
    }
    addSynonyms(asked);
    for (const { parts, stems, synonyms } of asked) {
      if (!synonyms.length) for (const part of parts) stems.set(part, ASKED_PART);
    }
    const isKnown = ({ stems }) => [...stems.keys()].some((stem) => PLACES.has(stem));
    const slips = asked.filter((term) => !isKnown(term) && !term.synonyms.length);
    slips.forEach(mendSlip);
    if (slips.some(({ slip }) => slip)) addSynonyms(asked);
    return { asked, all };
  };

  const addLonger = ({ word, whole, stems }, share) => {
    for (const [stem, form] of FORMS) {
      const longer = form.startsWith(word) || stem.startsWith(whole);
      if (longer && !stems.has(stem)) stems.set(stem, BEGINNING * share);
    }
  };

  // Slips between two words: a letter too many, too few, wrong, or two in the other order.
  const slipsOf = (a, b) => {
    let [before, last] = [[], [...b, ""].map((_, j) => j)];
    for (let i = 1; i <= a.length; i += 1) {
      const row = [i];
      for (let j = 1; j <= b.length; j += 1) {
        const wrong = a[i - 1] == b[j - 1] ? 0 : 1;
        row[j] = Math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + wrong);
        const swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
        if (swapped) row[j] = Math.min(row[j], before[j - 2] + 1);
      }
      [before, last] = [last, row];
    }
    return last.at(-1);
  };

  // A word that the book does not have is answered by the nearest that it has.
  const mendSlip = (term) => {
    const { word, whole } = term;
    let least = word.length < 5 || /^[\d./]+$/.test(word) ? 0 : word.length < 10 ? 1 : 2;
    let most = 0;
    for (const [stem, form] of FORMS) {
      if (stem[0] != word[0] || Math.abs(stem.length - whole.length) > 2) continue;
      const slips = Math.min(slipsOf(word, form), slipsOf(whole, stem) || 1);
      const places = PLACES.get(stem).size;
      if (slips > least || (slips == least && places <= most)) continue;
      [least, most, term.slip, term.stem] = [slips, places, form, stem];
    }
    if (term.slip) term.stems.set(term.stem, SLIP);
  };

  const addSynonyms = (asked) => {
    const said = asked.map(({ whole, stem }) => stem ?? whole);
    for (const term of asked) term.synonyms = [];
    for (const line of SYNONYMS) {
      for (const words of line) {
        const at = said.findIndex((_, i) => words.every((word, j) => said[i + j] == word));
        const others = at < 0 ? [] : line.filter((other) => other != words);
        for (const term of asked.slice(at, at + words.length)) term.synonyms.push(...others);
      }
    }
  };

  // BM25 with weights of fields.
  const rarity = (count) => Math.log(1 + (ENTRIES.length - count + 0.5) / (count + 0.5));
  const scoresOfStem = (stem) => {
    const places = PLACES.get(stem) ?? new Map();
    const scores = new Map();
    for (const [place, weight] of places) {
      const size = Math.max(ENTRIES[place].size / MEAN_SIZE, SHORT);
      const length = 1 - LENGTH + LENGTH * size;
      const frequent = (weight * (SATURATION + 1)) / (weight + SATURATION * length);
      scores.set(place, rarity(places.size) * frequent);
    }
    return scores;
  };

  // A synonym of several words is said where all of them are.
  const scoresOfAll = (stems) => {
    const [first, ...others] = stems.map(scoresOfStem);
    const both = (scores, more) => {
      const common = [...scores].filter(([place]) => more.has(place));
      return new Map(common.map(([place, n]) => [place, Math.min(n, more.get(place))]));
    };
    return others.reduce(both, first);
  };

  const scoresOf = ({ stems, synonyms }) => {
    const scores = new Map();
    const answers = [
      ...[...stems].map(([stem, share]) => [scoresOfStem(stem), share]),
      ...synonyms.map((words) => [scoresOfAll(words), SYNONYM]),
    ];
    for (const [found, share] of answers) {
      for (const [place, score] of found) {
        scores.set(place, Math.max(scores.get(place) ?? 0, score * share));
      }
    }
    return scores;
  };

  const wholes = (tokens) => tokens.map(({ whole }) => whole).join(" ");

  // The share of neighbours in a query that are neighbours in the title of an entry too.
  const togetherIn = (entry, asked) => {
    entry.order ??= read(entry.title).filter(isRare);
    const answers = (token, { stems }) =>
      [token.whole, ...token.parts].some((stem) => stems.get(stem) > BEGINNING);
    const near = asked.slice(1).filter((term, i) =>
      entry.order.some((token, at) => {
        const around = entry.order.slice(Math.max(at - 1, 0), at + 2);
        return answers(token, term) && around.some((other) => answers(other, asked[i]));
      })
    );
    return near.length / Math.max(asked.length - 1, 1);
  };

  // A rare word that an entry says tells more of it than a common one.
  const rank = ({ asked, all }) => {
    const words = asked.map(scoresOf).filter((scores) => scores.size);
    const most = words.reduce((sum, { size }) => sum + rarity(size), 0);
    const phrase = wholes(all);
    const found = new Map();
    for (const scores of words) {
      for (const [place, score] of scores) {
        const { sum = 0, share = 0 } = found.get(place) ?? {};
        found.set(place, { sum: sum + score, share: share + rarity(scores.size) / most });
      }
    }
    const hits = [...found].map(([place, { sum, share }]) => {
      const entry = ENTRIES[place];
      entry.called ??= wholes(read(entry.title));
      const isNamed = all.length < PHRASE ? entry.called == phrase : entry.called.includes(phrase);
      const seen = entry.isSymptom && asked.length >= PASTED ? SYMPTOM : 1;
      return { entry, score: sum * share * entry.worth * seen * (isNamed ? NAMED : 1) };
    });
    const better = (a, b) => b.score - a.score || a.entry.place - b.entry.place;
    hits.sort(better);
    for (const hit of hits.slice(0, NEARED)) {
      hit.score *= 1 + TOGETHER * togetherIn(hit.entry, asked);
    }
    hits.sort(better);
    return hits;
  };

  // What is shown of a text: the words that answer what was asked stand in <mark>.
  const CHUNK = /[\p{L}\p{N}√∞½⅓¼⅔¾]+(?:(?:[_.\-/^]|,(?=\d{3}\b))[\p{L}\p{N}√]+)*/gu;
  const answersTo = ({ stems, synonyms }) => new Set([...stems.keys(), ...synonyms.flat()]);
  const isSaid = (text, stems) =>
    read(text).some(({ whole, parts }) => [whole, ...parts].some((stem) => stems.has(stem)));
  const stemsOf = (asked) => new Set(asked.flatMap((term) => [...answersTo(term)]));

  const marked = (text, stems) => {
    const piece = document.createDocumentFragment();
    let end = 0;
    for (const { 0: chunk, index } of text.matchAll(CHUNK)) {
      if (!isSaid(chunk, stems)) continue;
      piece.append(text.slice(end, index), element("mark", "", chunk));
      end = index + chunk.length;
    }
    piece.append(text.slice(end));
    return piece;
  };

  // All that the entries of a page say, fetched when one of them is a hit.
  const REQUESTS = new Map();
  globalThis.readSentences = (path, texts) => {
    const entries = ENTRIES.filter((entry) => entry.path == path);
    entries.forEach((entry, i) => (entry.sentences = texts[i]));
  };
  const fetchSentences = (path) => {
    const address = new URL(`_static/sentences/${path.split("/").at(-1)}.js`, ROOT);
    if (!REQUESTS.has(path)) REQUESTS.set(path, loadScript(address).catch(() => {}));
    return REQUESTS.get(path);
  };

  // The sentence that says most of what was asked, begun shortly before its first word of it where
  // it is long. What asks or leads on comes behind what tells, and what says nothing of it last.
  const excerptOf = ({ sentences }, asked) => {
    const worthOf = (sentence) => {
      const stems = new Set(read(sentence).flatMap(({ whole, parts }) => [whole, ...parts]));
      const count = (meant) => asked.filter((term) => meant(term).some((stem) => stems.has(stem)));
      const said = [...count((term) => [...answersTo(term)]), ...count(({ whole }) => [whole])];
      return (said.length || NOTHING_SAID) * (/[?:]$/.test(sentence) ? NOT_TOLD : 1);
    };
    const worths = sentences.map(worthOf);
    const best = sentences[worths.indexOf(Math.max(...worths))] ?? "";
    if (best.length <= EXCERPT) return best;
    const stems = stemsOf(asked);
    const first = [...best.matchAll(CHUNK)].find(([chunk]) => isSaid(chunk, stems))?.index ?? 0;
    const start = first < EXCERPT - 50 ? 0 : best.lastIndexOf(" ", first - 50) + 1;
    const end = best.indexOf(" ", start + EXCERPT);
    return `${start ? "… " : ""}${end < 0 ? best.slice(start) : `${best.slice(start, end)} …`}`;
  };

  // Words that an entry says where its excerpt does not.
  const elsewhere = (entry, asked, shown) =>
    asked
      .filter((term) => !isSaid(shown, answersTo(term)))
      .map((term) => {
        const said = [...answersTo(term)].find((stem) => PLACES.get(stem)?.has(entry.place));
        return said == term.whole ? term.word : FORMS.get(said);
      })
      .filter(Boolean);

  const drawHit = ({ entry }, { asked }) => {
    const link = element("a", "search-hit");
    link.href = new URL(`${entry.path}.html#${entry.id}`, ROOT);
    link.append(
      element("span", "search-path", entry.crumbs.join(" · ")),
      element("b", "", marked(entry.title, stemsOf(asked)))
    );
    quote(link, entry, asked);
    link.addEventListener("click", () => link.closest("dialog")?.close());
    return link;
  };

  // What an entry says of the question; all its sentences may come after it is drawn.
  const quote = async (link, entry, asked) => {
    if (!entry.sentences) {
      await fetchSentences(entry.path);
      entry.sentences ??= [];
    }
    const stems = stemsOf(asked);
    const excerpt = excerptOf(entry, asked);
    const more = elsewhere(entry, asked, `${entry.crumbs.join(" ")} ${entry.title} ${excerpt}`);
    if (excerpt) {
      link.append(element("span", "search-excerpt", marked(excerpt, stems)));
      link.href += quoteOf(excerpt);
    }
    if (!more.length) return;
    const words = [...new Set(more)].join(", ");
    link.append(element("span", "search-also", "Also: ", marked(words, stems)));
  };

  // The end of an address at which a browser finds and marks the words of an excerpt. A formula has
  // other signs in the index than on the page, so the longest run of words is quoted.
  const quoteOf = (excerpt) => {
    const runs = excerpt.match(/(?<![^\s“(])\p{L}[\p{L} ,’-]*(?=[\s.;:?!)”]|$)/gu) ?? [];
    const longest = runs.reduce((one, other) => (other.length > one.length ? other : one), "");
    const words = longest.match(RegExp(`^.{0,${QUOTED}}(?!\\S)`, "u"))?.[0].trim();
    if (!words || !document.fragmentDirective) return "";
    return `:~:text=${encodeURIComponent(words).replaceAll("-", "%2D")}`;
  };

  const EXAMPLES = "a word, a symbol such as √ or W_O, or a number such as 4/7";
  const explain = (query, { asked, all }, count, isAll) => {
    if (!isAll) return `The best ${count} places found.`;
    if (count) return count == 1 ? "One place found." : `${count} places found, best first.`;
    if (!query.trim()) return `Type ${EXAMPLES}.`;
    if (!all.length) return `There is no word or number in this. Try ${EXAMPLES}.`;
    if (!asked.length) return "These words stand on every page. Add a rarer one, such as mask.";
    const short = query.trim().slice(0, 40);
    const shown = short.length < query.trim().length ? `${short} …` : short;
    return `Nothing is found for “${shown}”. Try fewer words, or another one.`;
  };

  // What stands below a field: what was found in words, other spellings, the hits.
  class Results {
    constructor(form) {
      this.input = form.querySelector("input");
      this.inDialog = Boolean(form.closest("dialog"));
      this.said = element("p", "search-said");
      this.said.role = "status";
      this.tips = element("p", "search-tips");
      this.list = element(this.inDialog ? "div" : "ol", "search-hits");
      this.list.id = this.inDialog ? "search-hits" : "search-results";
      this.box = element("div", "search-box", this.said, this.tips, this.list);
      form.after(this.box);
      if (this.inDialog) this.speakAsListbox();
      this.input.addEventListener("input", () => this.show());
    }

    speakAsListbox() {
      this.list.role = "listbox";
      this.list.ariaLabel = "Sections found";
      this.input.role = "combobox";
      this.input.setAttribute("aria-controls", this.list.id);
      this.input.ariaAutoComplete = "list";
      this.input.addEventListener("keydown", (event) => this.steer(event));
    }

    show() {
      const query = this.input.value;
      const question = { ...ask(query), query };
      const found = rank(question);
      const hits = this.pick(found);
      this.said.textContent = explain(query, question, hits.length, hits.length == found.length);
      this.drawTips(question, hits);
      this.list.replaceChildren(...this.draw(hits, question));
      if (this.inDialog) {
        this.choose();
        this.input.ariaExpanded = String(hits.length > 0);
      } else {
        keepAddress(query);
      }
    }

    pick(found) {
      const [most, mostLast] = this.inDialog ? SHOWN.dialogue : SHOWN.page;
      const first = found.filter(({ entry }) => !entry.last).slice(0, most);
      return [...first, ...found.filter(({ entry }) => entry.last).slice(0, mostLast)];
    }

    draw(hits, question) {
      const firstLast = hits.findIndex(({ entry }) => entry.last);
      return hits.map((hit, i) => {
        const link = drawHit(hit, question);
        if (i == firstLast) link.classList.add("search-last");
        if (!this.inDialog) return element("li", "", link);
        link.role = "option";
        link.id = `search-hit-${i + 1}`;
        link.tabIndex = -1;
        return link;
      });
    }

    drawTips(question, hits) {
      this.tips.replaceChildren();
      // Words of a pasted message are names more often than slips.
      const terms = question.asked.length < PASTED ? question.asked : [];
      for (const { word, slip } of terms.filter((term) => term.slip)) {
        const button = element("button", "", slip);
        button.type = "button";
        button.addEventListener("click", () => {
          this.input.value = this.input.value.toLowerCase().replace(word, slip);
          this.input.focus();
          this.show();
        });
        this.tips.append("Did you mean ", button, "? ");
      }
      if (hits.length || !question.all.length) return;
      this.tips.append(pageLink("book/glossary", "The glossary"));
      this.tips.append(pageLink("genindex", "The index"));
    }

    steer(event) {
      const options = [...this.list.children];
      const at = options.findIndex(({ ariaSelected }) => ariaSelected == "true");
      if (event.key == "Enter" && at >= 0) {
        event.preventDefault();
        options[at].click();
      }
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step || !options.length) return;
      event.preventDefault();
      const next = at < 0 && step < 0 ? options.length - 1 : at + step;
      this.choose(options[next]);
    }

    choose(option) {
      for (const other of this.list.children) other.ariaSelected = String(other == option);
      if (option) this.input.setAttribute("aria-activedescendant", option.id);
      else this.input.removeAttribute("aria-activedescendant");
      option?.scrollIntoView({ block: "nearest" });
    }
  }

  const pageLink = (name, text) => {
    const link = element("a", "", text);
    link.href = new URL(`${name}.html`, ROOT);
    return link;
  };

  const keepAddress = (query) => {
    const address = new URL(location);
    if (!address.pathname.endsWith("/search.html")) return;
    if (query) address.searchParams.set("q", query.slice(0, LONGEST_QUERY));
    else address.searchParams.delete("q");
    try {
      history.replaceState(history.state, "", address);
    } catch {
      // A browser may refuse it to a page from disk; the address is a convenience.
    }
  };

  for (const form of document.querySelectorAll("form.bd-search")) {
    const results = new Results(form);
    if (!results.inDialog) {
      results.input.value ||= new URLSearchParams(location.search).get("q") ?? "";
      form.addEventListener("submit", (event) => event.preventDefault());
    }
    results.show();
  }
}
