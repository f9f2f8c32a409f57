"""Rules of a text that never ends, as a walk from state to state: what a grammar is made with.

An alternative of a rule is its weight and what follows, one after the other; what is no symbol is
a word. `>name` after a word notes its position under that name, `<name` says that the word at the
noted position decides this one. No two alternatives of a rule can begin with one word, so a choice
is made right before the word that shows it, and the chance of that word is that of the choices.
"""

import re

import numpy as np

from tutorial_lib.contract import checked, checked_record, require


@checked_record(made_by="Make one with compile_rules(rules, words).")
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
def parse_alternatives(rule: str) -> list:
    """Return the alternatives of a rule: pairs of a chance and a tuple of what follows."""
    choices = []
    for alternative in rule.split("|"):
        rule_weight, *parts = alternative.split() or [""]
        require(
            parts and re.fullmatch(r"[\d.]*[1-9][\d.]*", rule_weight),
            ValueError,
            f"an alternative of {rule!r} is {alternative.strip()!r}; expected a weight above 0 and "
            f"what follows, since a word shows the choice. Write '1 word'.",
        )
        choices.append((float(rule_weight), tuple(parts)))
    weight_sum = sum(rule_weight for rule_weight, _ in choices)
    return [(rule_weight / weight_sum, parts) for rule_weight, parts in choices]


def _split_symbol_and_marks(part):
    return re.fullmatch(r"(.[^<>]*)(.*)", part).groups()


def _checked_rule(symbol, rule, vocabulary):
    """Return the alternatives of a rule, of known symbols and words."""
    choices = parse_alternatives(rule)
    names = {name for _, parts in choices for name, _ in map(_split_symbol_and_marks, parts)}
    unknown = names - vocabulary
    require(
        not unknown,
        ValueError,
        f"{symbol!r} holds {min(unknown, default='')!r}, which is no symbol and no word; expected "
        f"one of the {len(vocabulary)} that there are. Write it otherwise, or add it.",
    )
    return choices


def _next_word_choices(rules_of, parts, within=()):
    """Yield each continuation: chance, the word, its marks, and the parts after it.

    `rules_of` are the alternatives of each symbol. `within` are the symbols that these parts begin.
    """
    symbol, marks = _split_symbol_and_marks(parts[0])
    if symbol not in rules_of:
        yield 1.0, symbol, marks, parts[1:]
        return
    require(
        symbol not in within,
        ValueError,
        f"{symbol!r} can begin with itself, and so never comes to a word; expected a word before "
        f"it. Put {symbol!r} after a word.",
    )
    first_words = set()
    for chance, (first_part, *other_parts) in rules_of[symbol]:
        inner = _next_word_choices(rules_of, (first_part + marks, *other_parts), (*within, symbol))
        for inner_chance, word, word_marks, next_parts in inner:
            require(
                word not in first_words,
                ValueError,
                f"two alternatives of {symbol!r} can begin with {word!r}; expected that a word "
                f"shows the choice. Let each begin with words of its own.",
            )
            first_words.add(word)
            yield chance * inner_chance, word, word_marks, (*next_parts, *parts[1:])


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
    """
    vocabulary = {*rules, *words}
    choices = {symbol: _checked_rule(symbol, rule, vocabulary) for symbol, rule in rules.items()}
    _checked_rule("the start", f"1 {start}", vocabulary)
    note_names = sorted(set(re.findall(r">(\w+)", " ".join(rules.values()))))
    names, state_numbers, states = (*note_names, ""), {(start,): 0}, []
    for parts in (open_states := [(start,)]):  # grows while it is read
        table_rows = np.zeros((4, len(words)))
        table_rows[2:] = len(note_names)
        for chance, word, marks, next_parts in _next_word_choices(choices, parts):
            require(
                next_parts,
                ValueError,
                f"the text ends after {word!r}; expected one that goes on, to be cut off at "
                f"any length. Let the rule end in {start!r}.",
            )
            if next_parts not in state_numbers:
                state_numbers[next_parts] = len(state_numbers)
                open_states.append(next_parts)
            name_indices = [names.index(name) for name in _decider_and_note_names(marks, names)]
            table_rows[:, words.index(word)] = chance, state_numbers[next_parts], *name_indices
        states.append(table_rows)
    chances, *tables = np.stack(states, axis=1)
    return Grammar(chances, *(table.astype(int) for table in tables), names)


def _decider_and_note_names(marks, names):
    """Return under which name the target of a word is noted, and under which its own position."""
    decider, note = re.fullmatch(r"(?:<(\w+))?(?:>(\w+))?", marks).groups("")
    require(
        decider in names,
        ValueError,
        f"a word is decided by <{decider}, which no word notes; expected one of {names[:-1]}. "
        f"Write >{decider} after the word that decides it.",
    )
    return decider, note
