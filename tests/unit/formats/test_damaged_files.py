"""Damaged files of every format load, or raise one error that names the file."""

import random
import resource

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.examples import examples
from tests.unit.formats.damaged_files import KINDS, outcome

MOST_BYTES = 500 << 20
EXAMPLES = examples(15, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("kind", KINDS)
@EXAMPLES
@given(seed=st.integers(0, 1 << 32))
def test_a_damaged_file_loads_or_is_refused_by_name(kind, seed, tmp_path_factory):
    path = KINDS[kind](tmp_path_factory.mktemp("damaged"), random.Random(seed))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    assert outcome(path) in {True, False}
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_BYTES >> 10
