import copy
import itertools
import pickle
import time

import pytest

import gpuviz
from tests.unit import simulated_programs as programs
from tests.unit.simulation.tables_of import activities, calls, overlap_ns

COPY_NS = 611_081  # 32 MiB at 55 bytes per nanosecond, and 1 us of the engine
KERNEL_NS = 600_000


def test_pinned_copies_of_two_streams_run_beside_the_kernels(recorded):
    recording = recorded(programs.pinned_pipeline, 8)

    copies, kernels = activities(recording, "memcpy"), activities(recording, "kernel")
    assert {row["end"] - row["time"] for row in copies} == {COPY_NS}
    assert {row["end"] - row["time"] for row in kernels} == {KERNEL_NS}
    assert overlap_ns(kernels, copies) > 7 * KERNEL_NS
    assert recording.overlap().devices[0].kernel_copy_ns > 7 * KERNEL_NS
    whole = copies[-1]["end"] - copies[0]["time"]
    assert whole < 0.6 * sum(row["end"] - row["time"] for row in copies + kernels)


def test_pageable_copies_of_two_streams_overlap_with_nothing(recorded):
    recording = recorded(programs.pageable_pipeline, 8)

    copies, kernels = activities(recording, "memcpy"), activities(recording, "kernel")
    assert (len(copies), len(kernels)) == (16, 8)
    assert overlap_ns(kernels, copies) == 0
    assert recording.overlap().devices[0].kernel_copy_ns == 0
    assert {row["stream"] for row in kernels} == {row["stream"] for row in copies}
    assert len({row["stream"] for row in kernels}) == 2
    for row in calls(recording, "cuMemcpyDtoHAsync_v2"):
        [copy] = [each for each in copies if each["correlation"] == row["correlation"]]
        assert row["time"] < copy["time"] < copy["end"] <= row["end"]


def test_a_host_bound_program_leaves_the_gpu_idle(recorded):
    recording = recorded(programs.host_bound, 20)

    rows = activities(recording, "kernel")
    idle = [after["time"] - before["end"] for before, after in itertools.pairwise(rows)]
    assert len(rows) == 20
    assert min(idle) > 7 * 50_000
    assert recording.overlap().devices[0].idle_host_ns > 0.9 * sum(idle)


@pytest.mark.parametrize(
    "program", [programs.pinned_pipeline, programs.pageable_pipeline, programs.host_bound]
)
def test_a_recording_of_a_program_is_the_same_when_loaded(program, gpu, tmp_path):
    path = tmp_path / "run.gpuviz"

    with gpuviz.record(path, device=gpu) as recorder:
        program(gpu)

    loaded = gpuviz.load(path)
    assert loaded.tables == recorder.recording.tables
    assert loaded.manifest.simulated
    assert loaded.table("activities").num_rows > 10


def test_in_real_time_a_program_takes_as_long_as_its_gpu_needs_and_nothing_lies_in_the_future():
    gpu = gpuviz.SimulatedGPU()
    counts = [0]

    with gpuviz.record(device=gpu) as recorder:
        for _ in range(20):
            gpu.launch("long", duration=20e-3)
        while counts[-1] < 20:
            so_far = recorder.recording
            ends = [row["end"] for row in activities(so_far)]
            assert max(ends, default=0) <= so_far.manifest.duration_ns
            counts.append(len(ends))
            time.sleep(0.005)
        gpu.synchronize()

    rows = activities(recorder.recording)
    assert rows[-1]["end"] - rows[0]["time"] == 20 * 20_000_000
    assert rows[-1]["end"] <= recorder.recording.manifest.duration_ns
    assert counts == sorted(counts)
    assert len(set(counts)) > 3
    [waited] = calls(recorder.recording, "cuCtxSynchronize")
    assert rows[-1]["end"] <= waited["end"]


def test_synchronizing_really_waits():
    gpu = gpuviz.SimulatedGPU()
    began = time.monotonic()

    gpu.launch("long", duration=50e-3)
    gpu.synchronize()

    assert time.monotonic() - began >= 50e-3


def graph(gpu):
    with gpu.Stream() as stream:
        stream.begin_capture()
    return stream.end_capture()


@pytest.mark.parametrize(
    "make",
    [
        lambda gpu: gpu,
        lambda gpu: gpu.empty(1234),
        lambda gpu: gpu.Stream(),
        lambda gpu: gpu.Event(),
        graph,
    ],
)
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_what_is_given_back_once_cannot_be_copied(gpu, make, copied):
    owner = make(gpu)

    with pytest.raises(TypeError, match=f"a {type(owner).__name__} cannot be copied or pickled"):
        copied(owner)
