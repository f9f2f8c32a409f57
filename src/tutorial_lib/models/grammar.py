"""A text whose truth is known: a hundred words, put together by rules that say what decides each.

An alternative of a rule is its weight and what follows, one behind the other. `>name` behind a word
notes its place under that name, `<name` says that the word at the noted place decides this one. No
two alternatives of a rule can begin with one word, so each choice is made just before the word that
shows it, and the surprise of a word is exactly -log of the choices since the word before.
"""

import re
from dataclasses import dataclass

import numpy as np

from tutorial_lib.attention import softmax
from tutorial_lib.errors import require_ids, require_length, require_shape

LENGTH = 64  # words of a document, behind <bos>
DEPTH = 3  # of brackets within brackets
CLASSES = {
    "noun:s": "dog cat bird horse cow goat duck frog bear owl fox mouse",
    "noun:p": "dogs cats birds horses cows goats ducks frogs bears owls foxes mice",
    "rest:s": "barks sleeps sings swims waits laughs jumps dances",
    "rest:p": "bark sleep sing swim wait laugh jump dance",
    "act:s": "sees helps likes finds follows hears knows calls",
    "act:p": "see help like find follow hear know call",
    "given:f": "Anna Mira Nora",
    "given:m": "Emil Karl Paul",
    "surname": "Kern Adler Busch Cramer Dorn Frank Haas Lang Moser Roth Vogt Weiss",
    "adverb": "often never always rarely still now today here soon again",
    "pronoun": "it they she he",
    "reflexive": "itself themselves herself himself",
}
WORDS = ("<bos>", ".", "the", "that", "(", "[", ")", "]", *" ".join(CLASSES.values()).split())
ID = {word: i for i, word in enumerate(WORDS)}
TASKS = (
    *("agreement", "inside clause", "across clause", "across aside", "attractor"),
    *("reflexive", "pronoun", "bracket", "outer bracket", "surname"),
)
NAMES = ("subject", "clause", "bracket1", "bracket2", "bracket3", "")  # of noted places


def _is(*classes):
    """Say of each word whether it is one of these words, or of these classes."""
    return np.isin(WORDS, " ".join(CLASSES.get(name, name) for name in classes).split())


VERB, CLOSING, SURNAME = _is("rest:s", "rest:p", "act:s", "act:p"), _is(")", "]"), _is("surname")
FORMS = np.arange(len(WORDS))  # of words with one number a single one is right: the forms of a set
FORMS[_is("rest:p", "act:p")] = FORMS[_is("rest:s", "act:s")]
for _set in (CLOSING, SURNAME, _is("pronoun"), _is("reflexive")):
    FORMS[_set] = FORMS[_set][0]


def rules():
    """Return the grammar: symbol -> alternatives; what is no symbol is a word."""
    found = {name: " | ".join(f"1 {w}" for w in words.split()) for name, words in CLASSES.items()}
    found["text"] = "3 the head | 1 called:f | 1 called:m"
    found["head"] = "1 noun:s>subject more:s | 1 noun:p>subject more:p"
    found["inner"] = "1 noun:s>clause act:s<clause | 1 noun:p>clause act:p<clause"
    found["object"] = "1 the other | 1 given:f surname | 1 given:m surname"
    found["other"] = "1 noun:s | 1 noun:p"
    words = CLASSES["pronoun"].split(), CLASSES["reflexive"].split()
    for kind, pronoun, reflexive in zip("spfm", *words, strict=True):
        verb = "p<subject" if kind == "p" else "s<subject"
        then, again = f"aside:{kind}", f"{pronoun}<subject>subject do:{kind}"
        found[f"next:{kind}"] = f"6 the head | 3 called:f | 3 called:m | 4 {again}"
        found[f"called:{kind}"] = f"1 given:{kind}>subject surname {then}"
        found[f"more:{kind}"] = f"1 {then} | 1 that clause:{kind} {then}"
        found[f"clause:{kind}"] = f"1 rest:{verb} | 1 act:{verb} the other | 1 the inner"
        found[then] = f"2 do:{kind} | 1 round:1 do:{kind} | 1 square:1 do:{kind}"
        found[f"do:{kind}"] = (
            f"1 rest:{verb} . next:{kind} | 1 act:{verb} whom:{kind} . next:{kind}"
        )
        found[f"whom:{kind}"] = f"2 object | 1 {reflexive}<subject"
    for depth in range(1, DEPTH + 1):
        for shape, opening, closing in (("round", "(", ")"), ("square", "[", "]")):
            end, deeper = f"{closing}<bracket{depth}", depth + 1
            more = f" | 1 round:{deeper} {end} | 1 square:{deeper} {end}" * (depth < DEPTH)
            found[f"{shape}:{depth}"] = f"1 {opening}>bracket{depth} adverb {shape}-end:{depth}"
            found[f"{shape}-end:{depth}"] = f"4 {end}{more}"
    return found


