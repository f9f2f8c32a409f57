"""tokens → ids: the vocabulary."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Vocabulary:
    """The list of known tokens; a token's id is its index in the list.

    Introduced in chapter 01.

    Parameters
    ----------
    tokens : tuple of str, each once

    Raises
    ------
    TypeError : one string instead of a sequence of tokens, or a token that is not a string
    ValueError : an empty list, or a token that occurs twice
    """

    tokens: tuple

    def __post_init__(self):
        if isinstance(self.tokens, str):
            raise TypeError(
                f"tokens is the string {self.tokens!r}; expected a sequence of tokens. "
                f"Split it first: {self.tokens!r}.split()."
            )
        object.__setattr__(self, "tokens", tuple(self.tokens))
        for token in self.tokens:
            if not isinstance(token, str):
                raise TypeError(
                    f"token {token!r} is a {type(token).__name__}; expected a string. "
                    f"Convert the tokens first: [str(token) for token in tokens]."
                )
        if not self.tokens:
            raise ValueError(
                "the vocabulary is empty; expected at least one token. "
                'Give one or more: Vocabulary(("<pad>", "dogs")).'
            )
        repeats = sorted({token for token in self.tokens if self.tokens.count(token) > 1})
        if repeats:
            raise ValueError(
                f"{repeats} occur in the vocabulary twice; expected each token once. "
                f"Drop the repeats: dict.fromkeys(tokens) keeps the first of each."
            )

    def __len__(self):
        return len(self.tokens)

    def ids(self, tokens):
        """Look up the ids of a sequence of tokens: (T,) integers.

        Raises
        ------
        TypeError : one string instead of a sequence of tokens
        ValueError : an empty sequence, or a token that the vocabulary does not hold
        """
        if isinstance(tokens, str):
            raise TypeError(
                f"tokens is the string {tokens!r}; expected a list of tokens. "
                f"Split it first: {tokens!r}.split()."
            )
        if len(tokens) == 0:
            raise ValueError(
                "tokens is empty; expected at least one token. Give a sentence of one word or more."
            )
        unknown_tokens = [token for token in tokens if token not in self.tokens]
        if unknown_tokens:
            raise ValueError(
                f"token {unknown_tokens[0]!r} is not in the vocabulary {list(self.tokens)}. "
                f"Use one of these, or add it to the vocabulary and a row to E."
            )
        return np.array([self.tokens.index(token) for token in tokens])
