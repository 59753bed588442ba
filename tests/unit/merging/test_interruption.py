"""A merge that is interrupted at any line leaves nothing behind."""

import pytest

import gpuviz
from tests.examples import share_of
from tests.faults import Fault
from tests.unit.merging.processes_of_a_run import process, program

MOST = share_of(200)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, MemoryError])
def test_the_next_merge_is_whole(kind, tmp_path):
    parts = [process(program(seed), seed, ranks=2) for seed in range(2)]
    given = [parts[0], parts[1].save(tmp_path / "1.gpuviz")]
    expected = gpuviz.merge(given)
    fault = Fault(kind, "/gpuviz/merging/")
    with fault.armed(0):
        gpuviz.merge(given)

    for line in fault.lines(step=max(1, fault.lines_run // MOST)):
        with fault.armed(line):
            gpuviz.merge(given)
        assert gpuviz.merge(given).tables == expected.tables
