"""How soon a page answers: what a reader does, and the time until the browser shows the answer.

`measured` is for people: milliseconds with the processor slowed, as the browser itself counts them.
`python -m tests.site.answering [times]` prints the medians for the built site. Tests take `work`,
the largest task of an action in references of `arrival.py`, about the same on any machine.
"""

import statistics
import sys
import threading

from playwright.sync_api import sync_playwright

from tests.site.arrival import do_references, largest_task, recorded
from tests.site.browsing import PREFIX
from tests.site.conftest import _Handler, _Server
from tools.chromium import launch

SLOWER = 4
PHONE = {"width": 390, "height": 844}
WATCH = """window.took = []; new PerformanceObserver((list) =>
  took.push(...list.getEntries().map((entry) => entry.duration))
).observe({type: "event", durationThreshold: 16, buffered: true})"""
LONGEST = "() => Math.max(0, ...took.splice(0))"
BEFORE, AFTER = 300, 700  # ms that a page is left alone


def press(selector):
    """Return the action of pressing the first thing that a selector finds."""
    return lambda page: page.locator(selector).first.click()


def key(*keys):
    """Return the action of pressing keys, where the focus is."""

    def act(page):
        for name in keys:
            page.keyboard.press(name)

    return act


def focus(selector):
    """Return the action of going to the first thing that a selector finds."""
    return lambda page: page.locator(selector).first.focus()


def named(exhibit, name):
    """Return the action of pressing a button of an exhibit."""
    return press(f"tl-{exhibit} button:text-is('{name}')")


# Of the bench, in chapter 03; chapter 08 shows it once more.
BENCH = {
    "bench, all scores": named("bench", "Add 5 to all"),
    "bench, the largest": named("bench", "Subtract the largest score"),
    "(a bar)": focus("tl-bench [tabindex='0']"),
    "bench, a bar": key("ArrowUp"),
}
# Pages, and what is done on each in order; a name in brackets prepares and is not counted.
ACTIONS = {
    "book/intro.html": {
        "map, a cell": press("tl-map td[tabindex]"),
        "map, one more": named("map", "+ 1"),
    },
    "notebooks/02_queries_keys_values.html": {
        "plane, as it was": named("plane", "Reset"),
        "(a query)": focus("tl-plane [tabindex='0']"),
        "plane, a turn": key("ArrowRight"),
    },
    "notebooks/03_attention_weights.html": BENCH,
    "notebooks/04_multi_head_attention.html": {
        "(its fold)": press("details:has(tl-strip) > summary"),
        "strip, a reshape": named("strip", "reshape(3, 2, 4)"),
        "strip, a guess": press("tl-strip td[tabindex]"),
        "strip, a swap": named("strip", "swapaxes(0, 1)"),
    },
    "notebooks/06_output_projection.html": {
        "menu": press(".primary-toggle"),
        "(close)": key("Escape"),
        "contents": press(".secondary-toggle"),
        "(close again)": key("Escape"),
        "search": key("Control+k"),
        "search, a letter": key("s"),
        "(close search)": key("Escape"),
        "quiz, an option": press("tl-quiz input"),
        "quiz, check": press("tl-quiz button"),
        "playground, open": press("#deeper-playground-the-whole-layer-to-change summary"),
        "playground, a cell": press("tl-playground td[tabindex]"),
        "(type)": key("5"),
        "playground, an edit": key("Enter"),
        "sum, a word": named("sum", "that"),
        "sum, a head": named("sum", "Silence head 0"),
        "sum, a swap": named("sum", "Swap only heads"),
    },
    "notebooks/08_gradients.html": {
        "menu": press(".primary-toggle"),
        "(close)": key("Escape"),
    },
    "notebooks/10_masks.html": {
        "paint, a mask": press("tl-paint .tl-gave >> nth=1"),
        "paint, a kind": named("paint", "Padded"),
        "paint, a reading": named("paint", "True means hide"),
        "paint, a cell": press("tl-paint .tl-mask td[tabindex]"),
    },
    "notebooks/12_flash_attention.html": {
        "tiles, an order": named("tiles", "Last keys first"),
        "tiles, the next": named("tiles", "Next tile"),
        "tiles, all": named("tiles", "All the rest"),
    },
    "notebooks/13_tensor_parallelism.html": {
        "(its fold)": press("details:has(tl-tiles) > summary"),
        "ring, a step": named("tiles", "Next step"),
        "ring, all": named("tiles", "All the rest"),
    },
}


def measured(page, act) -> float:
    """Return the longest time, in ms, that an event of an action took until it was answered."""
    page.wait_for_timeout(BEFORE)
    page.evaluate(LONGEST)
    act(page)
    page.wait_for_timeout(AFTER)
    return page.evaluate(LONGEST)


def work(browser, page, act) -> float:
    """Return the largest task of an action, in references."""
    with recorded(browser) as events:
        act(page)
        page.wait_for_timeout(AFTER)
        do_references(page)
    return largest_task(events)


def medians(browser, url, times) -> dict[str, dict[str, float]]:
    """Return the median time of each action on each page, of several visits on a slowed phone."""
    found = {}
    for name, actions in ACTIONS.items():
        taken = {action: [] for action in actions if not action.startswith("(")}
        for _ in range(times):
            page = browser.new_page(viewport=PHONE)
            page.add_init_script(WATCH)
            page.goto(url + name, wait_until="load")
            session = page.context.new_cdp_session(page)
            session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
            for action, act in actions.items():
                taken.setdefault(action, []).append(measured(page, act))
            page.close()
        found[name] = {a: statistics.median(all_) for a, all_ in taken.items() if a[0] != "("}
    return found


def main(times=5):
    """Print the medians."""
    server = _Server(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = launch(playwright)
        found = medians(browser, f"http://127.0.0.1:{server.server_port}{PREFIX}", int(times))
        browser.close()
    for name, actions in found.items():
        print(name)
        for action, time in actions.items():
            print(f"  {time:5.0f} ms  {action}")


if __name__ == "__main__":
    main(*sys.argv[1:])
