"""Whether kernels read and write what recordings say, from the memory before and after."""

from collections import Counter

import numpy as np
import pytest

import gpuviz
from gpuviz.commands.workloads import WORKLOADS
from tests.gpu.access_programs import calls
from tests.gpu.record_workloads import record

MOST_UNKNOWN = 0.15
TO_HOST = 2  # cudaMemcpyDeviceToHost


def touches(recording):
    """Return the block, mode and kernel of each touch, in the order of the launches."""
    strings = {row["id"]: row["text"] for row in recording.table("strings").to_pylist()}
    kernels = {
        row["correlation"]: strings.get(row["name"], "")
        for row in recording.table("activities").to_pylist()
    }
    return [
        (row["block"], row["mode"], kernels.get(row["correlation"], ""))
        for row in recording.table("launch_blocks").to_pylist()
    ]


@pytest.mark.parametrize("name", WORKLOADS)
def test_most_blocks_that_launches_touch_have_a_known_mode(name):
    recording, _ = record(name)
    found = touches(recording)
    unknown = Counter(kernel[:80] for _, mode, kernel in found if mode == "unknown")
    share = sum(unknown.values()) / len(found)

    assert share <= MOST_UNKNOWN, (round(share, 3), unknown.most_common(6))


@pytest.fixture
def cp():
    import cupy

    before = cupy.cuda.get_allocator()
    cupy.cuda.set_allocator(gpuviz.malloc)
    yield cupy
    cupy.cuda.set_allocator(before)


def test_what_is_only_read_stays_and_what_is_new_is_written_first(cp):
    programs = calls(cp)
    with gpuviz.record(stacks=False):
        for call in programs.values():
            call()
    changed_though_read, read_first = [], []
    for name, call in programs.items():
        changed, recording = changed_blocks(cp, call)
        found = touches(recording)
        for block, is_changed in changed.items():
            modes = {mode for at, mode, _ in found if at == block}
            if is_changed and modes == {"read"}:
                changed_though_read.append((name, [each for each in found if each[0] == block]))
        firsts = {block: (mode, kernel) for block, mode, kernel in reversed(found)}
        read_first += [
            (name, kernel)
            for block, (mode, kernel) in firsts.items()
            if block not in changed and mode == "read" and not has_other_writers(recording, block)
        ]

    assert changed_though_read == []
    assert read_first == []


def changed_blocks(cp, call):
    """Return whether each block that lives before a call changes in it, and its recording."""

    def contents():
        cp.cuda.Device().synchronize()
        found = {}
        for segment in gpuviz.memory_snapshot():
            for block in segment["blocks"]:
                if block["state"] == "active_allocated":
                    held = np.empty(block["size"], np.uint8)
                    address = block["address"]
                    cp.cuda.runtime.memcpy(held.ctypes.data, address, held.nbytes, TO_HOST)
                    found[address] = held.tobytes()
        return found

    before = contents()
    with gpuviz.record(stacks=False) as recorder:
        result = call()
        cp.cuda.Device().synchronize()
    after = contents()
    del result
    changed = {block: after.get(block) != held for block, held in before.items()}
    return changed, recorder.recording


def has_other_writers(recording, block):
    """Return whether copies or memsets may have written to a block; they are not told which."""
    del block
    kinds = recording.table("activities")["kind"].cast("string").to_pylist()
    return "memcpy" in kinds or "memset" in kinds
