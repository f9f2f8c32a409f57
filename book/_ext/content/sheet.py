"""One page to pin up, drawn when the site is built: an SVG of A4 whose facts stand elsewhere.

Arrays are those of the running example, names and shapes are those of *Notation*, formulas those of
the glossary, traps the mistakes that checks name, and bytes are counted from the model cards. All
lengths are in points, and nothing is measured: a text has the room that its letters take at most.
"""

import re
from html import escape
from pathlib import Path
from textwrap import wrap

import numpy as np
from docutils.parsers.rst import Directive

from book._ext.content.cards import cache_kb_per_token
from book._ext.content.exhibits import raw
from book._ext.content.models import MAP, models_with_card
from tools.chapters import ROOT, pages
from tutorial_lib import hunt, multihead
from tutorial_lib.counting import model_cache_bytes
from tutorial_lib.example import running_example
from tutorial_lib.figures.ink import HEAD_COLOURS

FILE, PDF = "book/sheet.svg", "book/sheet.pdf"  # the second is there once `make pdf` has run
WIDTH, HEIGHT, LEFT, TOP = 842, 595, 30, 212  # of A4, its margin, and where the columns begin
SMALL, BODY, CELL = 7.2, 8, 8.5
BLUE, INK, SOFT = HEAD_COLOURS[0], "#1c2733", "#55616e"
SANS = "'Helvetica Neue',Helvetica,Arial,'Liberation Sans',sans-serif"
SERIF = "'Iowan Old Style',Palatino,'Palatino Linotype',P052,'Book Antiqua',Georgia,serif"
MONO = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
BOLD = {"font_family": SERIF, "font_weight": 700, "fill": INK}
CHAPTER = f'font-family="{SANS}" font-weight="400" font-size="{SMALL}" fill="{BLUE}"'
SECOND, THIRD, TRAP_LETTERS = 248, 494, 86  # where columns begin, and the length of lines
STARTS = 30, 154, 302, 438, 574, 716  # where the steps of the map begin
TITLE = "Multi-head attention on one page"
MADE_IN = dict(zip(MAP, ("X", "Q K V", "scores weights", "heads", "concat", "Y"), strict=True))
FORMULAS = ("scaled dot-product attention", "softmax", "project out", "QK circuit", "OV circuit")
FORMULAS += ("roofline", "absorption", "ALiBi", "receptive field", "delta rule")
TRAPS = """
attention_weights softmax_over_queries, attention_weights mask_filled_with_0, causal_mask top_left,
causal_padding_mask padded_queries, scaled_dot_product_attention scale_d_model,
split_heads reshape_without_transpose, concat_heads concat_without_transpose, buffer_mask no_offset,
grouped_attention tiled, rotate layouts_mixed
"""
MODELS = ("Llama 3.1 405B", "Mistral 7B", "Gemma 3 27B", "DeepSeek-V3", "gpt-oss-120b")
MODELS += ("Qwen3-Next 80B",)
TOKENS = 32_768
TEX = {r"\,": " ", r"\ ": " ", r"\top": "T", r"\cdot": "·", r"\times": "×", r"\sqrt": "√"}
TEX |= {r"\sum": "∑", r"\beta": "β", r"\leftarrow": "←", r"\big": "", r"\min": "min", r"\text": ""}
TEX |= {"$": "", "`": "", " - ": " − ", "-inf": "−∞"}
MATHS = re.compile(r"\be\^\d|(?<= )-inf\b| - ")  # of a trap, whose other signs are code
SHIFTS = {"_": 2, "^": -3.5}  # in points
RAISED = re.compile(r"([_^])(?:\{((?:[^{}]|\{[^{}]*\})*)\}|(model|.))")


def text(x, y, words, *, size=BODY, **style) -> str:
    """Return a line of text; `words` is escaped, or holds <tspan>."""
    styled = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in style.items())
    return f'<text x="{x:g}" y="{y:g}" font-size="{size:g}"{styled}>{words}</text>'


