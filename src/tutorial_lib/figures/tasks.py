"""Which head does better than a fixed-offset baseline on which task."""

import numpy as np

from tutorial_lib.figures.figure import Figure, require_nonempty_dict, require_plottable
from tutorial_lib.figures.ink import SEQUENTIAL
from tutorial_lib.figures.maps import (
    FIXED,
    colour_bar_svg,
    grid_table,
    grids_svg,
    labelled_grid,
    to_colour_levels,
)

_MAX_NUMBERED_MAPS = 2  # maps that carry their numbers; more are small, to be seen at once


def task_maps(scores, baseline, *, heads, tasks, caption):
    """Draw how well each head does on each task, and frame what beats a fixed offset.

    Parameters
    ----------
    scores : dict of title -> (heads, tasks), from 0 to 1
    baseline : (tasks,) of the best fixed offset, from 0 to 1, or a dict of title -> such an array
    heads : names, or a dict of title -> names
    tasks : names
    caption : what to look for

    Returns
    -------
    figure : Figure; tasks down, heads across, and the fixed offset after them

    Raises
    ------
    TypeError : scores or a baseline that are no arrays of numbers
    ShapeError : other axes, other than one name or one baseline for each
    ValueError : no map, NaN, a score outside 0 to 1
    """
    require_nonempty_dict("scores", scores)
    grids = []
    for title, array in scores.items():
        names = _value_for_map("heads", heads, title), tasks
        grids.append(_score_grid(title, array, _value_for_map("baseline", baseline, title), names))
    colour_levels = [to_colour_levels(grid.numbers, 0, 1) for grid in grids]
    colour_key = colour_bar_svg("score", SEQUENTIAL, (0, 0.5, 1))
    has_numbers = len(grids) <= _MAX_NUMBERED_MAPS
    svg = grids_svg(grids, colour_levels, SEQUENTIAL, written=has_numbers, key=colour_key)
    summaries = " ".join(map(_best_heads_text, grids))
    alt = f"Heat map of scores, framed above the fixed offset. {summaries}"
    return Figure(svg, tuple(map(grid_table, grids)), caption, alt)


def _value_for_map(name, shared_value, title):
    """Return what is given for a map, or for all maps."""
    if not isinstance(shared_value, dict):
        return shared_value
    if title not in shared_value:
        raise ValueError(
            f"{name} has no {title!r}, only {list(shared_value)}; expected one for each map. "
            f"Give it, or the same {name} for all."
        )
    return shared_value[title]


def _score_grid(title, array, baseline, names):
    """Return the scores of one map, tasks down, with the fixed offset after the heads."""
    heads, tasks = map(list, names)
    require_plottable(title, array, "heads tasks", limits=(0, 1), heads=heads, tasks=tasks)
    require_plottable("baseline", baseline, "tasks", limits=(0, 1), tasks=tasks)
    numbers = np.vstack([array, baseline]).T  # (tasks, heads + 1)
    rows, columns = ("", tasks), ("head", [*heads, FIXED])
    grid = labelled_grid(title, numbers, rows=rows, columns=columns)
    return grid._replace(framed=grid.numbers > grid.numbers[:, -1:])


def _best_heads_text(grid):
    """Say of each task which head is best, and whether it is above the baseline."""
    best_heads = grid.numbers[:, :-1].argmax(axis=1)
    task_phrases = [
        f"{task}, best head {grid.columns.entries[head]} with {row_texts[head]}, "
        f"{'above' if frame_flags[head] else 'not above'} the fixed offset with {row_texts[-1]}"
        for task, head, row_texts, frame_flags in zip(
            grid.rows.entries, best_heads, grid.texts, grid.framed, strict=True
        )
    ]
    no_frame_phrase = "" if grid.framed.any() else "no head is framed; "
    return f"{grid.title}: {no_frame_phrase}{'; '.join(task_phrases)}."
