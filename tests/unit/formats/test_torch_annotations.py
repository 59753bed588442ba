"""Annotations and metadata in memory snapshots of PyTorch."""

import pytest

from gpuviz.report.iterations import iterations_text
from tests.unit.formats.plain_snapshots import (
    FIRST_US,
    MIB,
    events,
    read,
)
from tests.unit.formats.torch_snapshots import BASE, block, event, freed_block, whole


def test_annotations_and_metadata_are_ranges(tmp_path):
    annotations = [
        {"name": "step", "stage": "START", "device": 0, "time_us": FIRST_US},
        {"name": "step", "stage": "END", "device": 0, "time_us": FIRST_US + 9},
    ]
    trace = [
        each | {"time_us": FIRST_US + row, "user_metadata": text}
        for row, (each, text) in enumerate(
            zip(freed_block(20 * MIB, 5), ["step", "step", "load", ""], strict=True)
        )
    ]

    recording = read(
        whole([block(BASE, 20 * MIB, "inactive")], trace, external_annotations=annotations),
        tmp_path,
    )

    assert [row["range"] for row in events(recording)] == ["step", "step", "load", ""]
    spans = [(row["time"], row["end"]) for row in recording.table("ranges").to_pylist()]
    assert spans == [(0, 9000), (2000, 2000)]


def stepping(optimizers):
    """Return a snapshot with a step of an optimizer in each 100 us, and a block before each."""
    trace, annotations = [], []
    for row, name in enumerate(optimizers):
        begun = FIRST_US + 100 * row
        requested = (row + 1) * MIB
        trace += [
            event("alloc", BASE, requested, time_us=begun + 10),
            event("free_requested", BASE, requested, time_us=begun + 50),
            event("free_completed", BASE, requested, time_us=begun + 50),
        ]
        annotations += [
            {"name": f"Optimizer.step#{name}.step", "stage": stage, "device": 0, "time_us": time}
            for stage, time in (("START", begun + 80), ("END", begun + 90))
        ]
    first = event("segment_alloc", BASE, 20 * MIB, time_us=FIRST_US)
    return whole(
        [block(BASE, 20 * MIB, "inactive")], [first, *trace], external_annotations=annotations
    )


def test_the_steps_of_an_optimizer_divide_a_snapshot_into_iterations(tmp_path):
    recording = read(stepping(["SGD", "Adam", *["SGD"] * 8]), tmp_path)

    found = recording.iterations()

    # The first step begins at an unknown time, and Adam's one step is within one of SGD.
    assert found["start"].to_pylist() == [90_000, *range(290_000, 990_000, 100_000)]
    assert found["end"].to_pylist() == [*range(290_000, 1_090_000, 100_000)]
    assert found["peak_bytes"].to_pylist() == [number * MIB for number in range(3, 11)]
    assert "each ends with a step of an optimizer" in iterations_text(found)[0]
    assert "busy" not in " ".join(iterations_text(found))


@pytest.mark.parametrize("optimizers", [["SGD"] * 3, []])
def test_few_steps_are_no_iterations(optimizers, tmp_path):
    recording = read(stepping(optimizers), tmp_path)

    assert recording.iterations().num_rows == 0


def test_annotations_without_events_begin_the_recording(tmp_path):
    annotations = [
        {"stage": "START", "name": "epoch", "device": 0, "time_us": FIRST_US},
        {"stage": "START", "name": "step", "device": 0, "time_us": FIRST_US + 2},
        {"stage": "END", "name": "step", "device": 0, "time_us": FIRST_US + 5},
    ]
    values = whole([block(BASE, 2 * MIB)], [], external_annotations=annotations)

    recording = read(values, tmp_path)

    table = recording.table("ranges")
    assert table["time"].to_pylist() == [0, 2000]
    assert table["end"].to_pylist() == [-1, 5000]
    assert recording.manifest.start_unix_ns == 1000 * FIRST_US
    assert recording.manifest.duration_ns == 5000
    assert recording.memory_snapshot()[0]["total_size"] == 2 * MIB
