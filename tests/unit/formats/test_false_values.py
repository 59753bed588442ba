"""Whole files with false values are refused or analysed, and no other error comes of them."""

import random
import resource

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.examples import examples
from tests.unit.formats import false_snapshots, false_values
from tests.unit.formats.false_values import outcome

KINDS = false_values.KINDS | false_snapshots.KINDS
MOST_BYTES = 1 << 30
EXAMPLES = examples(6, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize(
    "case", ["merged-2837", "report-1824", "report-2968", "tables-2945"], ids=str
)
def test_files_that_once_raised_another_error_are_analysed(case, tmp_path):
    path = KINDS[case.partition("-")[0]](tmp_path, random.Random(case))

    assert outcome(path) is True


@pytest.mark.parametrize("kind", KINDS)
@EXAMPLES
@given(seed=st.integers(0, 1 << 32))
def test_a_file_of_false_values_is_refused_or_analysed(kind, seed, tmp_path_factory):
    path = KINDS[kind](tmp_path_factory.mktemp("false"), random.Random(seed))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    assert outcome(path) in {True, False}
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_BYTES >> 10
