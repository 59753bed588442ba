"""What compute-sanitizer's memcheck sees in gpuviz's pool."""

import pytest

from tests.gpu import memcheck_litmus

pytestmark = pytest.mark.skipif(memcheck_litmus.sanitizer() is None, reason="no compute-sanitizer")


def test_memcheck_agrees_on_the_programs_that_it_can_judge():
    rows, text = memcheck_litmus.verdicts()
    verdicts = [verdict for _, verdict in rows]

    assert "FINISHED" in text
    assert [row for row in rows if row[1].startswith("DISAGREES")] == []
    assert "agrees: silent" in verdicts
    assert verdicts.count("agrees: reported") >= 4


def test_memcheck_reports_nothing_unless_memory_is_announced():
    kernels, text = memcheck_litmus.reported(announced=False)

    assert "FINISHED" in text
    assert kernels == set()
