"""Draw the pictures of the site into book/_static: `python book/_ext/theme/pictures.py`.

The map shows the running example itself: every cell is a number of its trace, stronger where the
number is larger, sign aside. A test draws it again and compares.
"""

import shutil
from pathlib import Path

import numpy as np

from tutorial_lib import multihead
from tutorial_lib.example import running_example

STATIC = Path(__file__).resolve().parents[2] / "_static"
HEADS = ("a", "b")
PITCH = 13
MIDDLE, LANES = 226, (60, 238)

STYLE = """\
text{font-family:system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif}
.m{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
.card{fill:#fff;stroke:#d5dbe1}.ink{fill:#1c2733}.soft{fill:#55616e}
.a{fill:#2861a8}.b{fill:#b52f5b}.off{fill:none;stroke:#b4bdc7;stroke-dasharray:1.5 1.5}
.l{fill:none;stroke-width:1.6;stroke-linecap:round}
.la{stroke:#2861a8}.lb{stroke:#b52f5b}.li{stroke:#7b8794}
"""
DARK = """\
@media (prefers-color-scheme:dark){.card{fill:#161b22;stroke:#30363d}.ink{fill:#e6edf3}
.soft{fill:#a3afbb}.a{fill:#6ea6ee}.b{fill:#ef7fa5}.off{stroke:#4d5865}
.la{stroke:#6ea6ee}.lb{stroke:#ef7fa5}.li{stroke:#8b98a5}}
"""
CELL = '<defs><rect id="c" width="11.5" height="11.5" rx="2"/></defs>'
STEPS = (
    (124, "embed", "X = E[ids] + P", "X (T, d_model)"),
    (275, "project", "X @ W_Q, W_K, W_V", "Q (H, T, d_k)", "K (H, S, d_k)", "V (H, S, d_v)"),
    (424, "score", "softmax(QKᵀ/√d_k)", "weights (H, T, S)"),
    (564, "mix", "weights @ V", "heads (H, T, d_v)"),
    (709, "concat", "side by side", "concat (T, H*d_v)"),
    (877, "project out", "concat @ W_O", "Y (T, d_model)"),
)


def cells(array, x, y, colour, *, mask=None):
    """Draw a matrix as cells from (x, y): stronger is larger; hollow where the mask forbids."""
    lines = []
    for row, column in np.ndindex(array.shape):
        hidden = mask is not None and not mask[row, column]
        shade = f'fill-opacity="{0.09 + 0.91 * array[row, column]:.2f}"'
        look = 'class="off"' if hidden else shade
        place = f'x="{x + column * PITCH:g}" y="{y + row * PITCH:g}"'
        lines.append(f'<use href="#c" {place} {look}/>')
    return f'<g class="{colour}">' + "".join(lines) + "</g>"


def text(place, words, style, size, **look):
    """Place a line of text; `look` may name its anchor and its weight."""
    x, y = place
    anchor, weight = look.get("anchor", "middle"), look.get("weight", 400)
    look = f'class="{style}" font-size="{size}" font-weight="{weight}" text-anchor="{anchor}"'
    return f'<text x="{x}" y="{y}" {look}>{words}</text>'


def line(start, end, colour, *, bend=0.5):
    """Draw a smooth line from left to right, with an arrowhead."""
    (x0, y0), (x1, y1) = start, end
    dx = (x1 - x0) * bend
    path = f"M{x0:g} {y0:g}C{x0 + dx:g} {y0:g} {x1 - dx:g} {y1:g} {x1:g} {y1:g}"
    head = f"M{x1 - 5:g} {y1 - 3.5:g}L{x1:g} {y1:g}L{x1 - 5:g} {y1 + 3.5:g}"
    return f'<path class="l l{colour}" d="{path}{head}"/>'


def drop(start, end, colour):
    """Draw a line that leaves to the right and arrives from above or below."""
    (x0, y0), (x1, y1) = start, end
    side = 1 if y1 > y0 else -1
    head = f"M{x1 - 3.5:g} {y1 - 5 * side:g}L{x1:g} {y1:g}L{x1 + 3.5:g} {y1 - 5 * side:g}"
    return f'<path class="l l{colour}" d="M{x0:g} {y0:g}Q{x1:g} {y0:g} {x1:g} {y1:g}{head}"/>'


def lane(shown, head, mask):
    """Draw one head: its Q, K, V, its weights and its output."""
    colour, top = HEADS[head], LANES[head]
    middles = [top + 29.5 + 48 * i for i in range(3)]
    band = f'x="196" y="{top}" width="440" height="154" rx="12" fill-opacity="0.07"'
    parts = [f'<rect {band} class="{colour}"/>']
    for name, y in zip("QKV", middles, strict=True):
        parts.append(line((182, MIDDLE), (224, y), colour))
        parts.append(text((236, y + 5), name, colour, 15, weight=600))
        parts.append(cells(shown[name][head], 249, y - 19, colour))
    weights_y, heads_y = (middles[0] + middles[1]) / 2, (middles[1] + middles[2]) / 2
    for y in middles[:2]:
        parts.append(line((307, y), (398, weights_y), colour))
    parts.append(cells(shown["weights"][head], 404.5, weights_y - 19, colour, mask=mask))
    parts.append(line((450, weights_y), (532, heads_y), colour))
    parts.append(line((307, middles[2]), (532, heads_y), colour))
    parts.append(cells(shown["heads"][head], 538, heads_y - 19, colour))
    parts.append(text((564, heads_y - 30), f"head {head}", colour, 14, weight=600))
    landing = (683, MIDDLE - 26) if head == 0 else (735, MIDDLE + 26)
    parts.append(drop((597, heads_y), landing, colour))
    return "\n".join(parts)


