"""Small recordings for reports."""

import pytest

from gpuviz.recording import Recording
from tests.unit.report.recordings import make_recording


@pytest.fixture
def recording() -> Recording:
    return make_recording()
