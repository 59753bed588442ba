"""Allocations through CuPy's objects within ranges: events refer to their range."""

import threading
from types import SimpleNamespace

import pytest
from cupy.cuda import memory

import gpuviz
from gpuviz import _core
from gpuviz.recorder.recorder import Recorder
from tests.unit.recorder.simulated_source import SimulatedSource


class ClientSource(SimulatedSource):
    """CuPy's client of a simulated allocator, or of the observer of a function."""

    def __init__(self, mode):
        super().__init__()
        arguments = {
            "memory_module": memory,
            "runtime_module": SimpleNamespace(),
            "stream_module": SimpleNamespace(),
            "current_device": lambda: 0,
            "current_stream": lambda: 0,
        }
        if mode == "caching":
            self.client = _core.CupyAllocator(
                **arguments,
                open_device=lambda _: self.allocators[0],
                out_of_memory=RuntimeError,
            )
            self.malloc = _core.cupy_malloc(lambda: self.client)
            return
        below = ClientSource("caching")
        self.below = below
        self.client = _core.CupyObserver(**arguments, allocator=below.malloc, total_bytes=None)
        self.malloc = _core.observed_malloc(lambda: self.client)

    def begin(self, session):
        super().begin(session)
        self.client.set_session(session, stacks=False)

    def end(self):
        self.client.set_session(None)
        return super().end()


def joined(recording):
    """Return pairs of an allocation's size and the names of the ranges around it."""
    texts = {row["id"]: row["text"] for row in recording.table("strings").to_pylist()}
    ranges = {row["id"]: row for row in recording.table("ranges").to_pylist()}
    found = {}
    for event in recording.table("memory_events").to_pylist():
        if event["action"] in {"alloc", "free_requested"}:
            path, number = [], event["range"]
            while number:
                row = ranges[number]
                assert row["time"] <= event["time"] <= row["end"]
                assert row["thread"] == event["thread"]
                path.append(texts[row["name"]])
                number = row["parent"]
            found[event["requested_size"], event["action"]] = path
    return found


@pytest.mark.parametrize("mode", ["caching", "observe"])
def test_events_in_nested_ranges_of_two_threads_name_the_innermost_one(mode):
    source = ClientSource(mode)
    both_inside = threading.Barrier(2)

    def work(name, size):
        with gpuviz.range(f"{name} outer"):
            kept = source.malloc(size)
            with gpuviz.range(f"{name} inner"):
                both_inside.wait()
                source.malloc(size + 1)
                both_inside.wait()
            del kept
        source.malloc(size + 2)

    with Recorder(source, None, stacks=False, max_events=1000) as recorder:
        threads = [
            threading.Thread(target=work, args=arguments)
            for arguments in (("a", 1000), ("b", 2000))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    expected = {}
    for name, size in (("a", 1000), ("b", 2000)):
        for action in ("alloc", "free_requested"):
            expected[size, action] = [f"{name} outer"]
            expected[size + 1, action] = [f"{name} inner", f"{name} outer"]
            expected[size + 2, action] = []
    assert joined(recorder.recording) == expected