def flow():
    """Draw the six arrays of the running example and what joins them."""
    example = running_example()
    steps = multihead.trace(example.X, example.params, mask=example.mask)
    names = ("X", "Q", "K", "V", "weights", "heads", "concat", "Y")
    shown = {name: np.abs(getattr(steps, name)) for name in names}
    shown = {name: array / array.max() for name, array in shown.items()}
    top = MIDDLE - 19
    parts = [lane(shown, head, example.mask) for head in (0, 1)]
    parts.append(cells(shown["X"], 72, top, "ink"))
    parts.append(cells(shown["concat"][:, :4], 657, top, "a"))
    parts.append(cells(shown["concat"][:, 4:], 709, top, "b"))
    parts.append(line((767, MIDDLE), (819, MIDDLE), "i"))
    parts.append(cells(shown["Y"], 825, top, "ink"))
    for row, token in enumerate(example.tokens):
        y = top + 10 + row * PITCH
        parts.append(text((64, y), token, "soft", 13, anchor="end"))
        parts.append(text((936, y), token, "soft", 13, anchor="start"))
    return "\n".join(parts)


def draw_map() -> str:
    """Return the map of the book: six steps, their arrays and their shapes."""
    parts = [flow()]
    for x, name, formula, *shapes in STEPS:
        parts.append(text((x, 38), name, "ink", 18, weight=700))
        parts.append(text((x, 424), formula, "ink m", 12.5))
        parts += [text((x, 448 + 18 * i), shape, "soft m", 12) for i, shape in enumerate(shapes)]
    title = "The six steps of multi-head attention"
    description = (
        "Embed gives X, a row for each of the tokens dogs, that, bark. Project gives each of two "
        "heads its own Q, K and V. Score compares Q with K and gives each head a triangle of "
        "weights. Mix multiplies weights and V. Concat lays the two heads side by side. Project "
        "out gives Y, again a row for each token. A stronger cell is a larger number of the "
        "running example, sign aside; a dashed one is masked."
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 508" role="img" '
        'aria-labelledby="t d">\n'
        f'<title id="t">{title}</title>\n<desc id="d">{description}</desc>\n'
        f"<style>\n{STYLE}{DARK}</style>\n{CELL}\n"
        '<rect class="card" x=".5" y=".5" width="999" height="507" rx="14"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def draw_social() -> str:
    """Return the picture that a shared link shows: the book's name over the flow."""
    serif = 'font-family="P052, Palatino, Georgia, serif" style="font-family:P052,Palatino,serif"'
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1200 630" width="1200" '
        f'height="630">\n<style>\n{STYLE}</style>\n{CELL}\n'
        '<rect width="1200" height="630" fill="#fff"/>\n'
        f'<text x="72" y="118" class="ink" font-size="76" font-weight="700" {serif}>'
        "Attention, Head by Head</text>\n"
        + text(
            (74, 170), "Multi-head attention, built by hand in NumPy.", "soft", 30, anchor="start"
        )
        + '\n<g transform="translate(30 146) scale(1.15)">\n'
        + flow()
        + "\n</g>\n</svg>\n"
    )


def draw_logo() -> str:
    """Return the mark: a causal triangle of weights, one colour for each look back."""
    colours = ("#2861a8", "#b52f5b", "#1f7a3d")
    squares = [
        f'<rect x="{2 + 21 * c}" y="{2 + 21 * r}" width="18" height="18" rx="4" '
        f'fill="{colours[r - c]}"/>'
        for r in range(3)
        for c in range(r + 1)
    ]
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64">\n'
        "<title>Attention, Head by Head</title>\n" + "\n".join(squares) + "\n</svg>\n"
    )


PICTURES = {
    "map.svg": draw_map,
    "social.svg": draw_social,
    "logo.svg": draw_logo,
    "favicon.svg": draw_logo,
}


def main():
    """Write the SVG files, then those that must be pixels, through Chromium."""
    for name, draw in PICTURES.items():
        (STATIC / name).write_text(draw(), encoding="utf-8")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--headless", "--no-sandbox"]
        )
        for name, size in (("social", (1200, 630)), ("favicon", (64, 64))):
            page = browser.new_page(viewport=dict(zip(("width", "height"), size, strict=True)))
            svg = (STATIC / f"{name}.svg").read_text(encoding="utf-8")
            page.set_content(f"<style>body{{margin:0}}svg{{display:block}}</style>{svg}")
            page.screenshot(path=STATIC / f"{name}.png", omit_background=True)
        browser.close()


if __name__ == "__main__":
    main()
