"""Groups of rows and their aggregates, against plain Python."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuviz import _core
from gpuviz.analysis.grouping import Groups
from gpuviz.data.first_rows import first_rows
from tests.examples import examples
from tests.unit.recording.plain_summary import floor_median, groups, typical

EXAMPLES = examples(100)
KEYS = st.sampled_from([0, 1, 2, 3, 2**32 - 1])
VALUES = st.integers(-(2**40), 2**40)


@EXAMPLES
@given(rows=st.lists(st.tuples(KEYS, KEYS, KEYS, VALUES, st.booleans()), max_size=40))
def test_groups_have_the_numbers_of_plain_ones_in_the_order_of_their_first_rows(rows):
    keys = np.array([row[:3] for row in rows], np.int64).reshape(-1, 3).astype(np.uint32)
    values = np.array([row[3] for row in rows], np.int64)
    chosen = np.array([row[4] for row in rows], bool)
    plain = groups(enumerate(rows), lambda each: each[1][:2]).values()
    lists = [[row[3] for _, row in group] for group in plain]

    found = Groups([keys[:, 0], keys[:, 1]])

    numbers = {name: column.tolist() for name, column in found.values(values).items()}
    assert numbers == {
        "count": [len(each) for each in lists],
        "sum": [sum(each) for each in lists],
        "least": [min(each) for each in lists],
        "greatest": [max(each) for each in lists],
        "median": [floor_median(each) for each in lists],
    }
    assert found.counts.tolist() == numbers["count"]
    of_chosen = [floor_median(row[3] for _, row in group if row[4]) for group in plain]
    assert found.medians(values, chosen).to_pylist() == of_chosen
    most = [typical(group, lambda each: each[1][2])[0] for group in plain]
    assert found.typical_rows([keys[:, 2]]).tolist() == most


def test_many_keys_keep_their_numbers_while_the_table_grows():
    keys = np.random.default_rng(1).integers(0, 2**32, 5000, np.uint32)
    keys = np.concatenate([keys, keys[::-1]])

    found = Groups([keys, keys])

    seen = Counter(keys.tolist())
    assert found.counts.tolist() == list(seen.values())


@pytest.mark.parametrize("values", [1, 7, 200])
def test_of_many_combinations_the_most_frequent_one_that_occurs_first_is_typical(values):
    keys = np.random.default_rng(values).integers(0, values, (20_000, 4), np.uint32)
    rows = [tuple(row) for row in keys.tolist()]
    plain = groups(enumerate(rows), lambda each: each[1][0]).values()

    found = Groups([keys[:, 0]]).typical_rows([keys[:, 1], keys[:, 2], keys[:, 3]])

    assert found.tolist() == [typical(group, lambda each: each[1])[0] for group in plain]


@EXAMPLES
@given(
    known=st.lists(st.integers(0, 30) | st.integers(0, 2**32 - 1), max_size=20),
    wanted=st.lists(st.integers(0, 30) | st.integers(0, 2**32 - 1), max_size=20),
)
def test_each_id_is_found_in_its_first_row(known, wanted):
    wanted = [*wanted, *known[::3]]

    rows = first_rows(np.array(known, np.uint32), np.array(wanted, np.uint32))

    assert rows.tolist() == [known.index(n) if n and n in known else -1 for n in wanted]


def test_columns_that_do_not_fit_together_are_refused():
    two, three = np.zeros(2, np.uint32), np.zeros(3, np.uint32)

    with pytest.raises(ValueError, match="has 3 rows, expected 2"):
        _core.numbered(two, three)
    for function in (_core.group_totals, _core.group_medians):
        with pytest.raises(ValueError, match="group that there is not"):
            function(two, np.zeros(2, np.int64), 0)
