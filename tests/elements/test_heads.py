"""The board of all heads as bytes: its picture has the weights of the record."""

import re
from base64 import b64decode
from io import BytesIO

import numpy as np
from matplotlib.image import imread

from tutorial_lib.elements.exhibits import head_maps
from tutorial_lib.records import record

ELEMENT = head_maps()
FOUND = record("real_circuits")
T, HEADS = len(FOUND["maps"]["tokens"]), 9


def weights():
    """The weights of the record, (L, H, T, T), NaN where a key is hidden."""
    roots = np.frombuffer(b64decode(FOUND["maps"]["roots"]), np.uint8) / 255
    maps = np.full((len(roots) // (T * (T + 1) // 2 * HEADS), HEADS, T, T), np.nan)
    maps[..., *np.tril_indices(T)] = roots.reshape(*maps.shape[:2], -1) ** 2
    return maps


def test_picture_has_every_weight_as_its_opacity_and_nothing_where_a_key_is_hidden():
    [png] = re.findall(r"base64,([\w+/=]+)\)", ELEMENT.html)
    opacity, maps = imread(BytesIO(b64decode(png)))[..., 3], weights()
    assert opacity.shape == ((T + 1) * len(maps), (T + 1) * HEADS)
    tiles = opacity.reshape(len(maps), T + 1, HEADS, T + 1).swapaxes(1, 2)
    shown = np.nan_to_num(0.1 + 0.9 * maps)
    np.testing.assert_allclose(tiles[..., :T, :T], shown, rtol=0, atol=0.0085)
    assert not tiles[..., T, :].any()
    assert not tiles[..., :, T].any()


def test_text_and_table_name_the_heads_of_each_group():
    rows = re.findall(r'<tr><th scope="row">(.*?)</th><td>.*?</td><td>(.*?)</td>', ELEMENT.html)
    listed = {
        name: ", ".join(f"{x}.{h}" for x, h in g["heads"]) for name, g in FOUND["groups"].items()
    }
    assert dict(rows[-len(listed) :]) == listed
    assert [f"{name}: {heads}" in ELEMENT.text for name, heads in listed.items()] == [True] * 5
    assert ELEMENT.text.startswith("Attention maps, layer 16, head 0\n   When: When 1.00, ")
