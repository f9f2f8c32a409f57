"""The map of the six steps as both map and playground draw it."""

STEPS = ("embed", "project", "score", "mix", "concat", "project out")
_MADE_IN = {  # what each step makes, as it is written beside the map, and the arrays
    "embed": ("word + position", ("X",)),
    "project": ("X W<sub>Q</sub>, X W<sub>K</sub>, X W<sub>V</sub>", ("Q", "K", "V")),
    "score": ("softmax(Q Kᵀ / √d<sub>k</sub>)", ("scores", "weights")),
    "mix": ("weights V", ("heads",)),
    "concat": ("side by side", ("concat",)),
    "project out": ("concat W<sub>O</sub>", ("Y",)),
}
_ROWS = (("embed",), ("project",), ("score", "mix"), ("concat", "project out"))
_WIRES = '<svg aria-hidden="true"></svg>'  # its script draws there
_PANEL = ("Q", "K", "V", "scores", "weights", "heads")


def draw_board(arrays, *, steps=(), links=None, beside=""):
    """Draw X, a panel for each head, concat and Y, with the steps that make them.

    Parameters
    ----------
    arrays : Arrays
    steps : names of the steps whose arrays are lit; none lights all
    links : {step: the address of its chapter}
    beside : HTML that stands beside X
    """
    lit = {name for step in steps or STEPS for name in _MADE_IN[step][1]}

    def tints(name, head=0):
        return arrays.tints(name, head, dim=name not in lit)

    panels = [
        f'<div class="tl-panel tl-head-{h}"><b>head {h}</b>'
        f"{''.join(tints(name, h) for name in _PANEL)}</div>"
        for h in range(len(arrays.matrices["Q"]))
    ]
    first, *between, last = (_step_labels(row, steps, links or {}) for row in _ROWS)
    ends = f'<div class="tl-ends">{tints("concat")}{tints("Y")}</div>'
    start = f'<div class="tl-start">{tints("X")}{beside}</div>'
    parts = [first, start, *between, *panels, last, ends]
    return f'<div class="tl-board" {arrays.given()}>' + "\n".join(parts) + f"{_WIRES}</div>"


def _step_labels(steps_in_row, lit_steps, chapter_links):
    texts = []
    for step in steps_in_row:
        name = f'<a href="{chapter_links[step]}">{step}</a>' if step in chapter_links else step
        name = f"<strong>{name}</strong>" if step in lit_steps else name
        texts.append(f"<span>{name} <small>{_MADE_IN[step][0]}</small></span>")
    return f'<p class="tl-steps">{"".join(texts)}</p>'
