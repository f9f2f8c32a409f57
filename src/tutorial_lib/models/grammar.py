"""A text with known targets: a hundred words, and rules that say which word decides which.

`models/rules.py` explains what the rules mean. They cannot express one thing: a given name takes a
surname when it first appears, and keeps it to the end of the document.
"""

import numpy as np

from tutorial_lib.contract import checked, checked_record, require
from tutorial_lib.errors import require_ids
from tutorial_lib.models.rules import Grammar, compile_rules
from tutorial_lib.models.words import CLASSES, WORDS

LENGTH = 64  # words of a document, after <bos>
DEPTH = 3  # of brackets within brackets
ID = {word: i for i, word in enumerate(WORDS)}
TASKS = ("agreement", "inside clause", "across clause", "across aside", "attractor", "reflexive")
TASKS += ("pronoun", "bracket", "outer bracket", "surname")


def _word_mask(*classes):
    """Return for each word whether it is one of these words, or of these classes."""
    return np.isin(WORDS, " ".join(CLASSES.get(name, name) for name in classes).split())


VERB, GIVEN = _word_mask("rest:s", "rest:p", "act:s", "act:p"), _word_mask("given:f", "given:m")
CLOSING, SURNAME = _word_mask(")", "]"), _word_mask("surname")
FORMS = np.arange(len(WORDS))  # words of one number are forms of one set: a single one is right
FORMS[_word_mask("rest:p", "act:p")] = FORMS[_word_mask("rest:s", "act:s")]
for _form_set in (CLOSING, SURNAME, _word_mask("pronoun"), _word_mask("reflexive")):
    FORMS[_form_set] = FORMS[_form_set][0]


@checked
def sentence(rng: np.random.Generator) -> list:
    """Sample the words of one sentence by the smallest part of the rules, of three choices at most.

    Built in chapter 19.

    >>> " ".join(sentence(np.random.default_rng(0)))
    'the dog that the cats see barks .'
    """
    plural = rng.random() < 1 / 2
    words = ["the", "dogs" if plural else "dog"]
    if rng.random() < 1 / 2:
        cats = rng.random() < 1 / 2
        words += ["that", "the", *(["cats", "see"] if cats else ["cat", "sees"])]
    return [*words, "bark" if plural else "barks", "."]


def rules():
    """Return the grammar, symbol -> alternatives, where each part that is no symbol is a word.

    A kind is s, p, f or m: what `it`, `they`, `she` and `he` stand for.
    """
    symbols = {name: " | ".join(f"1 {w}" for w in words.split()) for name, words in CLASSES.items()}
    symbols["text"] = "3 the head | 1 called:f | 1 called:m"
    symbols["head"] = "1 noun:s>subject more:s | 1 noun:p>subject more:p"
    symbols["inner"] = "1 noun:s>clause act:s<clause | 1 noun:p>clause act:p<clause"
    symbols["object"] = "1 the other | 1 given:f surname | 1 given:m surname"
    symbols["other"] = "1 noun:s | 1 noun:p"
    symbols |= {f"called:{kind}": f"1 given:{kind}>subject surname aside:{kind}" for kind in "fm"}
    words = CLASSES["pronoun"].split(), CLASSES["reflexive"].split()
    for kind, pronoun, reflexive in zip("spfm", *words, strict=True):
        verb_end, end = "p<subject" if kind == "p" else "s<subject", f". next:{kind}"
        aside, clause = f"aside:{kind}", f"{pronoun}<subject>subject do:{kind}"
        symbols[f"next:{kind}"] = f"6 the head | 3 called:f | 3 called:m | 4 {clause}"
        symbols[f"more:{kind}"] = f"1 {aside} | 1 that clause:{kind} {aside}"
        symbols[f"clause:{kind}"] = f"1 rest:{verb_end} | 1 act:{verb_end} the other | 1 the inner"
        symbols[aside] = f"2 do:{kind} | 1 round:1 do:{kind} | 1 square:1 do:{kind}"
        symbols[f"do:{kind}"] = f"1 rest:{verb_end} {end} | 1 act:{verb_end} whom:{kind} {end}"
        symbols[f"whom:{kind}"] = f"2 object | 1 {reflexive}<subject"
    for depth in range(1, DEPTH + 1):
        for shape, opening, closing in (("round", "(", ")"), ("square", "[", "]")):
            end, deeper = f"{closing}<bracket{depth}", depth + 1
            nesting = f" | 1 round:{deeper} {end} | 1 square:{deeper} {end}" * (depth < DEPTH)
            symbols[f"{shape}:{depth}"] = f"1 {opening}>bracket{depth} adverb {shape}-end:{depth}"
            symbols[f"{shape}-end:{depth}"] = f"4 {end}{nesting}"
    return symbols


GRAMMAR = compile_rules(rules(), WORDS)