def formula(source, level=0) -> str:
    """Return a formula of the glossary, in TeX, code or letters, as the content of a <text>."""
    for name, sign in TEX.items():
        source = source.replace(name, sign)
    parts, last = [], 0
    for found in RAISED.finditer(source):
        shift = SHIFTS[found[1]] * (0.6 if level else 1)
        inner = formula(found[2] or found[3], level + 1)
        parts.append(re.sub("[{}]", "", escape(source[last : found.start()])))
        parts.append(f'<tspan dy="{shift:g}" font-size="{SMALL}">{inner}</tspan>')
        parts.append(f'<tspan dy="{-shift:g}">\N{ZERO WIDTH SPACE}</tspan>')
        last = found.end()
    return "".join([*parts, re.sub("[{}]", "", escape(source[last:]))])


def sentence(words) -> str:
    """Return a line of a trap with its mathematics set, as the content of a <text>."""
    return MATHS.sub(lambda found: formula(found[0]), escape(words))


def chapter(number) -> str:
    """Return the number of a chapter, to stand behind a word."""
    return f'<tspan dx="4" {CHAPTER}>{int(number):02}</tspan>'


def read(name) -> str:
    """Return the text of a page of the book."""
    return (ROOT / "book" / name).read_text(encoding="utf-8")


def names() -> list[tuple]:
    """Return the lengths, arrays and learned matrices of *Notation*, each with what it is."""
    tables = read("notation.md").partition("\n## Lengths")[2].partition("\n## Variants")[0]
    return re.findall(r"^\| `(\w+)` \| ([^|]+?) \|", tables, re.MULTILINE)


def matrix(array, x, y, colours) -> str:
    """Draw a matrix, the stronger a cell the larger its entry; `colours` share its columns."""
    strength = 0.12 + 0.88 * np.abs(array) / np.abs(array).max()
    return "".join(
        f'<rect x="{x + CELL * j:g}" y="{y + CELL * i:g}" width="7.5" height="7.5" rx="1" '
        f'fill="{colours[j * len(colours) // array.shape[1]]}" fill-opacity="{opacity:.2f}"/>'
        for (i, j), opacity in np.ndenumerate(strength)
    )


def matrices(array, name, x) -> str:
    """Draw an array of the trace below its name, the heads below each other."""
    if array.ndim == 3:
        panels = [matrix(a, x, 92 + 31 * h, HEAD_COLOURS[h : h + 1]) for h, a in enumerate(array)]
    else:
        panels = [matrix(array, x, 108, HEAD_COLOURS[:2] if name == "concat" else [INK])]
    return "".join([text(x, 86, name, size=SMALL, fill=SOFT), *panels])


def steps_map() -> str:
    """Draw the six steps in a row, each with the arrays that it makes and their shapes."""
    example = running_example()
    trace = multihead.trace(example.X, example.params, mask=example.mask)
    shapes, parts = dict(names()), []
    for (step, made), start in zip(MADE_IN.items(), STARTS, strict=True):
        number = next(page.number for page in pages() if step in page.steps)
        parts.append(text(start, 72, f"{step}{chapter(number)}", size=11, **BOLD))
        x = start
        for line, name in enumerate(made.split()):
            shape = f"{name} {shapes[name].strip('`')}"
            parts += [
                matrices(getattr(trace, name), name, x),
                text(start, 163 + 9.5 * line, shape, size=SMALL, font_family=MONO),
            ]
            x += max(CELL * getattr(trace, name).shape[-1], 3.6 * len(name)) + 6
        if start != STARTS[0]:
            arrow = f"M{start - 20} 120h11m-4 -3.5l4 3.5l-4 3.5"
            parts.append(f'<path d="{arrow}" fill="none" stroke="{SOFT}"/>')
    return "".join(parts)


def column(place, title, rows, gap) -> str:
    """Draw a column: its head, a rule, and rows of lines, each (words, style), a gap apart."""
    x, y, width = place
    parts = [text(x, y, title, size=12, **{**BOLD, "fill": BLUE})]
    parts.append(f'<path d="M{x} {y + 5}h{width}" stroke="{BLUE}" stroke-width="1.2"/>')
    y += 19 - gap
    for row in rows:
        y += gap
        for n, (words, style) in enumerate(row):
            y += 10 * (n > 0)
            parts.append(text(x, y, words, **style))
    return "".join(parts)