@dataclass(frozen=True)
class Grammar:
    """Rules, as a walk from state to state: a state is all that is still to come of a sentence.

    Parameters
    ----------
    chances : (states, words), of the next word
    follows : (states, words), the state after it
    decides, notes : (states, words), places in NAMES: which word decides it, what it is noted as
    """

    chances: np.ndarray
    follows: np.ndarray
    decides: np.ndarray
    notes: np.ndarray


def _alternatives(rule):
    """Return pairs of a chance and what follows."""
    pairs = [alternative.split() for alternative in rule.split("|")]
    total = sum(float(weight) for weight, *_ in pairs)
    return [(float(weight) / total, tuple(parts)) for weight, *parts in pairs]


def _begin(rules, parts):
    """Yield each way to go on: chance, the word with its marks, and the parts behind it."""
    symbol, marks = re.fullmatch(r"(.[^<>]*)(.*)", parts[0]).groups()
    if symbol not in rules:
        yield 1.0, symbol, marks, parts[1:]
        return
    for chance, (first, *others) in _alternatives(rules[symbol]):
        for share, *found, rest in _begin(rules, (first + marks, *others)):
            yield chance * share, *found, (*rest, *parts[1:])


def require_unambiguous(rules):
    """Require that no two alternatives of a rule begin with one word: each word tells its choice.

    Raises
    ------
    ValueError : names the rule and the word
    """
    for symbol, rule in rules.items():
        seen = set()
        for _, parts in _alternatives(rule):
            words = {word for _, word, *_ in _begin(rules, parts)}
            if seen & words:
                raise ValueError(
                    f"two alternatives of {symbol!r} can begin with {min(seen & words)!r}; expected"
                    f" that a word tells the alternative: let each begin with words of its own."
                )
            seen |= words


def compile_rules(rules, *, start="text"):
    """Turn rules into the walk that they describe.

    Raises
    ------
    ValueError : two alternatives of a rule can begin with one word
    """
    require_unambiguous(rules)
    number, rows = {(start,): 0}, []
    for parts in (waiting := [(start,)]):  # grows while it is read
        row = np.zeros((4, len(WORDS)))
        row[2:] = len(NAMES) - 1
        for chance, word, marks, rest in _begin(rules, parts) if parts else ():
            if rest not in number:
                number[rest] = len(number)
                waiting.append(rest)
            read, noted = re.fullmatch(r"(?:<(\w+))?(?:>(\w+))?", marks).groups("")
            row[:, ID[word]] = chance, number[rest], NAMES.index(read), NAMES.index(noted)
        rows.append(row)
    chances, *others = np.stack(rows, axis=1)
    return Grammar(chances, *(table.astype(int) for table in others))


GRAMMAR = compile_rules(rules())


@dataclass(frozen=True)
class Documents:
    """Texts with their truth. Place t of the last three speaks of the word ids[:, t + 1].

    Parameters
    ----------
    ids : (n, length + 1), each begins with <bos>
    surprise : (n, length), nats of the choices between the word before and this one
    task : (n, length), which of TASKS the word is, -1 for none
    decided_by : (n, length), the place in ids of the word that decides it, -1 for none;
        for a surname the last place where it stood
    """

    ids: np.ndarray
    surprise: np.ndarray
    task: np.ndarray
    decided_by: np.ndarray


def _walk(choose, n, length, grammar):
    """Put documents together word by word; `choose` gets t and the chances (n, words)."""
    rows, state = np.arange(n), np.zeros(n, dtype=int)
    ids, surprise = np.zeros((n, length + 1), dtype=int), np.zeros((n, length))
    decided_by, noted = np.full((n, length), -1), np.full((n, len(NAMES)), -1)
    family = np.full((n, len(WORDS)), -1)  # given name -> where its surname stood last
    for t in range(length):
        chances, before = grammar.chances[state], ids[:, t]
        known = family[rows, before]
        back = known >= 0
        chances[back] = np.eye(len(WORDS))[ids[back, known[back]]]
        word = ids[:, t + 1] = choose(t, chances)
        surprise[:, t] = -np.log(chances[rows, word])
        decided_by[:, t] = np.where(back, known, noted[rows, grammar.decides[state, word]])
        noted[rows, grammar.notes[state, word]] = t + 1
        noted[:, -1] = -1
        family[rows[SURNAME[word]], before[SURNAME[word]]] = t + 1
        state = grammar.follows[state, word]
    return Documents(ids, np.abs(surprise), _tasks(ids, decided_by), decided_by)


