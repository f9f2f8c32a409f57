"""The page of model cards: a table to compare and to jump, and a card for each entry."""

import math
import re
from html import escape

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from book._ext.content.exhibits import raw
from book._ext.content.models import (
    TOKENS,
    display_context_length,
    faults,
    masks_of,
    max_context_length,
    models_with_card,
    receptive_field_size,
    scaled_for_drawing,
    share,
    sources_of,
    steps,
    variants_of,
    writes,
)
from book._ext.content.variants import every_row
from tools.chapters import FOLDER, pages
from tutorial_lib.counting import cache_entries, layer_kind_counts, layer_kinds, model_cache_bytes
from tutorial_lib.figures.masks import mask_svg
from tutorial_lib.models_card import plot_cache

COMPARED = {1024: "1k", 32_768: "32k", 131_072: "128k"}  # tokens
PARTS = ("growing", "fixed")
DRAWN = ("Llama 2 7B", "Gemma 3 27B", "DeepSeek-V3", "gpt-oss-120b", "Qwen3-Next 80B", "Mistral 7B")
TOLD = (1024, 8192, 32_768, 131_072, 1_048_576)
SCROLLS = "pst-scrollable-table-container cards-table"  # a table that is wider than its card
D_MODEL = "<i>d</i><sub>model</sub>"
PERCENT = "\N{NO-BREAK SPACE}%"
WHOLE = {"full", "latent", "both"}  # layers that look at everything there is
UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")


class CardError(ValueError):
    """An entry of the models is out of form; says which, and what is wrong, in one sentence."""


def slug(model) -> str:
    """Return the address of a card on the page."""
    return re.sub(r"[^a-z0-9]+", "-", model["name"].lower()).strip("-")


def checked() -> list:
    """Return the entries that have a card.

    Raises
    ------
    CardError : one of them is out of form
    """
    for model in models_with_card():
        if told := faults(model):
            raise CardError(f"{model.get('name', 'an entry')} of models.json: {'; '.join(told)}.")
    return models_with_card()


def links(chapters) -> dict[str, str]:
    """Return the way to each variant, {row of the table: link}."""
    found = {}
    for name, (page, (first, *_)) in every_row(chapters).items():
        anchor = re.search(r"\]\((#[^)]+)\)", first)[1]
        found[name] = f"../{FOLDER}{page.name}.ipynb{anchor}"
    return found


def variant_list(model, ways) -> list[str]:
    """Return the variants of a model as a list in Markdown, each a link to where it is built.

    Raises
    ------
    CardError : a variant that is no row of the table
    """
    lines, other = [], model.get("other", {})
    for name, words in variants_of(model).items():
        if name not in ways:
            raise CardError(
                f"{model['name']} of models.json has the variant {name!r}; expected one of "
                f"the rows in the Recaps of Part III: {', '.join(ways)}."
            )
        lines.append(f"- [{name}]({ways[name]}): {words}")
    lines += [f"- {step}: {words} (not built in this book)" for step, words in other.items()]
    if "scale" in model:
        lines.append(f"- score: scaled by {model['scale']}")
    return lines or [
        "No arrow: the layer of [chapter 06](../notebooks/06_output_projection.ipynb)."
    ]


def table(models) -> str:
    """Return the table that compares the models, each name the way to its card."""
    heads = ["model", "year", "arrows", "KV heads", *(f"kB at {n}" for n in COMPARED.values())]
    cells = "".join(f'<th scope="col">{head}</th>' for head in heads)
    rows = "\n".join(_row(model) for model in models)
    return (
        "<p>The last columns say how many kB of cache each token of a text of that length takes, "
        "at 16 bits per number; in italics where the text is longer than any that the "
        "sources name.</p>\n"
        '<p class="cards-filter" hidden><label>Models with <input type="search"></label> '
        f"<output>{len(models)} models</output></p>\n"
        f'<div class="{SCROLLS} cards-all" tabindex="0" role="group" aria-label="All models">\n'
        f"<table><thead><tr>{cells}</tr></thead><tbody>\n{rows}\n</tbody></table></div>"
    )


