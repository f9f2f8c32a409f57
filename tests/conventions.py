"""How a library is asked the questions of book/conventions.md, each by a call.

A subclass of `Interface` says how its attention is called. The methods that are named in QUESTIONS
return what data/facts/conventions.json gives as the answer.
"""

import numpy as np

from tutorial_lib.records import facts

FACTS = facts("conventions")
CELLS = {cell["name"]: cell for cell in FACTS["cells"]}
VERSIONS = {entry["name"]: entry["version"] for entry in FACTS["interfaces"]}
QUESTIONS = list(dict.fromkeys(name.split(": ")[0] for name in CELLS))
CORNERS = {"top left": np.tri(2, 5, dtype=bool), "bottom right": np.tri(2, 5, 3, dtype=bool)}
LAYOUTS = {"(B, H, T, d)": (0, 1, 2, 3), "(B, T, H, d)": (0, 2, 1, 3)}
WINDOW = 128
CONSTANT_ROWS = {"zeros": 0.0, "the mean of all values": 1 / 5}


def called(interfaces):
    """List the cells of some interfaces that are proved by a call."""
    calls = [name for name, cell in CELLS.items() if cell["source_kind"] == "call"]
    return [name for name in calls if name.split(": ")[1] in interfaces]


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def softmax(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def described_rows(rows):
    """Name what stands in each row of weights, or of outputs whose values are the identity."""
    if np.isnan(rows).all():
        return "NaN"
    [name] = [name for name, value in CONSTANT_ROWS.items() if np.allclose(rows, value, atol=1e-6)]
    return name


def rotary_pairs(rotate):
    """Say which entry of (B, H, T, d) a rotation pairs with entry 0: its neighbour, or half on."""
    one_hot = np.zeros((1, 1, 2, 8), np.float32)
    one_hot[..., 0] = 1
    [partner] = np.flatnonzero(np.abs(rotate(one_hot)[0, 0, 1, 1:]) > 1e-3) + 1
    return {1: "neighbours", 4: "halves"}[int(partner)]


class Interface:
    """Attention without a layer around it; a layer overrides what it does otherwise."""

    layout = (0, 1, 2, 3)  # of the axes (B, H, T, d)
    parameters = frozenset()  # the names that the library gives to its arguments

    def call(self, Q, K, V, **options):
        """Return what the library returns; Q, K and V are in the order of its axes."""
        raise NotImplementedError

    def outputs(self, Q, K, V, **options):
        """Return the outputs, (B, H, T, d), of arrays in this order."""
        arrays = (np.ascontiguousarray(A.transpose(self.layout)) for A in (Q, K, V))
        return np.asarray(self.call(*arrays, **options)).transpose(self.layout)

    def weights(self, T, S, **options):
        """Return the weights of T queries for S keys: the values are the identity."""
        Q, K, V = draw(1, 1, T, S, seed=1), draw(1, 1, S, S, seed=2), np.eye(S, dtype=np.float32)
        return self.outputs(Q, K, V[None, None], **options)[0, 0]

    def has(self, word):
        """Return whether an argument has a word in its name."""
        return any(word in name for name in self.parameters)

    def true(self):
        """What does True mean in a boolean mask?"""
        if not self.has("mask"):
            return "no mask"
        seen = self.weights(3, 5, mask=np.broadcast_to(np.arange(5) == 4, (3, 5))) > 1e-9
        assert (seen[:, :4] == ~seen[:, 4:]).all()
        return "may look" if seen[0, 4] else "may not look"

    def visible(self, mask):
        """Return a mask in the library's sense, of one in which True means: may look."""
        return mask if self.true() == "may look" else ~mask

    def corner(self):
        """To which corner is the causal mask aligned, where there are more keys than queries?"""
        seen = self.weights(2, 5, causal=True) > 1e-9
        [name] = [name for name, mask in CORNERS.items() if (seen == mask).all()]
        return name

    def window(self):
        """How many keys does a window of 128 show, and is the query's own among them?"""
        if not self.has("window"):
            return "no window option"
        [keys] = np.flatnonzero(self.weights(140, 140, window=WINDOW)[139] > 1e-9)[None]
        assert (keys == np.arange(keys[0], 140)).all(), (
            "they are the last ones, the query's own too"
        )
        return f"{len(keys)} keys"

    def empty(self):
        """What does a row return that sees nothing?"""
        mask = np.ones((3, 5), bool)
        mask[1] = False
        return described_rows(self.weights(3, 5, mask=self.visible(mask))[1])

    def scale(self):
        """Where is the scale?"""
        products = draw(1, 1, 3, 5, seed=1)[0, 0] @ draw(1, 1, 5, 5, seed=2)[0, 0].T
        np.testing.assert_allclose(self.weights(3, 5), softmax(products / 5**0.5), atol=1e-5)
        if not self.has("scale"):
            return "1/√d, no option"
        np.testing.assert_allclose(
            self.weights(3, 5, scale=0.3), softmax(0.3 * products), atol=1e-5
        )
        return "`scale=`, else 1/√d"

    def groups(self):
        """Which of two key heads does each of four query heads read?"""
        V = np.broadcast_to(np.arange(2, dtype=np.float32)[:, None, None], (1, 2, 5, 8))
        heads = self.outputs(draw(1, 4, 3, 8), draw(1, 2, 5, 8), np.ascontiguousarray(V))
        return ", ".join(f"{head:.0f}" for head in heads[0, :, 0, 0])

    def rotary(self):
        """Which entries make up a rotary pair?"""
        assert not self.has("rot")
        return "no rotation"

    def axes(self):
        """In which order are the axes of a query?"""
        Q, K, V = draw(2, 3, 4, 8, seed=1), draw(2, 3, 4, 8, seed=2), draw(2, 3, 4, 8, seed=3)
        expected = softmax(Q @ K.swapaxes(-1, -2) / 8**0.5) @ V
        outputs = {
            name: np.asarray(self.call(*(A.transpose(order) for A in (Q, K, V)))).transpose(order)
            for name, order in LAYOUTS.items()
        }
        [name] = [name for name, Y in outputs.items() if np.allclose(Y, expected, atol=1e-5)]
        return name

    def dropout(self):
        """When are weights dropped?"""
        assert not self.has("drop")
        return "no dropout"

    def returns(self):
        """What comes back by default?"""
        Q = draw(2, 3, 4, 8)
        assert np.shape(self.call(Q, Q, Q)) == Q.shape
        return "the output"

    def lengths(self):
        """How is it told where sequences end?"""
        assert not self.has("len")
        assert not self.has("cu_seq")
        return "by a mask"

    def positions(self):
        """How many of five keys does one query see, if the causal option is set?"""
        return f"{(self.weights(1, 5, causal=True) > 1e-9).sum()} of 5 keys"
