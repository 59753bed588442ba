"""Text of programs as syntax trees, also that of damaged files."""

import pytest

from gpuviz.advice.source.close_statements import Statement
from gpuviz.advice.source.own_names import assigned, shared_names, stores_elsewhere
from gpuviz.advice.source.parsed_text import parsed

MANY = 100_000


@pytest.mark.parametrize(
    "text",
    [
        "x = f(",
        'x = "\0"',
        "x = " + "(" * MANY + ")" * MANY,
        "x = " + "-" * MANY + "1",
        "x = a" + ".b" * MANY,
        "x = " + "1 + " * MANY + "1",
        "x = a" + "()" * MANY,
        "x = \ud800",
    ],
)
def test_text_that_cannot_be_understood_stores_what_it_makes(text):
    statement = Statement(text, 4, "", "")

    assert parsed(text) is None
    assert stores_elsewhere(statement)
    assert assigned(statement) == set()


@pytest.mark.parametrize("depth", [50, 500, 900])
def test_a_value_is_followed_as_deep_as_it_can_be_understood(depth):
    kept = Statement(f"done.append(x{'.T' * depth})", 4, "", "")
    is_known = parsed(kept.text) is not None

    shared = shared_names([Statement("x = f(y)", 4, "", ""), kept], [])

    assert ("x" in shared) or not is_known
