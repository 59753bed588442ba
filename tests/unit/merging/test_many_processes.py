"""What many processes cost: as many calls for each one more, however many there are."""

import gc
import sys
from pathlib import Path

import pytest

import gpuviz
from tests.unit.merging.processes_of_a_run import process

GPUVIZ = str(Path(gpuviz.__file__).parent)


def one():
    gpu = gpuviz.SimulatedGPU(memory=1 << 30, real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        kept = [gpu.empty(1 << 20), gpu.empty_pinned(1 << 20)]
        for _ in range(3):
            gpu.launch("step", writes=kept[:1], duration=1e-5)
        gpu.synchronize()
    return recorder.recording


def calls(function):
    """Return how many functions of gpuviz a function calls, and its value."""
    count = 0

    def count_call(frame, event, _):
        nonlocal count
        count += event == "call" and frame.f_code.co_filename.startswith(GPUVIZ)

    # What earlier tests left would be finalized in between.
    gc.collect()
    gc.disable()
    before = sys.getprofile()
    sys.setprofile(count_call)
    try:
        value = function()
    finally:
        sys.setprofile(before)
        gc.enable()
    return count, value


@pytest.mark.parametrize("task", ["merge", "report"])
def test_each_process_more_costs_the_same(task, tmp_path):
    recording = one()
    counts = []
    for number in (8, 8, 16, 32):
        parts = [process(recording, each, ranks=number) for each in range(number)]
        count, merged = calls(lambda parts=parts: gpuviz.merge(parts))
        if task == "report":
            path = tmp_path / f"{len(counts)}.html"
            # Else the thread that writes the archive finds them, or the report, or both.
            assert len(merged.processes) == number
            count, _ = calls(lambda merged=merged, path=path: merged.report(path))
        counts.append(count)

    # The first one imports.
    _, few, more, many = counts
    assert many - more < 2.2 * (more - few)
