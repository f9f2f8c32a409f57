"""The hundred words of the known text, class by class."""

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