def _tasks(ids, decided_by):
    """Return which of TASKS each word is, from what stands between it and what decides it."""
    rows, word = np.arange(len(ids))[:, None], ids[:, 1:]

    def between(flags):
        counts = np.pad(np.cumsum(flags[ids], axis=1), ((0, 0), (1, 0)))
        return counts[:, 1:-1] - counts[rows, decided_by + 1]

    plural = _is("noun:p", "they")[ids[rows, decided_by]]
    others = np.where(plural, between(_is("noun:s", "given:f", "given:m")), between(_is("noun:p")))
    that = np.pad(ids == ID["that"], ((0, 0), (2, 0)))  # two places later
    adjacent = decided_by == np.arange(ids.shape[1] - 1)
    verb, closing = VERB[word], CLOSING[word]
    inside = that[:, 2:-1] | that[:, :-3] & adjacent
    cases = [verb & inside, verb & (others > 0), verb & (between(_is("that")) > 0)]
    cases += [verb & (between(CLOSING) > 0), verb, _is("reflexive")[word], _is("pronoun")[word]]
    cases += [closing & (between(CLOSING) > 0), closing, SURNAME[word]]
    order = [1, 4, 2, 3, 0, 5, 6, 8, 7, 9]
    return np.where(decided_by >= 0, np.select(cases, order, -1), -1)


def draw_documents(rng, n, *, length=LENGTH, grammar=GRAMMAR):
    """Draw documents, each of which begins with <bos> and is cut off after `length` words."""
    require_length("n", n)
    require_length("length", length)
    luck = rng.random((length, n, 1))

    def choose(t, chances):
        sums = np.cumsum(chances, axis=1)
        return (sums <= luck[t] * sums[:, -1:]).sum(axis=1)

    return _walk(choose, n, length, grammar)


def read_documents(ids, *, grammar=GRAMMAR):
    """Return the truth of given texts, (n, length + 1), each of which begins with <bos>.

    Raises
    ------
    ValueError : a word that cannot stand where it stands
    """
    require_shape("ids", ids, "n places")
    require_ids(ids, len(WORDS))

    def choose(t, chances):
        word = ids[:, t + 1]
        wrong = np.flatnonzero(chances[np.arange(len(ids)), word] == 0)
        if len(wrong):
            could = [WORDS[i] for i in np.flatnonzero(chances[wrong[0]])]
            raise ValueError(
                f"document {wrong[0]} has {WORDS[word[wrong[0]]]!r} at place {t + 1}; expected one "
                f"of {could}. Change that word, or what stands before it."
            )
        return word

    return _walk(choose, len(ids), ids.shape[1] - 1, grammar)


def expected_surprise(*, length=LENGTH, grammar=GRAMMAR):
    """Return the exact expectation of the surprise of each of the first words, (length,).

    It is over all documents that the grammar can give; its mean is the floor: no model has a lower
    expected loss. A given name is drawn evenly, so that it is new after c others with the chance
    (1 - 1/names)^c; only then its surname surprises.
    """
    chances, names = grammar.chances, _is("given:f", "given:m").sum()
    entropy = -(chances * np.log(np.where(chances > 0, chances, 1))).sum(axis=1)
    moves = np.zeros((len(chances),) * 2)
    np.add.at(moves, (np.arange(len(chances))[:, None], grammar.follows), chances)
    surname = chances[:, SURNAME].sum(axis=1) > 0
    new = np.where(surname[:, None], (1 - 1 / names) ** np.arange(length), 1)
    share, expected = np.zeros((len(chances), length)), []  # of states, by names mentioned so far
    share[0, 0] = 1
    for _ in range(length):
        expected.append((share * new * entropy[:, None]).sum())
        share[surname] = np.roll(share[surname], 1, axis=1)
        share = moves.T @ share
    return np.array(expected)


def above_floor(logits, documents):
    """Return how many nats a model loses above the exact surprise, (n, length), a word each."""
    targets = documents.ids[:, 1:]
    right = np.take_along_axis(softmax(logits), targets[..., None], axis=-1)[..., 0]
    return -np.log(right) - documents.surprise


def accuracy(logits, documents):
    """Return the share of right forms among the forms of their set: task -> share."""
    found, targets = {}, documents.ids[:, 1:]
    for place, name in enumerate(TASKS):
        asked = documents.task == place
        if asked.any():
            rivals = FORMS[targets[asked]][:, None] == FORMS
            best = np.where(rivals, logits[asked], -np.inf).argmax(axis=-1)
            found[name] = float((best == targets[asked]).mean())
    return found
