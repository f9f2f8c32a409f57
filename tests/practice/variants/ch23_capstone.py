"""Right answers of chapter 23, written in other ways."""

import numpy as np

from tutorial_lib.models.own_layer import loss_and_gradients


def leak_at_once(layer, X, other):
    """All exchanged sequences side by side."""
    T = X.shape[-2]
    later = np.arange(T) >= np.arange(1, T)[:, None]  # (T - 1, T)
    mixed = [np.where(tokens[:, None], other, X) for tokens in later]
    change = np.abs(np.stack([layer(rows) for rows in mixed], axis=-3) - layer(X)[..., None, :, :])
    return np.where(later, 0, change.max(axis=-1)).max()


def nats_by_the_library(model, documents, layer):
    """The library's forward pass, since a checked layer is the same."""
    loss, _ = loss_and_gradients(model, documents.ids)
    return loss - documents.surprisal.mean()


VARIANTS = [
    ("leak", "all at once", leak_at_once),
    ("nats_above", "the library's layer", nats_by_the_library),
]


NARROW = [
    ("nats_above", "without options", ", **own.options", ""),
]
