"""R41: waits for a buffer that the program uses again."""

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.timed_programs import (
    timed,
    with_pinned_memory,
)
from tests.unit.advice.waiting_programs import (
    STEPS,
    frames,
    hands_over,
    reads_pinned_memory_each_step,
)


def tiles(gpu, *, slots=2):
    """Compute in slots that take turns, and wait for one only where the next tile needs it."""
    streams = [gpu.Stream(non_blocking=True) for _ in range(slots)]
    results = [gpu.empty(1 << 16) for _ in streams]
    for step in range(STEPS * slots):
        slot = step % slots
        streams[slot].synchronize()
        gpu.work_on_host(400e-6)
        with streams[slot]:
            gpu.launch("tile", duration=1e-3, writes=[results[slot]])
            gpu.copy_to_host(results[slot], pinned=True)


def in_slots(recording, count):
    """Return a recording whose copies use some slots of a block of pinned memory in turn."""
    kinds = recording.tables["activities"]["copy_kind"].to_pylist()
    copies = sum(kind in {"host_to_device", "device_to_host"} for kind in kinds)
    return with_pinned_memory(recording, [(0, each % count << 26) for each in range(copies)])


def waits_found(recording):
    return [each.title for each in findings(recording, small=True) if each.rule == "R41"]


@pytest.mark.parametrize(
    ("program", "buffers", "count"),
    [
        pytest.param(tiles, 2, 0, id="a buffer for each slot"),
        pytest.param(tiles, 1000, 1, id="a buffer for each tile"),
        pytest.param(lambda gpu: tiles(gpu, slots=1), 1, 1, id="one slot"),
        pytest.param(reads_pinned_memory_each_step, 1, 1, id="a wait right after the copy"),
    ],
)
def test_a_wait_for_the_buffer_that_the_next_copy_uses_is_needed(program, buffers, count):
    assert len(waits_found(in_slots(timed(program), buffers))) == count


@pytest.mark.parametrize("slots", [8, None])
def test_a_wait_for_the_slot_of_a_ring_that_the_host_fills_next_is_needed(slots):
    """The slots are of one block, or allocated before the recording began: they are not known."""
    recording = timed(frames)

    assert waits_found(in_slots(recording, slots) if slots else recording) == []


@pytest.mark.parametrize(
    ("recorded", "line"),
    [
        pytest.param(
            lambda: in_slots(timed(frames), 1000),
            "`uploaded[slot].synchronize()`",
            id="memory that no other copy uses",
        ),
        pytest.param(
            lambda: timed(lambda gpu: frames(gpu, at_once=True)),
            "`uploaded[slot].synchronize()`",
            id="right after the upload",
        ),
        pytest.param(lambda: timed(hands_over), "`uploaded.synchronize()`", id="to use the array"),
    ],
)
def test_another_wait_for_an_upload_is_found(recorded, line):
    (title,) = waits_found(recorded())

    assert title.startswith(f"{line} waits ")
