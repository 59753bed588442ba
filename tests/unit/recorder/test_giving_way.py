"""How soon a thread of the program gets the GIL while a recording is drained."""

import sys

import pytest

USUAL_S = 0.005


class Watched:
    """Notes the switch interval while a source is asked for its devices, and may set another."""

    def __init__(self, source):
        self._devices = source.devices
        self.intervals = []
        self.set_s = 0.0

    def devices(self, active):
        self.intervals.append(sys.getswitchinterval())
        if self.set_s:
            sys.setswitchinterval(self.set_s)
        return self._devices(active)


@pytest.fixture
def watched(source, monkeypatch):
    before = sys.getswitchinterval()
    sys.setswitchinterval(USUAL_S)
    watched = Watched(source)
    monkeypatch.setattr(source, "devices", watched.devices)
    yield watched
    sys.setswitchinterval(before)


def test_a_drain_gives_way_and_leaves_the_switch_interval_as_it_was(watched, source, new_recorder):
    with new_recorder(source) as recorder:
        source.allocate(1234)
        assert recorder.recording.table("memory_events").num_rows

    assert min(watched.intervals) == pytest.approx(1e-4)
    assert sys.getswitchinterval() == USUAL_S


@pytest.mark.parametrize("interval", [0.002, 1e-5])
def test_what_the_program_sets_meanwhile_or_before_stays(watched, source, new_recorder, interval):
    watched.set_s = interval
    with new_recorder(source):
        source.allocate(1234)

    assert sys.getswitchinterval() == pytest.approx(interval)
