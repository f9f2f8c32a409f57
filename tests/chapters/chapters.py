"""What the tests know about the pages: their order, their arrows, their keepers."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

import nbformat

from tests.chapters.pages import REVIEWS

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "notebooks"
LIBRARY = ROOT / "src" / "tutorial_lib"
REPOSITORY = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "urls"
]["Repository"]

STEPS = ("embed", "project", "score", "mix", "concat", "project out")
LAYER = STEPS[1:]  # what a layer does with the X it is given


@dataclass(frozen=True)
class Chapter:
    """The steps that its map lights, and the functions it builds for later chapters."""

    lit: tuple
    keepers: tuple = ()


CHAPTERS = {
    "01_embeddings": Chapter(("embed",), ("embed", "sinusoidal_positions")),
    "02_queries_keys_values": Chapter(("project",), ("project_heads",)),
    "03_attention_weights": Chapter(
        ("score", "mix"),
        ("softmax", "causal_mask", "attention_weights", "scaled_dot_product_attention"),
    ),
    "04_heads": Chapter(("project", "score", "mix"), ("split_heads",)),
    "05_concatenation": Chapter(("concat",), ("concat_heads",)),
    "06_output_projection": Chapter(("project out",), ("trace", "multi_head_attention")),
    "07_vectorised": Chapter(
        LAYER, ("attend_block", "attend_in_blocks", "tiled_multi_head_attention")
    ),
    "08_gradients": Chapter(
        LAYER,
        (
            *("softmax_backward", "sum_copies", "attention_backward", "linear_backward"),
            *("project_heads_backward", "multi_head_attention_backward", "train"),
        ),
    ),
    "09_pytorch": Chapter(LAYER, ("packed_weight",)),
    "10_masks": Chapter(("score", "mix"), ("masked_softmax", "fused_attention", "may_look")),
    "11_gpu": Chapter(LAYER, ("attention_flop", "attention_bytes")),
    "12_flash_attention": Chapter(
        ("score", "mix"),
        (
            *("last_keys", "score_tile", "fold_block", "attend_rows", "flash_forward"),
            *("block_backward", "flash_backward"),
        ),
    ),
    "13_many_devices": Chapter(LAYER, ("shard_params",)),
}
PAGES = {}  # in reading order: a review lights all steps and follows the last of its chapters
for _name, _chapter in CHAPTERS.items():
    PAGES[_name] = _chapter
    PAGES |= {review: Chapter(STEPS) for review, part in REVIEWS.items() if part[-1] == _name}
NAMES = sorted(
    (path.stem for path in NOTEBOOKS.glob("*.ipynb")),
    key=lambda name: list(PAGES).index(name) if name in PAGES else len(PAGES),
)
REQUIRED = tuple(PAGES)[:9]  # Part I and its review
LAST_OF_PART_ONE = 8
HOME = {keeper: name for name, chapter in CHAPTERS.items() for keeper in chapter.keepers}


def number(name):
    """Return the number a chapter's name starts with; a review has that of its last chapter.

    A name without either has the number 0.
    """
    digits = REVIEWS.get(name, [name])[-1].partition("_")[0]
    return int(digits) if digits.isdigit() else 0


def read(path):
    """Read a notebook as it is on disk: nothing is added, upgraded or repaired."""
    return nbformat.v4.reads(Path(path).read_text(encoding="utf-8"))


def written():
    """Return the pages that exist, by name, in order."""
    return {name: read(NOTEBOOKS / f"{name}.ipynb") for name in NAMES}


def code_cells(notebook):
    """Return the code cells in order."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def tags(cell):
    """Return a cell's tags, none when it has none."""
    return cell.metadata.get("tags", [])


def printed(cell):
    """Return what a cell printed or showed as text, in order."""
    texts = []
    for output in cell.get("outputs", []):
        if output.output_type == "stream":
            texts.append(output.text)
        elif "data" in output:
            texts.append(output.data.get("text/plain", ""))
    return "\n".join(texts)


def listed(faults):
    """Return one fault a line, for the message of a failed test."""
    return "\n  ".join(["", *faults])
