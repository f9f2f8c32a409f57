"""Text ↔ ids of a trained vocabulary: byte-level byte pair encoding, with `re` alone."""

import re
import sys
from functools import cached_property
from itertools import pairwise

import numpy as np

from tutorial_lib.contract import checked_record

# \p{L} is a letter, \p{N} a digit: `[^\W\d_]` and `\d`, which the standard library knows.
WORD_PATTERN = re.compile(r"\d|'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")
VISIBLE_BYTES = (*range(33, 127), *range(161, 173), *range(174, 256))
HIDDEN_BYTES = tuple(byte for byte in range(256) if byte not in VISIBLE_BYTES)
LETTER_OF_BYTE = {byte: chr(byte) for byte in VISIBLE_BYTES}
LETTER_OF_BYTE |= {byte: chr(256 + n) for n, byte in enumerate(HIDDEN_BYTES)}  # Ġ: the blank
BYTE_OF_LETTER = {letter: byte for byte, letter in LETTER_OF_BYTE.items()}


@checked_record(made_by="Take that of real_model().")
class Tokenizer:
    """Cut text into words and each word into tokens, by joining the pair of the earliest merge.

    Introduced in chapter 24. The letters are bytes, so no text is unknown. Special tokens such as
    <|im_start|> are not cut out of a text; take their ids from `ids`.

    Parameters
    ----------
    tokens : the text of each id
    merges : pairs with a blank between them, the earliest first

    Source: the tokenizer of GPT-2, with each digit a token of its own.
    """

    tokens: tuple
    merges: tuple

    @cached_property
    def ids(self):
        """Return the id of each token."""
        return {token: n for n, token in enumerate(self.tokens)}

    @cached_property
    def merge_ranks(self):
        """Return the place of each pair among the merges."""
        pairs = (map(sys.intern, pair.split(" ")) for pair in self.merges)  # those of `tokens`
        return {tuple(pair): n for n, pair in enumerate(pairs)}

    def encode(self, text):
        """Return the ids of a text, (T,)."""
        tokens = [
            token for word in WORD_PATTERN.findall(text) for token in self._merge_into_tokens(word)
        ]
        return np.array([self.ids[token] for token in tokens], dtype=int)

    def decode(self, ids):
        """Return the text of ids, (T,); bytes that are no letter are shown as �."""
        letters = "".join(self.tokens[int(n)] for n in ids)
        return bytes(BYTE_OF_LETTER[letter] for letter in letters).decode(errors="replace")

    def _merge_into_tokens(self, word):
        tokens = [LETTER_OF_BYTE[byte] for byte in word.encode()]
        while len(tokens) > 1:
            ranks = [self.merge_ranks.get(pair, len(self.merge_ranks)) for pair in pairwise(tokens)]
            best_pair = int(np.argmin(ranks))
            if ranks[best_pair] == len(self.merge_ranks):
                break
            tokens[best_pair : best_pair + 2] = [tokens[best_pair] + tokens[best_pair + 1]]
        return tokens
