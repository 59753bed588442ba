"""Well-written programs have at most one finding each."""

from functools import cache

import pytest

import gpuviz
from gpuviz.advice.findings import findings
from tests.gpu.clean_programs import PROGRAMS
from tests.gpu.shown_findings import show


@cache
def recorded(name):
    """Return the recording of a program whose kernels are compiled."""
    PROGRAMS[name]()
    with gpuviz.record() as recorder:
        PROGRAMS[name]()
    return recorder.recording


@pytest.fixture(scope="module", autouse=True)
def shown(pytestconfig):
    yield
    show(pytestconfig, "clean_programs", {name: recorded(name) for name in PROGRAMS})


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_clean_program_has_at_most_one_finding(name):
    found = findings(recorded(name))

    assert len(found) <= 1, [each.title for each in found]
