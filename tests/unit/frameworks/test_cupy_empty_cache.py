"""`gpuviz.empty_cache` during a recording of CuPy's memory is recorded with its line."""

import pytest

from gpuviz.allocator import memory as allocator
from gpuviz.recorder.recorder import Recorder
from tests.unit.frameworks.simulated_cupy import ClientSource

MIB = 1 << 20


@pytest.mark.parametrize("stacks", [True, False])
def test_a_call_has_its_line_if_call_stacks_are_recorded(stacks):
    source = ClientSource()

    with Recorder(source, None, stacks=stacks, max_events=100) as recorder:
        source.malloc(30 * MIB)
        source.client.empty_cache(source.allocators[0])
    recording = recorder.recording

    [row] = [
        row
        for row in recording.table("memory_events").to_pylist()
        if row["action"] == "empty_cache"
    ]
    frame = recording.call_stacks.user_frame(row["stack"])
    assert row["size"] == 30 * MIB
    assert (frame and frame.source) == (
        "source.client.empty_cache(source.allocators[0])" if stacks else None
    )
    assert row["thread"] in recording.table("threads")["id"].to_pylist()


def test_without_a_recording_the_allocator_is_asked_itself():
    source = ClientSource()
    source.malloc(30 * MIB)

    source.client.empty_cache(source.allocators[0])

    assert source.allocators[0].memory_stats()["reserved_bytes.all.current"] == 0
    assert allocator.caching_allocators() == {}
