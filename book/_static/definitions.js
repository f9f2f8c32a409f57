// What a link to a term or to a paper leads to, shown beside it: on hover, on focus and on a tap.
// Without this script they are ordinary links. The cards come in one file, when the first is shown.
{
  const LINKS = "a.book-term, a.book-paper";
  const [WAIT, LINGER] = [200, 300]; // of a mouse, in ms: passing over shows nothing
  const address = new URL("definitions-cards.js", document.currentScript.src);

  const card = element("div", "book-card");
  card.id = "book-card";
  card.popover = "manual";
  card.role = "tooltip";
  document.body.append(card);

  let [shown, timer, loaded] = [];
  // Below the link, or above it where there is more room; within the window in any case.
  const place = () => {
    const { left, top, bottom } = shown.getClientRects()[0];
    const [width, height] = [document.documentElement.clientWidth, innerHeight];
    const below = height - bottom >= Math.min(card.offsetHeight + 8, top);
    card.style.maxHeight = `${(below ? height - bottom : top) - 16}px`;
    card.style.left = `${Math.max(8, Math.min(left, width - card.offsetWidth - 8))}px`;
    card.style.top = `${below ? bottom + 4 : top - card.offsetHeight - 4}px`;
  };

  const hide = () => {
    clearTimeout(timer);
    shown?.removeAttribute("aria-describedby");
    shown = undefined;
    if (card.matches(":popover-open")) card.hidePopover();
  };

  // Returns whether a card is shown.
  const show = async (link) => {
    clearTimeout(timer);
    if (link == shown) return true;
    hide();
    shown = link;
    try {
      await (loaded ??= loadScript(address));
    } catch {
      loaded = undefined;
    }
    const isTerm = link.hash.startsWith("#term-");
    const text = window.bookCards?.[isTerm ? link.hash.slice(1) : link.getAttribute("href")];
    if (shown != link) return true; // something else was asked meanwhile
    if (!text) {
      hide();
      return false;
    }
    card.innerHTML = text;
    card.scrollTop = 0;
    link.setAttribute("aria-describedby", card.id);
    card.showPopover();
    place();
    return true;
  };

  const soon = (act, wait) => {
    clearTimeout(timer);
    timer = setTimeout(act, wait);
  };

  document.addEventListener("pointerover", ({ target, pointerType }) => {
    if (pointerType == "touch") return;
    const link = target.closest(LINKS);
    if (card.contains(target) || (link && link == shown)) clearTimeout(timer);
    else if (link) soon(() => show(link), WAIT);
    else if (shown) soon(hide, LINGER);
    else clearTimeout(timer);
  });
  document.addEventListener("focusin", ({ target }) => {
    const link = target.closest(LINKS);
    if (link?.matches(":focus-visible")) show(link);
    else if (!card.contains(target)) hide();
  });
  // The first tap shows the card, the second follows the link, as the first does where none comes.
  document.addEventListener("click", async (event) => {
    const link = event.target.closest(LINKS);
    if (card.contains(event.target)) return;
    if (!link || event.pointerType != "touch" || link == shown) return hide();
    event.preventDefault();
    if (!(await show(link))) location.assign(link.href);
  });
  document.addEventListener("keydown", ({ key }) => key == "Escape" && hide());
  for (const event of ["scroll", "resize"]) {
    addEventListener(event, () => card.matches(":popover-open") && place(), { passive: true });
  }
}
