"""How soon a page answers: what a reader does, and the work until the browser shows the answer.

It is the largest task of an action in references of `arrival.py`, about the same on any machine.
"""

from tests.site.arrival import do_references, largest_task, recorded

AFTER = 700  # ms that a page is left alone


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
}


def work(browser, page, act) -> float:
    """Return the largest task of an action, in references."""
    with recorded(browser) as events:
        act(page)
        page.wait_for_timeout(AFTER)
        do_references(page)
    return largest_task(events)
