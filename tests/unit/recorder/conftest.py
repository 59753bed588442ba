import pytest

from gpuviz import _core, _testing
from gpuviz.recorder.call_stacks import FrameResolver
from gpuviz.recorder.recorder import Recorder
from tests.unit.recorder.captured_stacks import resolved
from tests.unit.recorder.simulated_source import SimulatedSource


@pytest.fixture
def source():
    return SimulatedSource()


@pytest.fixture
def new_recorder():
    """Create recorders of simulated sources; those still active at the end are stopped."""
    made = []

    def make(source, path=None, *, stacks=False, max_events=1_000_000):
        made.append(Recorder(source, path, stacks=stacks, max_events=max_events))
        return made[-1]

    yield make
    for recorder in made:
        if recorder.is_recording:
            recorder.stop()


@pytest.fixture
def probe():
    session, resolver, rows = _core.Session(stack_depth=256), FrameResolver(), {}

    def capture():
        _testing.capture_stack(session)
        return resolved(session, resolver, rows)[1:]

    return capture
