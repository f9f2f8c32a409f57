"""How a page arrives: what it weighs, what moves, how long it cannot answer; held to a budget."""

import json
import time
from functools import partial
from pathlib import Path

import yaml

BUDGETS = yaml.safe_load(Path(__file__).with_name("budgets.yml").read_text(encoding="utf-8"))
WATCH = """
  window.moves = [];
  const name = ({node}) => `${node?.nodeName} ${node?.className ?? node?.data ?? ""}`;
  new PerformanceObserver((list) => list.getEntries().forEach(({value, startTime, sources}) =>
    moves.push({value, startTime, what: sources.map(name)})
  )).observe({type: "layout-shift", buffered: true});
  window.tasks = [];
  new PerformanceObserver((list) => list.getEntries().forEach(({duration}) =>
    tasks.push(duration)
  )).observe({type: "longtask", buffered: true});
"""
TASKS = ["-*", "devtools.timeline", "disabled-by-default-devtools.timeline"]
WEIGHT = """() => ["navigation", "resource"].flatMap((type) => performance.getEntriesByType(type))
  .reduce((sum, entry) => sum + entry.transferSize, 0)"""


def arrive(visit, name, width, first=""):
    """Visit a page for the first time.

    Returns
    -------
    page : with `arrival`: its weight in bytes, its layout shifts, its tasks above 50 ms
    """
    page = visit(name, width=width, first=f"{WATCH};{first}")
    page.wait_for_timeout(150)
    page.arrival = page.evaluate(f"() => ({{weight: ({WEIGHT})(), moves, tasks}})")
    return page


def beyond_budget(arrival, *closer) -> list[str]:
    """Say where an arrival is beyond the budget.

    A busy machine stretches what a clock shows: while the tasks look too long, the next of the
    `closer` looks is taken, each a function that returns their times in ms.
    """
    moved = sum(move["value"] for move in arrival["moves"])
    longest = max(arrival["tasks"], default=0)
    for look in closer:
        if longest > BUDGETS["long_task_ms"]:
            longest = max(look(), default=0)
    found = {"first_visit_kb": arrival["weight"] / 1000, "layout_shift": moved}
    found |= {"long_task_ms": longest}
    return [f"{name}: {n:.3f}, {arrival}" for name, n in found.items() if n > BUDGETS[name]]


def closer_looks(browser, visit, name, width):
    """Return two more looks at the tasks of a page: once more by the clock, then as processed."""

    def by_clock():
        page = arrive(visit, name, width)
        page.context.close()
        return page.arrival["tasks"]

    return by_clock, partial(processor_times, browser, visit, name, width)


def processor_times(browser, visit, name, width, first="") -> list[float]:
    """Visit a page and return the processor time of every task of its thread, in ms."""
    time.sleep(0.5)  # Chromium waits ten seconds for a process that ends while tracing begins
    browser.start_tracing(categories=TASKS)
    page = visit(name, width=width, first=first)
    page.wait_for_timeout(150)
    url = page.url
    page.context.close()
    events = json.loads(browser.stop_tracing())["traceEvents"]
    thread = next(
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "ParseHTML" and event["args"]["beginData"]["url"] == url
    )
    return [
        event["tdur"] / 1000
        for event in events
        if event["name"].endswith("RunTask") and (event["pid"], event["tid"]) == thread
        if "tdur" in event
    ]