def _row(model):
    heads = "latent" if "latent" in model else model.get("kv_heads", "none")
    cells = [model["year"], ", ".join(steps(model)) or "none", heads]
    told = "".join(f"<td>{cell}</td>" for cell in cells)
    for tokens in COMPARED:
        pale = ' class="beyond"' * (tokens > (max_context_length(model) or math.inf))
        told += f"<td{pale}>{cache_kb_per_token(model, tokens)}</td>"
    name = f'<a href="#{slug(model)}">{escape(model["name"])}</a>'
    return f'<tr><th scope="row">{name}</th>{told}</tr>'


def cache_kb_per_token(model, tokens) -> str:
    """Return the kB that a model caches per token of such a text; a dash where it cannot."""
    if not writes(model) or tokens > max_learned_positions(model):
        return "–"
    kept = model_cache_bytes(model, tokens) / tokens / 1000
    return f"{kept:,.0f}" if kept >= 100 else f"{kept:.1f}"


def max_learned_positions(model) -> float:
    """Return the tokens beyond which a model has learned no position."""
    positions = model.get("positions", {})
    return positions["max_positions"] if positions.get("kind") == "learned" else math.inf


def head(model) -> str:
    """Return the first line of a card: its year, layers and heads."""
    told = [f"{model['year']}", f"{model['layers']} layers", f"{D_MODEL} {model['d_model']:,}"]
    if "heads" in model:
        told.append(f"{model['heads']} heads of {model['d_k']}")
        if "latent" not in model:
            told.append(kv_heads(model))
        if model["d_v"] != model["d_k"]:
            told.append(f"values of {model['d_v']}")
    if "full" in model:
        full = model["full"]
        told.append(f"in full layers heads of {full['d_k']}, {kv_heads(full)}")
    if "state" in model:
        state = model["state"]
        told.append(f"states: {state['heads']} tables of {state['d_k']} × {state['d_v']}")
    return f'<p class="card-head">{" · ".join(told)}</p>'


def kv_heads(model) -> str:
    """Return how many KV heads there are, in words."""
    return f"{model['kv_heads']} KV head{'s' * (model['kv_heads'] > 1)}"


def _mask_figure(model, kind, count):
    """Return the mask of a kind of layer with its numbers below it."""
    mask, through = masks_of(scaled_for_drawing(model), kind)
    name, drawn = named(model, kind)
    alt = f"{name}: {(mask | through).sum()} of {mask.size} cells of the mask are filled"
    svg = mask_svg(mask, through=through)
    words = f"<b>{count} × {name}</b>{drawn}{_score_share_text(model, kind, mask | through)}"
    return (
        f'<figure><div class="card-mask" role="img" aria-label="{alt}">{svg}</div>'
        f"<figcaption>{words}</figcaption></figure>"
    )


def named(model, kind) -> tuple[str, str]:
    """Return what a kind of layer is called, and how its mask was made small."""
    shrunk, window = scaled_for_drawing(model), f"window of {model.get('window', 0):,}"
    chosen = model.get("chosen", {})
    if kind == "window":
        return window, f", drawn as {shrunk['window']}"
    if kind == "chosen":
        return f"top {chosen['keys']:,} keys", f", drawn as {shrunk['chosen']['keys']}"
    if kind == "pool":
        return f"{window}, pools of {model['pool']}", f", both drawn as {shrunk['pool']}"
    if kind == "chosen pool":
        pools = [
            f"{each['keys']} pools of {each['gathers']} at stride {each['pool']}"
            for each in (chosen, shrunk["chosen"])
        ]
        return f"{window}, top {pools[0]}", f", drawn as {shrunk['window']}, {pools[1]}"
    if kind == "sparse":
        block = model["sparse"]["block"]
        cell = f", a cell is a block of {block}, not a token as in chapter 17" * (block > 1)
        return "sparse", cell or f", its window drawn as {shrunk['sparse']['window']}"
    return {"both": "both ways", "latent": "latent", "state": "state", "full": "full"}[kind], ""


