import comm
import pytest

from gpuviz.notebook.timeline import Timeline
from gpuviz.recorder.recorder import Recorder
from tests.unit.ipython_shells import new_shell
from tests.unit.notebook.fake_browser import FakeBrowser, FakeComm
from tests.unit.recorder.simulated_source import SimulatedSource


@pytest.fixture
def source():
    return SimulatedSource()


@pytest.fixture
def ipython():
    """Yield a shell without gpuviz."""
    with new_shell() as shell:
        yield shell


@pytest.fixture
def new_recorder(source):
    """Create recorders of the source; those still active at the end are stopped."""
    made = []

    def make(path=None, *, max_events=1_000_000):
        made.append(Recorder(source.again(), path, stacks=False, max_events=max_events))
        return made[-1]

    yield make
    for recorder in made:
        if recorder.is_recording:
            recorder.stop()


@pytest.fixture
def new_browser(monkeypatch):
    """Open pages that show a widget, or a new widget of a recorder or recording."""
    monkeypatch.setattr(comm, "create_comm", FakeComm)
    widgets = []

    def open_page(shown, viewer="page"):
        if not isinstance(shown, Timeline):
            shown = Timeline(shown)
            widgets.append(shown)
        return FakeBrowser(shown, viewer)

    yield open_page
    for widget in widgets:
        widget.close()
