"""Right answers of chapter 23, written in other ways."""

from tutorial_lib.models.own_layer import loss_and_gradients


def nats_by_the_library(model, documents, layer):
    """The library's forward pass, since a checked layer is the same."""
    loss, _ = loss_and_gradients(model, documents.ids)
    return loss - documents.surprisal.mean()


VARIANTS = [
    ("nats_above", "the library's layer", nats_by_the_library),
]


NARROW = [
    ("nats_above", "without options", ", **own.options", ""),
]