def _score_share_text(model, kind, mask):
    """Say how many pairs a drawn mask has, and which fraction of scores a true layer computes."""
    if kind in WHOLE:
        return ""
    if kind == "state":
        return "<br>no scores: a state holds every earlier token"
    whole = mask.size if kind == "sparse" else TOKENS * (TOKENS + 1) // 2
    length = display_context_length(model)
    part = f"{100 * share(model, kind, length):.2g}{PERCENT} at {length:,} tokens"
    return f"<br>{mask.sum()} of {whole} pairs; {part}"


def size(number) -> str:
    """Write a number of bytes with three digits, in units of a thousand."""
    power = min(int(math.log10(number)) // 3, len(UNITS) - 1)
    return f"{float(f'{number / 1000**power:.3g}'):,g}\N{NO-BREAK SPACE}{UNITS[power]}"


def cache_words(model) -> str:
    """Say how many bytes are cached of each token, of the newest ones, and once."""
    growing, windowed, fixed = (2 * number for number in cache_entries(model))
    parts = [f"{growing:,} bytes of each token"] * bool(growing)
    parts += [f"{windowed:,} of each of the last {model.get('window', 0):,}"] * bool(windowed)
    if fixed:
        parts.append(f"{size(fixed)} once")
    return f"Caches {', '.join(parts)}.{state_words(model, fixed)}"


def state_words(model, fixed) -> str:
    """Say what is stored once beside the states, and the bytes with states of 32 bits."""
    if "state" not in model:
        return ""
    state, layers = model["state"], layer_kind_counts(model)["state"]
    wider = fixed + 2 * layers * state["heads"] * state["d_k"] * state["d_v"]
    rows = state["convolution"] - 1
    return (
        f" What is stored once: states, and the last {rows} inputs of a short convolution; "
        f"{size(wider)} with states of 32 bits."
    )


def reach_words(model) -> str:
    """Say how far a row sees through one period of the layers, and through all.

    Nothing is said where every layer sees everything.
    """
    kinds, period = layer_kinds(model), model["pattern"]
    if set(kinds) <= WHOLE:
        return ""
    name = "one layer" if len(period) == 1 else f"one period of {len(period)} layers"
    first, every = _reach(model, period), _reach(model, kinds)
    if first == every:
        return f'<p class="card-reach">Receptive field: {name}, {first}.</p>'
    words = f"Receptive field: {name}, {first}; all {len(kinds)} layers, {every}."
    return f'<p class="card-reach">{words}</p>'


def _reach(model, kinds):
    tokens = receptive_field_size(model, kinds)
    if tokens is None:
        return "the whole text"
    whole = "the whole text, " if tokens >= display_context_length(model) else ""
    return f"{whole}{tokens:,} tokens"


def numbers(model) -> str:
    """Return what a card draws as tables, and where its entry was read."""
    kinds = "".join(_kind_row(model, kind, n) for kind, n in layer_kind_counts(model).items())
    names = ("layer", "layers", f"fraction of scores at {display_context_length(model):,}")
    tables = _table(names, kinds)
    if writes(model):
        told = [tokens for tokens in TOLD if tokens <= max_learned_positions(model)]
        parts = [name for name, n in zip(PARTS, _growing_fixed_bytes(model, 1), strict=True) if n]
        rows = "".join(_bytes_row(model, tokens) for tokens in told)
        tables += _table(("tokens", "cached", *parts * (len(parts) > 1)), rows)
    made = f", from {model['source_kind'].partition(',')[0]}" if "config" in model else ""
    return (
        f'<details class="card-numbers"><summary>Numbers and sources{made}</summary>'
        f"{tables}<p>{_sources_text(model)}</p></details>"
    )


def _table(names, rows):
    cells = "".join(f'<th scope="col">{name}</th>' for name in names)
    return (
        f'<div class="{SCROLLS}" tabindex="0" role="group" aria-label="{names[0]}"><table>'
        f"<thead><tr>{cells}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _kind_row(model, kind, count):
    part = f"{100 * share(model, kind, display_context_length(model)):.2f}{PERCENT}"
    cells = f"<td>{count}</td><td>{'none' if kind == 'state' else part}</td>"
    return f'<tr><th scope="row">{named(model, kind)[0]}</th>{cells}</tr>'


def _growing_fixed_bytes(model, tokens):
    """Return the bytes that grow with a text, and those of windows and states."""
    growing = 2 * cache_entries(model)[0] * tokens
    return growing, model_cache_bytes(model, tokens) - growing


def _bytes_row(model, tokens):
    parts = [n for n in _growing_fixed_bytes(model, tokens) if n]
    told = [sum(parts), *parts * (len(parts) > 1)]
    cells = "".join(f"<td>{size(n)}</td>" for n in told)
    return f'<tr><th scope="row">{tokens:,}</th>{cells}</tr>'


def _sources_text(model):
    first, *rest = map(_source_link, sources_of(model))
    told = f"Read in {first}: {escape(model['source_kind'])}."
    if model.get("assumed"):
        filled = ", ".join(f"{name} = {value:,}" for name, value in model["assumed"].items())
        told += f" It leaves out what transformers fills in: {filled}."
    told += f" Some fields are from {'; '.join(rest)}." if rest else ""
    note = f" {model['note'][0].upper()}{model['note'][1:]}." if "note" in model else ""
    return told + escape(note)


def _source_link(text):
    """Return the link to a source: its file in a repository at a commit, an issue, or a paper."""
    if text.startswith("arXiv:"):
        number, _, place = text.removeprefix("arXiv:").partition(", ")
        return f'<a href="https://arxiv.org/abs/{number}">arXiv:{number}</a>, {escape(place)}'
    address, _, place = text.partition(" ")
    owner, name, kind, commit, *path = address.removeprefix("https://github.com/").split("/")
    if kind == "issues":
        return f'<a href="{address}">{owner}/{name}, issue {commit}</a>'
    where = f" {escape(place)}" if place else ""
    return f'<a href="{address}">{owner}/{name}, {path[-1]}</a>{where} at {commit[:7]}'


class Cards(SphinxDirective):
    """The directive `model-cards`: a section for each model."""

    def run(self):
        """Return them in a grid; an entry out of form ends the build."""
        chapters = [page for page in pages() if page.has_variants]
        try:
            models, ways = checked(), links(chapters)
            cards = [self.card(model, variant_list(model, ways)) for model in models]
        except ValueError as error:
            raise self.error(str(error)) from None
        return [raw('<div class="cards">'), *cards, raw("</div>")]

    def card(self, model, lines):
        """Return one card as a section, so that it is found, listed and linked as one."""
        section = nodes.section(ids=[slug(model)], names=[slug(model)])
        section += nodes.title(model["name"], model["name"])
        section += raw(head(model))
        section += self.parse_text_to_nodes("\n".join(lines))
        masks = [_mask_figure(model, *kind) for kind in layer_kind_counts(model).items()]
        drawn = [f'<div class="card-masks">{"".join(masks)}</div>', reach_words(model)]
        if writes(model):
            drawn.append(f'<p class="card-kept">{cache_words(model)}</p>')
        else:
            drawn.append('<p class="card-kept">Reads both ways, and keeps nothing.</p>')
        section += raw("".join([*drawn, numbers(model)]))
        return section


class Table(SphinxDirective):
    """The directive `model-table`: all models, a row for each, and some caches as curves."""

    def run(self):
        """Return the table; an entry out of form ends the build."""
        try:
            models = checked()
            drawn = [model for name in DRAWN for model in models if model["name"] == name]
            figure = plot_cache(drawn)._repr_mimebundle_()["text/html"]
            return [raw(table(models)), raw(figure)]
        except CardError as error:
            raise self.error(str(error)) from None
