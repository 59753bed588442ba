from functools import partial
from types import SimpleNamespace

import pytest

from gpuviz import _core, _testing
from gpuviz.frameworks.torch_modules import ModuleNames
from gpuviz.recorder.call_stacks import FrameResolver
from gpuviz.recorder.recorder import Recorder
from tests.unit.recorder.captured_stacks import resolved
from tests.unit.recorder.simulated_source import SimulatedSource
from tests.unit.recorder.torch_modules import Module


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


@pytest.fixture
def session():
    session = _core.Session(stack_depth=256)
    session.start()
    yield session
    session.stop()


@pytest.fixture
def names(session):
    """Name the modules that torch's calls enter."""
    names = ModuleNames(session)
    names.begin(SimpleNamespace(nn=SimpleNamespace(Module=Module)))
    yield names
    names.end()


@pytest.fixture(params=[False, True])
def capture(session, request):
    """Capture a stack with or without the GIL."""
    return partial(_testing.capture_stack_without_waiting, session, request.param)
