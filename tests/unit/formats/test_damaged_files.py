"""Damaged files of every format load, or raise one error that names the file."""

import os
import random
import resource
import signal
import tempfile

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests import fuzz
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


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (lambda _: True, "rmm: 1 of 1 accepted"),
        (lambda _: False, "rmm: 0 of 1 accepted"),
        (KeyError, "rmm 0: exit 1"),
        (lambda _: os.kill(os.getpid(), signal.SIGKILL), "rmm 0: exit -9"),
    ],
)
def test_a_long_run_fails_if_a_case_does(monkeypatch, tmp_path, capfd, outcome, text):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setitem(fuzz.KINDS, "rmm", (KINDS["rmm"], outcome))
    is_good = fuzz.fuzz("rmm", 0, 1)

    assert text in capfd.readouterr().out
    assert is_good == ("accepted" in text)
