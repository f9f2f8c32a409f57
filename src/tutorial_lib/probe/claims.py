"""What a caller claims: words with one meaning each."""

from tutorial_lib.probe.dependence import Pattern
from tutorial_lib.probe.subject import ProbeError

WORDS = {
    "causal": "True: no token sees a later one; False: all are seen that no other claim hides",
    "window": "how many tokens a token sees, itself counted; None: all; left out: described",
    "sinks": "how many first tokens every later one sees, besides the window",
    "block": "the length of the blocks within which tokens see each other, or None",
    "position": "one of none, relative, absolute",
    "sides": 'the sides of padding that the layer takes, a tuple of "left" and "right"',
    "corner": '"last" or "first": where the causal mask is aligned, if there are fewer queries',
    "key_heads": '"repeated" (0 0 1 1), also where it is left out, or "tiled" (0 1 0 1)',
    "scale": 'the factor of the scores: "1/sqrt(d_k)", "1/d_k" or "1"',
    "row_sum": "the sum of a row of weights, 1; None: described only",
    "bias": '"none"; "nearer": of equal keys nearer ones weigh more; "alibi": with ALiBi slopes',
    "empty_row": '"zero", "mean" or "nan": a row in which everything is hidden',
}
CHOICES = {
    "position": ("none", "relative", "absolute"),
    "corner": ("last", "first"),
    "key_heads": ("repeated", "tiled"),
    "scale": ("1/sqrt(d_k)", "1/d_k", "1"),
    "bias": ("none", "nearer", "alibi"),
    "empty_row": ("zero", "mean", "nan"),
}
NO_LIMIT = ((None, "window"), (None, "block"))
OF_MASKS = ("causal", "window", "sinks", "block")
OF_HIDDEN = (*OF_MASKS, "position", "sides")
OF_FUNCTIONS = (*OF_MASKS, "corner", "key_heads", "scale", "row_sum", "bias", "empty_row")


class Claims(dict):
    """The claims of a call, by word; what is not claimed is absent."""

    @classmethod
    def checked(cls, given, words):
        """Require known words and values.

        Raises
        ------
        ProbeError : an unknown word, a value that it cannot have, or claims that exclude each other
        """
        for word, value in given.items():
            if word not in words:
                known = "\n".join(f"  {word}: {WORDS[word]}" for word in words)
                raise ProbeError(f"nothing can be claimed with {word!r}. Claims here are:\n{known}")
            if not _fits(word, value):
                raise ProbeError(f"{word}={value!r} is no claim; expected {WORDS[word]}.")
        if given.get("window") is not None and given.get("block") is not None:
            raise ProbeError("window= and block= are claimed together; claim the one that holds.")
        return cls(given)

    @property
    def masks(self):
        """The claims about the mask alone."""
        return {word: self[word] for word in OF_MASKS if word in self}

    def pattern(self):
        """Return the whole mask that is claimed, or None where `causal` alone or nothing is."""
        if not {"window", "block"} & set(self) and self.get("causal") is not False:
            return None
        return Pattern(**{"causal": False, **self.masks})


def _fits(word, value):
    """Say whether a word can have a value."""
    if word in CHOICES:
        return value in CHOICES[word]
    if word == "sides":
        return isinstance(value, tuple) and bool(value) and set(value) <= {"left", "right"}
    if word == "row_sum":
        return value in (1, None)
    if isinstance(value, bool) or word == "causal":
        return isinstance(value, bool) and word == "causal"
    least = 0 if word == "sinks" else 1
    return (isinstance(value, int) and value >= least) or (value, word) in NO_LIMIT