@checked_record(made_by="Sample some with sample_documents(rng, n).")
class Documents:
    """Documents with surprisals and targets; position t of these is about the word ids[:, t + 1].

    Introduced in chapter 19.

    Parameters
    ----------
    ids : each document begins with <bos>, so there are length + 1 tokens
    surprisal : nats of the choices between the word before and this one
    task : which of TASKS the word is, -1 for none
    decided_by : the position in ids of the word that decides it, -1 for none; for a surname the
        last position where it occurred
    """

    ids: "int n tokens"
    surprisal: "any n length"
    task: "int n length"
    decided_by: "int n length" = None

    def target_of(self, task):
        """Return the target position of each query, (n, length), -1 for none.

        It is the position of the word that decides the next word, where that is of this task.

        Raises
        ------
        ValueError : no such task
        """
        message = f"task is {task!r}; expected one of {TASKS}. Choose one of them."
        require(task in TASKS, ValueError, message)
        return np.where(self.task == TASKS.index(task), self.decided_by, -1)


def _build_documents_word_by_word(next_word, n, length, grammar):
    """Make documents word by word; `next_word` gets t and the chances (n, words)."""
    batch, state = np.arange(n), np.zeros(n, dtype=int)
    ids, surprisal = np.zeros((n, length + 1), dtype=int), np.zeros((n, length))
    decided_by, noted = np.full((n, length), -1), np.full((n, len(grammar.names)), -1)
    surname_at = np.full((n, len(WORDS)), -1)  # given name -> where its surname occurred last
    for t in range(length):
        word_chances, last_words = grammar.chances[state], ids[:, t]
        surname = surname_at[batch, last_words]
        is_repeat = surname >= 0
        word_chances[is_repeat] = np.eye(len(WORDS))[ids[is_repeat, surname[is_repeat]]]
        word = ids[:, t + 1] = next_word(t, word_chances)
        surprisal[:, t] = -np.log(word_chances[batch, word])
        decided_by[:, t] = np.where(is_repeat, surname, noted[batch, grammar.decides[state, word]])
        noted[batch, grammar.notes[state, word]] = t + 1
        noted[:, -1] = -1
        surname_at[batch[SURNAME[word]], last_words[SURNAME[word]]] = t + 1
        state = grammar.follows[state, word]
    return Documents(ids, np.abs(surprisal), _task_of_each_word(ids, decided_by), decided_by)


def _task_of_each_word(ids, decided_by):
    """Return which of TASKS each word is, from the words between it and its target."""
    documents, word = np.arange(len(ids))[:, None], ids[:, 1:]
    verb, closing, is_that = VERB[word], CLOSING[word], _word_mask("that")

    def count_since(word_flags):
        running_count = np.pad(np.cumsum(word_flags[ids], axis=1), ((0, 0), (1, 0)))
        return running_count[:, 1:-1] - running_count[documents, decided_by + 1]

    plural = _word_mask("noun:p", "they")[ids[documents, decided_by]]
    nested, n_singular = count_since(CLOSING) > 0, count_since(_word_mask("noun:s") | GIVEN)
    n_attractors = np.where(plural, n_singular, count_since(_word_mask("noun:p")))
    is_next = decided_by == np.arange(ids.shape[1] - 1)
    lagged = np.pad(ids, ((0, 0), (2, 0)))[:, :-3]  # the word before the last
    cases = [verb & (is_that[ids[:, :-1]] | is_that[lagged] & is_next), verb & (n_attractors > 0)]
    cases += [verb & (count_since(is_that) > 0), verb & nested, verb, closing & nested, closing]
    cases += [SURNAME[word], _word_mask("reflexive")[word], _word_mask("pronoun")[word]]
    return np.where(decided_by >= 0, np.select(cases, [1, 4, 2, 3, 0, 8, 7, 9, 5, 6]), -1)


@checked
def sample_documents(
    rng: np.random.Generator, n: "length", *, length: "length" = LENGTH, grammar: Grammar = GRAMMAR
) -> Documents:
    """Sample documents, each of which begins with <bos> and is cut off after `length` words.

    Introduced in chapter 19. The words of the grammar are WORDS.
    """
    draws = rng.random((length, n, 1))

    def sample_next_word(t, chances):
        cumulative = np.cumsum(chances, axis=1)
        return (cumulative <= draws[t] * cumulative[:, -1:]).sum(axis=1)

    return _build_documents_word_by_word(sample_next_word, n, length, grammar)


@checked
def read_documents(ids: "int n tokens", *, grammar: Grammar = GRAMMAR) -> Documents:
    """Return the surprisals, tasks and targets of given documents.

    Introduced in chapter 19. Each begins with <bos>; the words of the grammar are WORDS.

    Raises
    ------
    ValueError : a word that the rules do not allow at its position, such as another first one

    >>> ids = np.array([[ID[word] for word in "<bos> the dogs that bark sleep .".split()]])
    >>> [TASKS[task] for task in read_documents(ids).task[0] if task >= 0]
    ['inside clause', 'across clause']
    """
    require_ids(ids, len(WORDS))
    if ids[:, 0].any():
        raise ValueError("a document does not begin with <bos>; expected id 0. Put it in front.")

    def checked_given_word(t, chances):
        word_ids = ids[:, t + 1]
        for n in np.flatnonzero(chances[np.arange(len(ids)), word_ids] == 0):
            allowed_words = [WORDS[word_id] for word_id in np.flatnonzero(chances[n])]
            raise ValueError(
                f"document {n} has {WORDS[word_ids[n]]!r} at position {t + 1}; expected one of "
                f"{allowed_words}. Change that word, or the words before it."
            )
        return word_ids

    return _build_documents_word_by_word(checked_given_word, len(ids), ids.shape[1] - 1, grammar)
