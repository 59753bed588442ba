"""Programs whose order is right have no hazards."""

import pytest

from gpuviz.hazards.known import unknown
from tests.gpu.hazard_examples import lines, recorded
from tests.gpu.ordered_programs import PROGRAMS


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_whose_order_is_right_has_no_hazards(name):
    recording = recorded(PROGRAMS[name])

    assert unknown(recording) == ""
    assert list(map(lines, recording.hazards())) == []
