"""The workloads: their own checks, and streams and lines in their recordings."""

from functools import cache

import pytest

from gpuviz.analysis.launches import calls_of
from gpuviz.commands.workloads import WORKLOADS
from gpuviz.data.columns import codes, plain
from gpuviz.data.tables import DICTIONARIES
from tests.gpu.record_workloads import LARGEST_ROWS, record


@cache
def recorded(name):
    """Return the recording of a workload at the scale of the shipped ones."""
    recording, _ = record(name)
    return recording


def overlap_of(name):
    """Return the share of copy time hidden by kernels."""
    (device,) = recorded(name).overlap().devices
    return device.kernel_copy_overlap


def copied_bytes(name):
    """Return the bytes of copies from and to the host by its memory."""
    copied: dict[str, int] = {}
    for row in recorded(name).copies().to_pylist():
        if row["copy_kind"] in {"host_to_device", "device_to_host"}:
            copied[row["host_memory"]] = copied.get(row["host_memory"], 0) + row["bytes"]
    return copied


def share(copied, memory):
    return copied.get(memory, 0) / sum(copied.values())


@pytest.mark.gpu_limit_leaks("1 MiB")
@pytest.mark.parametrize("name", WORKLOADS)
def test_a_small_workload_passes_its_own_checks(name):
    results = WORKLOADS[name].run(scale=0.01)

    assert min(results.values()) > 0


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_kernel_is_attributed_to_a_line_of_its_program(name):
    recording = recorded(name)
    activities = recording.table("activities")
    kinds = DICTIONARIES["activities", "kind"]
    is_kernel = codes(activities["kind"], kinds) == kinds.index("kernel")
    correlations = plain(activities["correlation"])[is_kernel]
    calls = calls_of(recording.tables, correlations[correlations != 0])
    stacks = plain(recording.table("api_calls")["stack"])[calls]
    frames = [recording.call_stacks.user_frame(stack) for stack in set(stacks.tolist())]

    assert len(calls) > 0
    assert (calls == -1).sum() == 0
    assert {frame.filename.rpartition("/")[2] for frame in frames if frame} == {f"{name}.py"}
    assert None not in frames


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_recording_is_whole_and_small(name):
    recording = recorded(name)

    assert recording.is_complete
    assert recording.manifest.dropped_activities == 0
    assert recording.notes == ()
    assert 0 < recording.table("activities").num_rows <= LARGEST_ROWS
    assert recording.table("launch_blocks").num_rows > 0


@pytest.mark.parametrize(
    ("name", "streams"),
    [
        ("image_pipeline", {"images", "label copies"}),
        ("fft_filter", {"even chunks", "odd chunks"}),
    ],
)
def test_streams_of_a_program_have_its_names(name, streams):
    recording = recorded(name)
    busy = {stream.stream for stream in recording.overlap().streams}
    named = {row["name"] for row in recording.table("streams").to_pylist() if row["id"] in busy}

    assert streams <= named


def test_images_are_copied_behind_kernels_from_pinned_memory():
    copied = copied_bytes("image_pipeline")

    assert overlap_of("image_pipeline") >= 0.5
    assert share(copied, "pinned") > 0.99


def test_the_filter_does_not_overlap_because_its_memory_is_pageable():
    copied = copied_bytes("fft_filter")
    streams = recorded("fft_filter").overlap().streams
    busy = sorted(stream.busy_ns for stream in streams)

    assert overlap_of("fft_filter") <= 0.1
    assert share(copied, "pageable") > 0.99
    assert busy[-2] > 0.3 * busy[-1]  # two streams share the work