def name_rows():
    """Yield the line of each name, with its shape or with its meaning."""
    for name, meaning in names():
        family = MONO if "`" in meaning else SANS
        shown = f'<tspan x="{LEFT + 44}" font-family="{family}" font-weight="400">'
        shown += f"{meaning.replace('`', '')}</tspan>"
        yield [(name + shown, {"font_family": MONO, "font_weight": 700})]


def formula_rows():
    """Yield the two lines of each formula: its term in the glossary with its chapter, and it."""
    entry = r"\n(?:  .*\n|\n)+?  .*?\*Formula:\* (.+?) · \*Chapter:\* \[(\d\d)\]"
    for term in FORMULAS:
        shown, number = re.search(rf"^{term}{entry}", read("glossary.md"), re.MULTILINE).groups()
        first = f"{term}{chapter(number)}", {"fill": SOFT}
        yield [first, (formula(shown), {"size": 10, "font_family": SERIF})]


def trap_rows():
    """Yield the lines of each trap: what the function does wrong, and how to mend it."""
    for name, chosen in (trap.split() for trap in TRAPS.split(",")):
        mistake = next(m for m in hunt.tasks()[name].mistakes if m.name == chosen)
        head = f'<tspan font-family="{MONO}" font-size="{SMALL}" font-weight="700">{name}</tspan>'
        head += chapter(hunt.chapter_of(name)[:2])
        # A letter of the name is wider than others.
        first, *more = wrap(f"{name}{'x' * (len(name) // 6)} 00 {mistake.says}.", TRAP_LETTERS)
        told = sentence(first.partition(" 00 ")[2])
        lines = [(f'{head}<tspan dx="4">{told}</tspan>', {}), *((sentence(w), {}) for w in more)]
        yield lines + [(sentence(w), {"fill": SOFT}) for w in wrap(mistake.mend, TRAP_LETTERS)]


def cache_rows():
    """Yield the line of each model, behind one that says what the numbers are."""

    def line(name, *numbers, **style):
        ends = zip(numbers, (SECOND + 120, SECOND + 222), strict=True)
        columns = (f'<tspan x="{x}" text-anchor="end">{number}</tspan>' for number, x in ends)
        return [(name + "".join(columns), style)]

    units = "kB per token", f"GB at {TOKENS:,} tokens"
    yield line("16 bits per number", *units, fill=SOFT, size=SMALL)
    for model in (next(m for m in models_with_card() if m["name"] == name) for name in MODELS):
        gigabytes = model_cache_bytes(model, TOKENS) / 1e9
        yield line(model["name"], cache_kb_per_token(model, TOKENS), f"{gigabytes:.1f}")


def sheet(address) -> str:
    """Return the page as SVG; `address` is that of the book."""
    about = f"Blue numbers are chapters of {address}"
    parts = [
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        text(LEFT, 44, TITLE, size=21, **BOLD),
        text(WIDTH - LEFT, 44, about, fill=SOFT, text_anchor="end"),
        steps_map(),
        column((LEFT, TOP, 194), "Names and shapes", name_rows(), 15.8),
        column((SECOND, TOP, 222), "Ten formulas", formula_rows(), 14.4),
        column((SECOND, 483, 222), "Bytes of a cache", cache_rows(), 11.5),
        column((THIRD, TOP, WIDTH - LEFT - THIRD), "Ten traps", trap_rows(), 17),
    ]
    start = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
    start += f'width="297mm" height="210mm" font-family="{SANS}" fill="{INK}" aria-label="{TITLE}">'
    return f"{start}{''.join(parts)}</svg>"


class Sheet(Directive):
    """The directive `sheet`: the page as it is printed, its texts ready to be selected."""

    def run(self):
        """Return the picture."""
        base = self.state.document.settings.env.config.html_baseurl
        return [raw(f'<div class="book-sheet">{sheet(base)}</div>')]


def write_sheet(app, exception):
    """Write the picture as a file beside its page."""
    if exception is None:
        svg = sheet(app.config.html_baseurl)
        (Path(app.outdir) / FILE).write_text(svg, encoding="utf-8")
