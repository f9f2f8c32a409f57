// Gathers the pages of the site in the one that is open; tools/print_book.py prints it.
//
// A place is a page's path, such as "notebooks/05_concatenation.html". It is the id of the page's
// article and stands before every id in it: "notebooks/05_concatenation.html#idea".
{
  const all = (root, selector) => [...root.querySelectorAll(selector)];
  const root = new URL(document.documentElement.dataset.content_root, location).href;
  const here = location.href.slice(root.length);
  const published = document.querySelector("link[rel=canonical]").href.slice(0, -here.length);
  const book = document.querySelector(".bd-article-container");
  const places = new Set();

  const make = (parent, tag, className, text) => {
    const node = parent.appendChild(document.createElement(tag));
    node.className = className;
    node.textContent = text;
    return node;
  };

  // The pages of the book in order, each with its part, as the sidebar has them.
  const contents = () => {
    let part = "";
    return all(document, ".bd-links :is(.caption, a.internal)").flatMap((node) => {
      // The sidebar shortens a title and keeps the whole one as the tooltip.
      const number = node.querySelector(".book-number")?.textContent ?? "";
      const title = node.title ? number + node.title : node.textContent.trim();
      const place = node.href?.replace("#", "").slice(root.length);
      if (!place) part = title;
      return place ? [{ place, part, title }] : [];
    });
  };

  // Replace what is shown by a cover with the contents, whose numbers come later.
  const begin = (chapters) => {
    const said = (selector) => document.querySelector(selector).textContent.trim();
    const lines = [said(".extra_footer"), said(".copyright"), published];
    const [{ title }] = contents();
    const about = document.querySelector("meta[name=description]").content;
    document.title = title;
    book.replaceChildren();
    const cover = make(book, "article", "bd-article book-cover", "");
    make(cover, "p", "book-title", title);
    make(cover, "p", "", about);
    make(cover, "h1", "", "Contents");
    let part = "";
    for (const chapter of chapters) {
      places.add(chapter.place);
      if (chapter.part != part) make(cover, "p", "book-part", chapter.part);
      part = chapter.part;
      const line = make(cover, "a", "book-line", "");
      line.href = `#${chapter.place}`;
      make(line, "span", "", chapter.title);
      make(line, "span", "book-number", "");
    }
    make(cover, "p", "book-imprint", lines.join("\n"));
  };

  // A link to a page that is printed leads there; to any other page of the site, and to a state of
  // an exhibit, which no paper has, to its address.
  const lead = (link, base) => {
    const target = new URL(link.getAttribute("href"), base).href;
    if (!target.startsWith(root)) return target;
    const path = target.slice(root.length);
    const [place, part = ""] = path.split("#");
    return (places.has(place) && !part.includes("=") ? "#" : published) + path;
  };

  const add = ({ place, part }, html) => {
    const source = new DOMParser().parseFromString(html, "text/html");
    const article = document.adoptNode(source.querySelector("article"));
    for (const folded of all(article, ".book-folded")) folded.replaceWith(...folded.childNodes);
    const base = root + place;
    for (const sheet of all(source, "head link[rel=stylesheet]")) {
      sheet.href = new URL(sheet.getAttribute("href"), base);
      const known = all(document.head, "link").some(({ href }) => href == sheet.href);
      if (!known) document.head.append(sheet);
    }
    for (const image of all(article, "img")) image.src = new URL(image.getAttribute("src"), base);
    for (const link of all(article, "a[href]")) link.href = lead(link, base);
    for (const node of all(article, "[id]:not(svg *)")) node.id = `${place}#${node.id}`;
    for (const name of ["aria-labelledby", "aria-describedby", "for"]) {
      for (const node of all(article, `[${name}]:not(svg *)`)) {
        const ids = node.getAttribute(name).split(" ");
        node.setAttribute(name, ids.map((id) => `${place}#${id}`).join(" "));
      }
    }
    // In the bookmarks a part holds its chapters, a chapter its sections.
    if (part) {
      for (const node of all(article, "h1, h2, h3, h4")) node.ariaLevel = +node.tagName[1] + 1;
    }
    if (part && all(book, ".book-opening").at(-1)?.textContent != part) {
      article.prepend(make(article, "h1", "book-opening", part));
    }
    article.id = place;
    book.append(article);
  };

  const settle = async () => {
    await document.fonts.ready;
    const pictures = all(book, "img");
    for (const image of pictures) image.loading = "eager";
    await Promise.all(pictures.map((image) => image.decode()));
  };

  const number = (numbers) => {
    for (const line of all(book, ".book-line")) {
      line.querySelector(".book-number").textContent = numbers[decodeURI(line.hash.slice(1))];
    }
  };

  const style = `
    article { break-before: page; }
    .book-cover { break-before: auto; }
    .book-cover .book-title { font-size: 2.6rem; font-weight: 700; line-height: 1.2; }
    .book-cover .book-title { margin: 2rem 0 0; }
    .book-cover h1 { font-size: 1.3rem; margin: 2rem 0 0; }
    .book-part { font-weight: 600; margin: 0.9rem 0 0.1rem; }
    .book-line { color: inherit; display: flex; gap: 0.5rem; text-decoration: none; }
    .book-line span:first-child { flex: 1; }
    .book-cover .book-number { min-width: 2.5rem; text-align: right; }
    .book-imprint { color: #555; font-size: 0.85rem; margin-top: 2rem; white-space: pre-line; }
    .bd-article h1.book-opening { color: #555; font-size: 1.2rem; margin: 0 0 2rem; }`;
  make(document.head, "style", "", style);
  window.printing = { contents, begin, add, settle, number };
}
