"""Which heads chapter 25 names, and what it says of them, computed from its results file."""

from collections import defaultdict

import numpy as np

from tutorial_lib.records import record


def measured(*keys):
    """What the results file holds under some keys, one after the other."""
    found = record("real_circuits")
    for key in keys:
        found = found[key]
    return found


def _best(values, n):
    order = np.argsort(-np.array(values), axis=None)[:n]
    return ["{}.{}".format(*divmod(int(i), 9)) for i in order]


def _previous_heads():
    """The five heads with the highest previous-token scores, the highest first."""
    return _best(measured("induction", "scores", "previous", "mean"), 5)


def feeder():
    """The one of them without which the second copy's loss is highest."""
    without = measured("induction", "without")
    return max(_previous_heads(), key=lambda name: without[name]["more"]["mean"])


def rival():
    """The one with the next highest score."""
    return next(name for name in _previous_heads() if name != feeder())


def later_one():
    """The one whose loss rises next most, in a layer behind all matchers."""
    without = measured("induction", "without")
    left = [name for name in _previous_heads() if name != feeder()]
    found = max(left, key=lambda name: without[name]["more"]["mean"])
    assert int(found.split(".")[0]) > int(matcher().split(".")[0])
    return found


def previous_head_below():
    """The other one that lies in a layer before the matcher."""
    layer = int(matcher().split(".")[0])
    (found,) = {n for n in _previous_heads() if int(n.split(".")[0]) < layer} - {feeder(), rival()}
    return found


def best_matchers():
    """The four heads with the highest induction scores."""
    return _best(measured("induction", "scores", "induction", "mean"), 4)


def matcher():
    """The one that attends, at the giver, to the token after the first mention."""
    links = measured("name", "chain", "at the giver")
    return max(links, key=lambda name: links[name]["the token after it"]["mean"])


def copier():
    """The head that raises the logit of the token it attends to most."""
    ranks = measured("induction", "copying")
    return min(ranks, key=lambda name: ranks[name]["median"])


def number_heads():
    """The three heads with the largest patching effects on the verb."""
    return _best(measured("number", "scan", "effect"), 3)


def number_head():
    """The first of them."""
    return number_heads()[0]


def _name_heads():
    """The three heads with the largest patching effects on the name."""
    return _best(measured("name", "scan", "effect"), 3)


def _role(key, choose):
    found = measured("name", "roles")
    return choose(found, key=lambda name: found[name][key]["mean"])


def suppressor():
    """The head that lowers the giver's logit most."""
    return _role("adds to the giver", min)


def mover():
    """The head of layer 23 that raises the receiver's logit most."""
    found = measured("name", "roles")
    names = [name for name in found if name.startswith("23.")]
    return max(names, key=lambda name: found[name]["adds to the right name"]["mean"])


def negative_mover():
    """The head that lowers the receiver's logit most."""
    return _role("adds to the right name", min)


def late_head():
    """The one of the three that attends to neither name."""
    found, keys = measured("name", "roles"), ("to the right name", "to the giver")
    return min(_name_heads(), key=lambda n: sum(found[n][key]["mean"] for key in keys))


def carrier():
    """The one of the three that adds least to the names' logits."""
    found = measured("name", "roles")
    keys = "adds to the right name", "adds to the giver"
    return min(_name_heads(), key=lambda n: sum(abs(found[n][key]["mean"]) for key in keys))


def movers():
    """The four name movers whose weights the chain follows."""
    return list(measured("name", "chain", "movers", "none"))


def weight_of_the_matcher():
    """Its weight on the token after the first mention, and what is left without the feeder."""
    chain = measured("name", "chain")
    whole = chain["at the giver"][matcher()]["the token after it"]
    return [round(w["mean"], 2) for w in (whole, chain[f"{matcher()} without {feeder()}"])]


def best_matcher():
    """The head with the highest induction score."""
    return best_matchers()[0]


def smaller_one():
    """The previous-token head whose loss rises third most."""
    without = measured("induction", "without")
    left = set(_previous_heads()) - {feeder(), later_one()}
    return max(left, key=lambda name: without[name]["more"]["mean"])


def first_in_composition():
    """The head that composes most with the best matcher."""
    return measured("composition", best_matcher(), "best")[0][0]


def score_without_the_first():
    """The best matcher's score where its keys do not read that head."""
    path = measured("induction", "paths", best_matcher(), first_in_composition())
    return round(path["keys"]["mean"], 2)


def scores_of_the_matchers():
    """The four highest induction scores."""
    scores = np.array(measured("induction", "scores", "induction", "mean"))
    return np.sort(scores, axis=None)[:-5:-1].round(2).tolist()


def matchers_of_one_group():
    """Those of the four that share one KV head, which three heads of a layer do."""
    groups = defaultdict(list)
    for name in best_matchers():
        layer, head = map(int, name.split("."))
        groups[layer, head // 3].append(name)
    return max(groups.values(), key=len)


def second_negative():
    """The head with the second most negative patching effect on the name."""
    first, second = _best(-np.array(measured("name", "scan", "effect")), 2)
    assert first == negative_mover()
    return second


def finder_of_the_first():
    """The head that attends, at the giver, to its first mention."""
    links = measured("name", "chain", "at the giver")
    found = max(links, key=lambda name: links[name]["first mention"]["mean"])
    assert links[found]["first mention"]["mean"] > 1 / 2
    return found
