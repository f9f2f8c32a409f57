"""How a page arrives: what it weighs, what moves, how much it does in one go; held to a budget.

How long a page cannot answer depends on the machine, and on what else the machine does. So work is
not measured in seconds but in references: a piece of work that each page does after it has arrived,
on the same thread. Both are processor time, which stands still while another process runs.
"""

import json
import statistics
import time
from contextlib import contextmanager
from pathlib import Path

import yaml

BUDGETS = yaml.safe_load(Path(__file__).with_name("budgets.yml").read_text(encoding="utf-8"))
WATCH = """
  window.moves = [];
  const name = ({node}) => `${node?.nodeName} ${node?.className ?? node?.data ?? ""}`;
  new PerformanceObserver((list) => list.getEntries().forEach(({value, startTime, sources}) =>
    moves.push({value, startTime, what: sources.map(name)})
  )).observe({type: "layout-shift", buffered: true});
"""
# A thousand short paragraphs, read and laid out in a page of their own.
REFERENCE = """function reference() {
  const frame = document.documentElement.appendChild(document.createElement("iframe"));
  const body = frame.contentDocument.body;
  body.innerHTML = "<p>one <b>two</b> <i>three</i> four</p>".repeat(1000);
  window.height = body.offsetHeight;
  frame.remove();
}"""
DO_REFERENCE = f"""() => new Promise((done) => {{
  setTimeout({REFERENCE});
  setTimeout(done);
}})"""
REFERENCES = 5
TASKS = ["-*", "devtools.timeline", "disabled-by-default-devtools.timeline"]
WEIGHT = """() => ["navigation", "resource"].flatMap((type) => performance.getEntriesByType(type))
  .reduce((sum, entry) => sum + entry.transferSize, 0)"""

NODES = "document.querySelectorAll('*').length"


def arrive(browser, visit, name, width, first=""):
    """Visit a page for the first time.

    Returns
    -------
    page : with `arrival`: its weight in bytes, its nodes, its layout shifts, its largest task in
        references
    """
    page = visit(None, width=width, first=f"{WATCH};{first}")
    with recorded(browser) as events:
        page.goto(name)
        page.evaluate("() => document.fonts.ready.then(() => null)")
        page.wait_for_timeout(150)
        page.arrival = page.evaluate(f"() => ({{weight: ({WEIGHT})(), nodes: {NODES}, moves}})")
        do_references(page)
    page.arrival["work"] = largest_task(events)
    return page


@contextmanager
def recorded(browser):
    """Record what the browser does meanwhile, into the list that it yields.

    A page that is opened meanwhile begins a process, for which Chromium waits six seconds at the
    end: have it open before, if only empty.
    """
    events = []
    time.sleep(0.5)  # Chromium waits ten seconds for a process that ends while tracing begins
    browser.start_tracing(categories=TASKS)
    try:
        yield events
    finally:
        events += json.loads(browser.stop_tracing())["traceEvents"]


def do_references(page):
    """Let a page do the work that the rest of its work is measured by."""
    for _ in range(REFERENCES):
        page.evaluate(DO_REFERENCE)


def is_reference(event) -> bool:
    """Whether an event is the whole of a reference."""
    called = event.get("args", {}).get("data", {}).get("functionName")
    return event["name"] == "FunctionCall" and called == "reference"


def largest_task(events) -> float:
    """Return the processor time of the longest task, in references done by the same thread."""
    references = [event for event in events if is_reference(event)]
    assert len(references) == REFERENCES
    [thread] = {(event["pid"], event["tid"]) for event in references}
    own = [event for event in events if (event["pid"], event["tid"]) == thread]
    tasks = [e for e in own if e["name"].endswith("RunTask") and "tdur" in e]
    times = [task["tdur"] for task in tasks if not any(within(r, task) for r in references)]
    assert len(times) > 20
    return max(times) / statistics.median(event["tdur"] for event in references)


def within(event, task) -> bool:
    """Whether an event happened in a task."""
    return task["ts"] <= event["ts"] <= task["ts"] + task["dur"]


def beyond_budget(arrival, *closer) -> list[str]:
    """Say where an arrival is beyond the budget.

    While a task looks too large, the next of the `closer` looks is taken, each a function that
    returns the size of the largest: what a page does, it does each time.
    """
    moved = sum(move["value"] for move in arrival["moves"])
    work = arrival["work"]
    for look in closer:
        if work > BUDGETS["long_task"]:
            work = min(work, look())
    found = {"first_visit_kb": arrival["weight"] / 1000, "nodes": arrival["nodes"]}
    found |= {"layout_shift": moved, "long_task": work}
    return [f"{name}: {n:.3f}, {arrival}" for name, n in found.items() if n > BUDGETS[name]]


def closer_looks(browser, visit, name, width):
    """Return two more looks at the largest task of a page."""

    def look():
        page = arrive(browser, visit, name, width)
        page.context.close()
        return page.arrival["work"]

    return look, look
