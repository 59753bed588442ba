"""Categories of blocks that a dashboard shows while a training program runs."""

import itertools
import sys
from types import ModuleType, SimpleNamespace

import pyarrow as pa
import pytest

from gpuviz.data.codes import CATEGORIES
from gpuviz.recorder import samples
from gpuviz.recorder.live_categories import LiveCategories
from gpuviz.recorder.recorder import Recorder
from tests.unit.recorder.simulated_source import SimulatedSource
from tests.unit.recording.test_training import BACKWARD, FORWARD, STEPS, recording_of

PARAMETER, GRADIENT = CATEGORIES.index("parameter"), CATEGORIES.index("gradient")


@pytest.fixture
def clock(monkeypatch):
    """A clock for samples only, on which a look takes no time, so that each is due."""
    now = itertools.count()
    nothing = dict.fromkeys(("perf_counter", "thread_time"), lambda: 0.0)
    fake = SimpleNamespace(monotonic=lambda: next(now), **nothing)
    monkeypatch.setattr(samples, "time", fake)


def rows(table):
    return sorted((row["event"], row["category"]) for row in table.to_pylist())


@pytest.mark.usefixtures("clock")
def test_only_what_has_changed_is_sent_again():
    block = (0x100, 110, 10**6, FORWARD, 0)
    freed = (0x100, 110, 250, FORWARD, BACKWARD)
    found = {
        "empty": recording_of(),
        "first": recording_of(*STEPS[:1], block),
        "second": recording_of(*STEPS, freed),
    }
    live = LiveCategories(lambda: found[now])

    now = "empty"
    assert rows(live.changed()) == []
    now = "first"
    assert rows(live.changed()) == [(0, "temporary"), (3, "activation")]
    assert rows(live.changed()) == []
    now = "second"
    changed = rows(live.changed())
    assert (0, "temporary") not in changed
    assert (3, "activation") not in changed
    assert len(changed) == len(STEPS) - 1


@pytest.mark.usefixtures("clock")
def test_a_category_that_is_not_certain_any_more_is_unknown():
    block = (0x100, 1, 10**6, 1, 0)
    tensor = {"device": 0, "address": 0x100, "time": 5, "category": "parameter", "name": 1}
    found = [recording_of(*STEPS, block, tensors=[tensor]), recording_of(*STEPS, block)]
    live = LiveCategories(lambda: found[0])
    assert (0, "parameter") in rows(live.changed())

    found.pop(0)
    assert rows(live.changed()) == [(0, "unknown")]


class Training(SimulatedSource):
    """A source of a program that has a model."""

    def begin(self, session):
        super().begin(session)
        self.session = session


@pytest.mark.usefixtures("clock")
def test_a_listener_gets_categories_while_recording_goes_on(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    source = Training()
    recorder = Recorder(source, None, stacks=False, max_events=1000)
    messages = []
    with recorder:
        recorder.subscribe(messages.append)
        weights = source.allocate(1 << 20)
        source.session.add_tensors(0, PARAMETER, [(weights, "layer.weight")])
        recorder.recording  # noqa: B018 - moves what was recorded
        early = sent(messages)
        late = []
        recorder.subscribe(late.append)
        snapshot = sent(late)
        source.free(weights)

    assert [row["category"] for row in early] == ["parameter"]
    assert [row["category"] for row in snapshot] == ["parameter"]
    assert sent(messages)[0] == early[0]


def sent(messages):
    """Return the rows of the categories in messages."""
    return [
        row
        for message in messages
        for name, stream in message.tables
        if name == "categories"
        for row in pa.ipc.open_stream(stream).read_all().to_pylist()
    ]
