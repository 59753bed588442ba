"""`Recording.what_if`: a row for the recording and each setting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuviz
from tests.examples import examples
from tests.unit.advice.programs import recorded
from tests.unit.replay.recorded import SHIPPED, shipped
from tests.unit.replay.segment_programs import (
    EXPANDABLE,
    MIB,
    large_before_small,
    parts_of_a_segment,
    random_gpu_program,
    small_before_large,
    small_only,
)
from tests.unit.replay.torch_programs import random_program


def reserved_mib(program, *settings):
    """Return the MiB reserved at the peak by a program on a simulated GPU, by setting."""
    rows = recorded(program).what_if(settings).to_pylist()
    return [row["peak_reserved"] / MIB for row in rows[1:]]


def mapped_mib(recording):
    """Return the MiB that are mapped after each allocation, with expandable segments."""
    rows = gpuviz.replay(recording, settings=EXPANDABLE).table("memory_events").to_pylist()
    mapped = np.cumsum([row["size"] * (row["action"] == "segment_map") for row in rows]) // MIB
    return [int(mapped[at]) for at, row in enumerate(rows) if row["action"] == "alloc"]


def holes(gpu):
    blocks = [gpu.empty(16 * MIB) for _ in range(4)]
    blocks[0] = blocks[2] = None
    return [*blocks, gpu.empty(32 * MIB)]


def large_after_all(gpu):
    blocks = [gpu.empty(16 * MIB) for _ in range(4)]
    del blocks
    return gpu.empty(32 * MIB)


def shrinking_below_one_mib(gpu):
    blocks = [gpu.empty(2 * MIB) for _ in range(10)]
    del blocks
    return [gpu.empty(MIB // 2) for _ in range(10)]


def test_a_larger_array_does_not_fit_into_the_segments_of_smaller_ones():
    assert reserved_mib(small_before_large, "") == [256]
    assert reserved_mib(small_only, "") == [128]


def test_smaller_arrays_fit_into_the_segments_of_larger_ones():
    assert reserved_mib(large_before_small, "") == [128]


def test_expandable_segments_grow_by_pages():
    recording = recorded(small_only)
    (row,) = recording.what_if([EXPANDABLE]).slice(1).to_pylist()

    assert row["peak_reserved"] == 140 * MIB
    assert row["driver_calls"] == 7
    assert mapped_mib(recording) == [20, 40, 60, 80, 80, 100, 120, 140]


def test_larger_arrays_reuse_the_pages_of_smaller_ones():
    recording = recorded(small_before_large)

    assert reserved_mib(small_before_large, EXPANDABLE) == [140]
    assert mapped_mib(recording)[7:] == [140] * 5


def test_an_expandable_segment_grows_over_holes_until_all_is_free():
    assert reserved_mib(small_only, EXPANDABLE) == [140]
    assert reserved_mib(holes, EXPANDABLE) == [100]
    assert reserved_mib(large_after_all, EXPANDABLE) == [80]


def test_arrays_that_shrink_below_1_mib_need_segments_of_another_pool():
    without = reserved_mib(lambda gpu: [gpu.empty(2 * MIB) for _ in range(10)], "")

    assert without == [20]
    assert reserved_mib(shrinking_below_one_mib, "") == [20 + 6]
    assert reserved_mib(shrinking_below_one_mib, "cupy") == [20]


def test_cupys_pool_has_no_size_classes():
    assert reserved_mib(small_before_large, "cupy") == [256]
    assert reserved_mib(lambda gpu: gpu.empty(3 * MIB + 1), "cupy", "") == [3 + 512 / MIB, 20]


def facts_of(replay):
    """Return the columns that follow from a replay's events."""
    stats = replay.memory_stats()
    events = replay.table("memory_events").to_pylist()
    failed = [row["time"] for row in events if row["action"] == "oom"]
    return {
        "peak_allocated": replay.peak(0).bytes,
        "peak_reserved": stats["reserved_bytes.all.peak"],
        "peak_reserved_lower": stats["reserved_bytes.all.peak"],
        "num_alloc_retries": replay.manifest.memory_stats[0]["num_alloc_retries"],
        "num_ooms": len(failed),
        "first_failure_ns": failed[0] if failed else None,
        "fragmentation": pytest.approx(1 - replay.fragmentation("peak").utilization),
    }


@given(
    seed=st.integers(0, 1000),
    settings=st.sampled_from(["", EXPANDABLE, "max_split_size_mb:32", "cupy"]),
    capacity=st.sampled_from([None, 2 << 30]),
)
def test_a_row_is_what_the_replay_under_its_settings_shows(
    tmp_path_factory, seed, settings, capacity
):
    recording = random_program(seed, count=200).recording(tmp_path_factory.mktemp("torch"))
    (row,) = recording.what_if(settings, capacity=capacity).slice(1).to_pylist()
    replay = gpuviz.replay(recording, settings=settings, capacity=capacity)

    assert {name: row[name] for name in facts_of(replay)} == facts_of(replay)


@examples(20)
@given(
    seed=st.integers(0, 1 << 32),
    before=st.sampled_from(["", EXPANDABLE, "roundup_power2_divisions:4"]),
    after=st.sampled_from(["", EXPANDABLE, "max_split_size_mb:20", "large_segment_size_mb:40"]),
    memory=st.sampled_from([200 * MIB, 4 << 30]),
)
def test_a_row_is_what_the_program_needs_under_its_settings(seed, before, after, memory):
    def ran(settings):
        gpu = gpuviz.SimulatedGPU(memory=memory, settings=settings, real_time=False)
        with gpuviz.record(device=gpu, stacks=False) as recorder:
            # When the work of another stream ends depends on the time that allocations take.
            random_gpu_program(gpu, seed, shares=False)
        return recorder.recording

    original, changed = ran(before), ran(after)
    (row,) = original.what_if(after).slice(1).to_pylist()
    stats = changed.memory_stats()

    # A program that fails differently frees other blocks.
    if original.memory_stats()["num_ooms"] == stats["num_ooms"] == 0:
        assert row["peak_reserved"] == stats["reserved_bytes.all.peak"]
        assert row["peak_allocated"] == stats["allocated_bytes.all.peak"]
        assert row["num_alloc_retries"] == stats["num_alloc_retries"]


@pytest.mark.parametrize("name", SHIPPED)
def test_under_its_own_settings_a_recording_is_itself(name):
    recording, own = shipped(name).what_if("").to_pylist()

    assert recording.pop("settings") == "recorded"
    assert own.pop("settings") == ""
    assert recording == own


def test_the_first_failure_is_a_row_of_the_recording_and_its_time():
    recording = recorded(small_only)
    (row,) = recording.what_if("", capacity=100 * MIB).slice(1).to_pylist()
    event = recording.table("memory_events").slice(row["first_failure"], 1).to_pylist()[0]

    assert (row["num_ooms"], row["num_alloc_retries"]) == (2, 2)
    assert row["peak_reserved"] == 96 * MIB
    assert (event["action"], event["size"]) == ("alloc", 16 * MIB)
    assert event["time"] == row["first_failure_ns"]


def test_one_policy_can_fit_where_another_fails():
    rows = recorded(parts_of_a_segment).what_if(["", EXPANDABLE], capacity=320 * MIB)

    assert rows["num_ooms"].to_pylist() == [0, 1, 0]
