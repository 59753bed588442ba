"""How often samples are taken."""

from types import SimpleNamespace

import pytest

from gpuviz.recorder import samples


@pytest.mark.parametrize(("works", "waits", "pause"), [(2, 0, 200), (2, 50, 520), (1, 3, 100)])
def test_a_pause_is_long_if_samples_work_and_also_if_they_wait(monkeypatch, works, waits, pause):
    now = SimpleNamespace(clock=0, worked=0)
    read = {"monotonic": "clock", "perf_counter": "clock", "thread_time": "worked"}
    clock = {name: lambda kind=kind: getattr(now, kind) for name, kind in read.items()}
    monkeypatch.setattr(samples, "time", SimpleNamespace(**clock))
    taken = []

    def take():
        taken.append(now.clock)
        now.clock += works + waits
        now.worked += works

    regular = samples.Samples(take)
    regular.take()
    for _ in range(pause - 1):
        now.clock += 1
        regular.take()
    assert taken == [0]

    now.clock += 1
    regular.take()
    assert taken == [0, works + waits + pause]
