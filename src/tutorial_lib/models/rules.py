"""Rules of a text that never ends, as a walk from state to state: what a grammar is made with.

An alternative of a rule is its weight and what follows, one after the other; what is no symbol is
a word. `>name` after a word notes its position under that name, `<name` says that the word at the
noted position decides this one. No two alternatives of a rule can begin with one word, so a choice
is made right before the word that shows it, and the chance of that word is that of the choices.
"""

import re

import numpy as np

from tutorial_lib.contract import checked, record


@record(made_by="Make one with compile_rules(rules, words).")
class Grammar:
    """Where a text can be, and how it goes on: a state is all that is still to come of a sentence.

    Introduced in chapter 19.

    Parameters
    ----------
    chances : of the next word; a text begins in state 0
    follows : the state after it
    decides, notes : which of `names` gives the position of the word that decides it, and under
        which its own is noted
    names : the last of them "" for none
    """

    chances: "states words"
    follows: "int states words"
    decides: "int states words"
    notes: "int states words"
    names: tuple


@checked
def alternatives(rule: str) -> list:
    """Return the alternatives of a rule: pairs of a chance and a tuple of what follows."""
    pairs = [alternative.split() for alternative in rule.split("|")]
    total = sum(float(weight) for weight, *_ in pairs)
    return [(float(weight) / total, tuple(parts)) for weight, *parts in pairs]


def _split(part):
    """Return a part's symbol or word, and its marks."""
    return re.fullmatch(r"(.[^<>]*)(.*)", part).groups()


def _begin(rules, parts):
    """Yield each continuation: chance, the word, its marks, and the parts after it."""
    symbol, marks = _split(parts[0])
    if symbol not in rules:
        yield 1.0, symbol, marks, parts[1:]
        return
    for chance, (first, *others) in alternatives(rules[symbol]):
        for inner, *found, rest in _begin(rules, (first + marks, *others)):
            yield chance * inner, *found, (*rest, *parts[1:])


def require_words(rules, words):
    """Require that each alternative is a weight above 0, followed by symbols and words."""
    for symbol, rule in rules.items():
        for alternative in rule.split("|"):
            weight, *parts = alternative.split() or [""]
            if not parts or not re.fullmatch(r"[\d.]*[1-9][\d.]*", weight):
                raise ValueError(
                    f"an alternative of {symbol!r} is {alternative.strip()!r}; expected a weight "
                    f"above 0 and what follows, since a word shows the choice. Write '1 word'."
                )
            unknown = {name for name, _ in map(_split, parts)} - {*rules, *words}
            if unknown:
                raise ValueError(
                    f"{symbol!r} holds {min(unknown)!r}, which is no symbol and no word; expected "
                    f"one of the rules or of the {len(words)} words. Write it otherwise, or add it."
                )


def require_progress(rules):
    """Require that no symbol can begin with itself, so that each comes to a word."""
    firsts = {s: {_split(p[0])[0] for _, p in alternatives(rule)} for s, rule in rules.items()}
    for symbol, reached in firsts.items():
        found, waiting = set(), set(reached)
        while waiting := waiting - found:
            found |= waiting
            waiting = set().union(*(firsts.get(name, ()) for name in waiting))
        if symbol in found:
            raise ValueError(
                f"{symbol!r} can begin with itself, and so never comes to a word; expected a word "
                f"before it. Put {symbol!r} after a word."
            )


def require_unambiguous(rules):
    """Require that no two alternatives of a rule can begin with one word."""
    for symbol, rule in rules.items():
        seen = set()
        for _, parts in alternatives(rule):
            words = {word for _, word, *_ in _begin(rules, parts)}
            if seen & words:
                raise ValueError(
                    f"two alternatives of {symbol!r} can begin with {min(seen & words)!r}; expected"
                    f" that a word shows the choice. Let each begin with words of its own."
                )
            seen |= words


@checked
def compile_rules(rules: dict, words: list[str], *, start: str = "text") -> Grammar:
    """Turn rules into the walk that they describe.

    Introduced in chapter 19.

    Parameters
    ----------
    rules : dict of symbol -> alternatives, such as "3 the dog end | 1 dogs sleep text"
    words : the vocabulary, in the order of its ids
    start : the symbol that a text begins with

    Raises
    ------
    ValueError : two alternatives of a rule can begin with one word; an alternative has no weight
        or no word, or a word that is not in `words`; a symbol begins with itself; a text ends

    >>> rules = {"text": "3 the dog end | 1 dogs sleep text", "end": "1 sleeps text | 1 barks text"}
    >>> compile_rules(rules, ("the", "dog", "dogs", "sleep", "sleeps", "barks")).chances.shape
    (4, 6)
    """
    require_words(rules | {"the start": f"1 {start}"}, words)
    require_progress(rules)
    require_unambiguous(rules)
    noted = sorted(set(re.findall(r">(\w+)", " ".join(rules.values()))))
    names, number, rows = (*noted, ""), {(start,): 0}, []
    for parts in (waiting := [(start,)]):  # grows while it is read
        row = np.zeros((4, len(words)))
        row[2:] = len(noted)
        for chance, word, marks, rest in _begin(rules, parts):
            if not rest:
                raise ValueError(
                    f"the text ends after {word!r}; expected one that goes on, to be cut off at "
                    f"any length. Let the rule end in {start!r}."
                )
            if rest not in number:
                number[rest] = len(number)
                waiting.append(rest)
            noting = [names.index(name) for name in _marks(marks, names)]
            row[:, words.index(word)] = chance, number[rest], *noting
        rows.append(row)
    chances, *tables = np.stack(rows, axis=1)
    return Grammar(chances, *(table.astype(int) for table in tables), names)


def _marks(marks, names):
    """Return under which name the target of a word is noted, and under which its own position."""
    read, noted = re.fullmatch(r"(?:<(\w+))?(?:>(\w+))?", marks).groups("")
    if read not in names:
        raise ValueError(
            f"a word is decided by <{read}, which no word notes; expected one of {names[:-1]}. "
            f"Write >{read} after the word that decides it."
        )
    return read, noted
