// What has an address, such as #exercise-2, is seen where an address leads to it.
{
  // An address that is out of form names nothing.
  const aimOf = (hash) => {
    try {
      return decodeURIComponent(hash.slice(1));
    } catch {
      return "";
    }
  };

  // Not every browser opens the folds in which what it was sent to lies, and none the fold of a
  // section that goes deeper.
  const unfold = () => {
    const aim = document.getElementById(aimOf(location.hash));
    const folds = all(document, "details:not([open])").filter(
      (fold) => fold.contains(aim) || (fold.parentNode == aim && fold.matches(".book-deeper"))
    );
    for (const fold of folds) {
      unwrap(fold);
      fold.open = true;
    }
    if (folds.length) aim.scrollIntoView();
  };
  unfold();
  addEventListener("hashchange", unfold);
  // The address that the page has already is followed again without a change.
  document.addEventListener("click", ({ target }) => {
    const link = target.closest('a[href^="#"]');
    if (link?.hash && link.hash == location.hash) unfold();
  });

  // A cell that runs again draws its figures anew; they keep their numbers. A figure without
  // a caption, of the reader's own, takes none.
  for (const output of all(document, ".cell_output:has(figure[id])")) {
    const numbers = all(output, "figure[id]").map((figure) => [
      figure.id,
      figure.querySelector(".book-number"),
    ]);
    const number = () =>
      all(output, "figure:has(figcaption)").forEach((figure, i) => {
        if (figure.id || !numbers[i]) return;
        figure.id = numbers[i][0];
        figure.querySelector("figcaption").prepend(numbers[i][1], " ");
      });
    new MutationObserver(number).observe(output, { childList: true, subtree: true });
  }
}
