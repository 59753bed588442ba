"""Names that alone refer to what the statements of a block make."""

import pytest

from gpuviz.advice.source.close_statements import Statement
from gpuviz.advice.source.own_names import assigned, shared_names, stores_elsewhere


def statement(text):
    return Statement(text, 4, "", "")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("x = f(y)", {"x"}),
        ("x, (y, *z) = f(w)", {"x", "y", "z"}),
        ("x: Array = f(y)", {"x"}),
        ("x = f(y); g.launch(x)", {"x"}),
        ("return f(x)", set()),
        ("self.x = f(y)", set()),
        ("x = cache[k] = f(y)", set()),
        ("x += f(y)", set()),
        ("x = cache.setdefault(k, f(y))", set()),
        ("x = f(y); done.append(x)", set()),
        ("x = f(  # of y", set()),
    ],
)
def test_names_count_if_a_statement_stores_nothing_elsewhere(text, names):
    assert assigned(statement(text)) == names


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("x = f(y)", False),
        ("x = x.at[i].add(y)", False),
        ("done.append(f(x))", True),
        ("yield f(x)", True),
        ("x = f(", True),
    ],
)
def test_values_are_stored_elsewhere_than_in_names(text, stored):
    assert stores_elsewhere(statement(text)) is stored


@pytest.mark.parametrize(
    ("tried", "handled", "shared"),
    [
        (["x = f()"], ["return g(size)"], {"g", "size"}),
        (["x = f()"], ["x = None", "return g()"], {"g"}),
        (["x = f()"], ["return x + g()"], {"x", "g"}),
        (["x = f()", "done.append(x)"], [], {"x"}),
        (["x = f()", "done.append(model[1](x))"], [], set()),
        (["x = f()", "y = x.view(2)", "done[0] = (y, n)"], [], {"x", "y", "n"}),
        (["x = f()", "done.append(Result(x, size=n))"], [], {"x", "n"}),
    ],
)
def test_values_are_shared_that_the_handler_reads_or_the_attempt_stores(tried, handled, shared):
    assert shared_names(map(statement, tried), map(statement, handled)) == shared
