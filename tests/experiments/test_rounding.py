"""What a test allows to rounding is no more: each number that is off is said in a sentence."""

import pytest

from tests.rounding import rounding, unlike

STORED = {"seeds": [0.1234, {"loss": 0.5}], "name": "copy", "steps": 3}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seeds": [0.1235, {"loss": 0.4999}]}, []),
        ({"seeds": [0.1236, {"loss": 0.5}]}, ["run/seeds[0] is 0.1236, and the record has 0.1234"]),
        ({"seeds": [0.1234, {"loss": 1.0}]}, ["run/seeds[1]/loss is 1.0, and the record has 0.5"]),
        ({"seeds": [float("nan"), {"loss": 0.5}]}, ["run/seeds[0] is nan, and the record"]),
        ({"seeds": [0.1234]}, ["run/seeds is [0.1234], and the record has"]),
        ({"name": "count", "steps": 4}, ["run/name is 'count'", "run/steps is 4"]),
        ({"more": 1}, ["run is {'seeds'"]),
    ],
)
def test_what_is_further_off_than_rounding_goes_is_said(change, said):
    found = unlike(STORED | change, STORED, places=4, path="run")
    assert [s.startswith(t) for s, t in zip(found, said, strict=True)] == [True] * len(said)


def test_the_bound_grows_with_the_sums_and_the_size_of_their_numbers():
    assert rounding(10) == 10 * 2**-52
    assert rounding(10, 30, size=5, dtype="float32") == 40 * 2**-23 * 5
