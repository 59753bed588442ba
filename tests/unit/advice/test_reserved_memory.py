"""R11, R15 and R16: what the allocator reserves, and failed requests."""

from contextlib import suppress
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuviz
from gpuviz import _core
from gpuviz.advice.reserved.reserved_memory import LEAST_SHARE, ReservedMemory
from gpuviz.conclusions.wording import saving
from gpuviz.recording import Recording
from tests.examples import examples
from tests.unit.advice.programs import MIB
from tests.unit.advice.reserving_programs import one, peak, recorded, rules
from tests.unit.replay.recorded import SHIPPED, shipped
from tests.unit.replay.segment_programs import (
    EXPANDABLE,
    large_before_small,
    parts_of_a_segment,
    random_gpu_program,
    small_before_large,
)


def of(recording, **fields):
    """Return a recording with other facts in its manifest."""
    return Recording(recording.tables, replace(recording.manifest, **fields))


def large_first(gpu):
    largest = [gpu.empty(32 * MIB) for _ in range(4)]
    del largest
    return small_before_large(gpu)


def test_a_setting_that_reserves_less_is_found_and_saves_what_was_predicted():
    before, after = recorded(small_before_large), recorded(small_before_large, settings=EXPANDABLE)
    finding = one(before, "R11")

    assert finding.saved_reserved_bytes == peak(before) - peak(after) == 116 * MIB
    assert finding.saved_bytes == finding.saved_ns == 0
    assert finding.title == (
        "With `expandable_segments:True` the allocator would reserve 140 MiB instead of 256 MiB."
    )
    assert finding.reason == (
        "When `return [gpu.empty(32 * MIB) for _ in range(4)]` requested 32.0 MiB, 128 MiB of 224 "
        "MiB reserved bytes were free, but no free block could serve it. The recorded allocations "
        "and frees were repeated under both settings."
    )
    assert finding.change == (
        'Call `gpuviz.set_allocator_settings("expandable_segments:True")` before the first '
        "allocation. Or, with the allocator as it is, allocate the arrays of that time once at the "
        "start, largest first, and delete them: then the allocator would reserve 128 MiB instead "
        "of 256 MiB."
    )
    assert peak(recorded(large_first)) == 128 * MIB
    assert saving(finding) == "116 MiB of reserved memory"
    assert [each.amount for each in finding.lines] == ["32.0 MiB"]
    assert rules(before) == ["R11"]
    assert rules(after) == []


def test_the_request_that_grew_the_memory_most_is_named():
    def with_a_small_one(gpu):
        large = small_before_large(gpu)
        return large, [gpu.empty(600 << 10) for _ in range(20)]

    finding = one(recorded(with_a_small_one), "R11")

    assert "requested 32.0 MiB, 128 MiB of 224 MiB reserved bytes were free" in finding.reason


def test_what_reserves_no_less_under_another_setting_is_no_finding():
    assert rules(recorded(large_before_small, memory=200)) == []


def test_on_a_device_that_is_mostly_empty_nothing_is_said():
    assert rules(recorded(small_before_large, memory=1024)) == []


def test_a_failed_request_that_would_succeed_is_found():
    before = recorded(parts_of_a_segment)
    after = recorded(parts_of_a_segment, settings=EXPANDABLE)
    finding = one(before, "R11")

    assert (before.memory_stats()["num_ooms"], after.memory_stats()["num_ooms"]) == (1, 0)
    # 240 MiB and the request of 100 MiB, instead of the 240 MiB of the other program.
    assert finding.saved_reserved_bytes == 340 * MIB - peak(after) == 100 * MIB
    assert finding.title == (
        "With `expandable_segments:True` the request that failed would have succeeded."
    )
    assert finding.reason == (
        "When `return [*blocks, gpu.empty(100 * MIB)]` requested 100 MiB, 120 MiB of 240 MiB "
        "reserved bytes were free, but no free block could serve it. The recorded allocations and "
        "frees were repeated under both settings. The program would reserve at most 240 MiB."
    )
    assert rules(before) == ["R11"]


def test_after_earlier_allocations_a_setting_is_only_likely_to_help():
    gpu = gpuviz.SimulatedGPU(memory=320 * MIB)
    earlier = gpu.empty(4 * MIB)
    with gpuviz.record(device=gpu) as recorder:
        small_before_large(gpu)

    assert earlier.nbytes == 4 * MIB
    assert one(recorder.recording, "R11").certainty == "likely"
    assert one(recorded(small_before_large), "R11").certainty == "likely"


def test_another_order_is_named_only_if_it_helps():
    assert one(recorded(parts_of_a_segment), "R11").change == (
        'Call `gpuviz.set_allocator_settings("expandable_segments:True")` before the first '
        "allocation."
    )


def test_several_failed_requests_are_counted():
    def program(gpu):
        segment = gpu.empty(240 * MIB)
        del segment
        blocks = [gpu.empty(60 * MIB) for _ in range(4)]
        blocks[0] = blocks[2] = None
        for _ in range(3):
            with suppress(_core.OutOfMemoryError):
                gpu.empty(100 * MIB)

    assert one(recorded(program), "R11").title == (
        "With `expandable_segments:True` none of the 3 requests that failed would have failed."
    )


def test_a_request_that_fails_under_every_setting_is_no_finding():
    def program(gpu):
        blocks = [gpu.empty(60 * MIB) for _ in range(5)]
        return [*blocks, gpu.empty(60 * MIB)]

    recording = recorded(program)

    assert recording.memory_stats()["num_ooms"] == 1
    assert rules(recording) == []


def reserves_for_larger(gpu):
    large = gpu.empty(128 * MIB)
    del large
    return [gpu.empty(40 * MIB) for _ in range(3)]


def test_a_setting_of_the_program_that_costs_memory_is_found():
    setting = "max_split_size_mb:32"
    before = recorded(reserves_for_larger, settings=f"{setting},roundup_power2_divisions:4")
    after = recorded(reserves_for_larger, settings="roundup_power2_divisions:4")
    finding = one(before, "R11")

    assert finding.title == (
        "Without `max_split_size_mb:32` the allocator would reserve 128 MiB instead of 248 MiB."
    )
    assert finding.saved_reserved_bytes == peak(before) - peak(after) == 120 * MIB
    assert finding.change == (
        'Call `gpuviz.set_allocator_settings("roundup_power2_divisions:4")` before the first '
        "allocation."
    )


def test_the_only_setting_is_removed():
    finding = one(recorded(reserves_for_larger, settings="max_split_size_mb:32"), "R11")

    assert finding.change == "Remove `max_split_size_mb:32` from the allocator's settings."


def rounded_up(gpu):
    return [gpu.empty(33 * MIB) for _ in range(6)]


def test_what_rounding_adds_is_not_called_free():
    setting = "roundup_power2_divisions:2"
    before, after = recorded(rounded_up, settings=setting), recorded(rounded_up)
    finding = one(before, "R11")

    assert finding.saved_reserved_bytes == peak(before) - peak(after) == (6 * 48 - 6 * 34) * MIB
    assert finding.reason.startswith(
        "When `return [gpu.empty(33 * MIB) for _ in range(6)]` requested 33.0 MiB, 75.0 MiB of "
        "240 MiB reserved bytes were added by rounding sizes up."
    )


def test_a_program_of_torch_gets_its_environment_variable():
    recording = recorded(small_before_large)
    finding = one(
        of(recording, allocator="observe", allocator_name="PyTorch's caching allocator"), "R11"
    )

    assert finding.change.startswith(
        "Set the environment variable `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`. Or"
    )


def test_a_program_of_cupy_is_told_what_its_own_pool_would_reserve():
    finding = one(of(recorded(small_before_large), cupy="14.2.0"), "R11")

    assert finding.reason.endswith(
        "CuPy's own pool, which the program uses without gpuviz, would reserve 256 MiB."
    )
    assert finding.change.startswith(
        'Call `gpuviz.set_allocator_settings("expandable_segments:True")` before the first '
        "allocation, and `cupy.cuda.set_allocator(gpuviz.malloc)` where the program is not "
        "recorded."
    )


def odd_sizes(gpu):
    """Requests of 11 MiB for which torch's allocator makes segments of 12 MiB, and CuPy's not."""
    return [gpu.empty(11 * MIB) for _ in range(20)]


def test_what_only_gpuvizs_allocator_reserves_is_no_finding_about_a_program_of_cupy():
    recording = recorded(odd_sizes)

    assert rules(of(recording, cupy="14.2.0")) == []
    assert [row["settings"] for row in recording.what_if("cupy").to_pylist()][1:] == ["cupy"]


def test_a_request_that_cupys_own_pool_would_serve_is_said():
    recording = recorded(odd_sizes, memory=230)
    finding = one(of(recording, cupy="14.2.0"), "R11")
    pool = gpuviz.replay(recording, settings="cupy")

    assert recording.memory_stats()["num_ooms"] == 1
    assert pool.memory_stats()["num_ooms"] == 0
    assert finding.title == "With CuPy's own pool the request that failed would have succeeded."
    assert finding.change == 'Keep CuPy\'s own pool: `gpuviz.record(allocator="observe")`.'
    assert finding.saved_reserved_bytes == 239 * MIB - peak(pool)


def test_a_program_on_cupys_pool_can_use_gpuvizs():
    observed = gpuviz.replay(recorded(small_before_large), settings="cupy")
    finding = one(observed, "R11")

    assert finding.title == (
        "With gpuviz's allocator and `expandable_segments:True` the allocator would reserve 140 "
        "MiB instead of 256 MiB."
    )
    assert finding.change.startswith(
        'Call `gpuviz.set_allocator_settings("expandable_segments:True"); '
        "cupy.cuda.set_allocator(gpuviz.malloc)` before the first allocation."
    )
    assert finding.saved_reserved_bytes == 116 * MIB


def test_other_allocators_and_incomplete_recordings_are_not_judged():
    recording = recorded(small_before_large)

    assert rules(of(recording, allocator="observe", allocator_name="RMM")) == []
    assert rules(of(recording, dropped=1)) == []


def test_a_recording_that_a_replay_does_not_reproduce_is_not_judged():
    assert rules(of(recorded(reserves_for_larger), settings="max_split_size_mb:32")) == []
    assert rules(of(recorded(small_before_large), settings=EXPANDABLE)) == []


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_recordings_use_little_of_their_gpu(name):
    assert rules(shipped(name)) == []


@examples(20)
@given(
    seed=st.integers(0, 1 << 32),
    settings=st.sampled_from(["", EXPANDABLE, "max_split_size_mb:20"]),
    memory=st.sampled_from([60, 200, 400]),
    cupy=st.sampled_from(["", "14.2.0"]),
)
def test_every_finding_saves_at_most_what_was_reserved_and_points_to_a_request(
    seed, settings, memory, cupy
):
    gpu = gpuviz.SimulatedGPU(memory=memory * MIB, settings=settings, real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        random_gpu_program(gpu, seed)
    recording = of(recorder.recording, cupy=cupy)

    for finding in recording.findings(small=True):
        if not finding.saved_reserved_bytes:
            continue
        row = recording.table("memory_events").slice(finding.evidence.rows[0], 1).to_pylist()[0]
        assert row["action"] in ("alloc", "oom")
        assert finding.saved_reserved_bytes <= peak(recording) + row["requested_size"]
        assert finding.title.endswith(".")
        assert finding.reason.endswith(".")
        assert finding.change.endswith(".")


def dense_program(gpu, seed, *, shares):
    """Allocate large arrays, which fill their segments, and free few."""
    random, streams, live = Random(seed), [gpu.null_stream, gpu.Stream()], []
    for _ in range(25):
        with random.choice(streams):
            live.append(gpu.empty(random.randrange(20 * MIB, 60 * MIB) & -2 * MIB))
        if shares and random.random() < 0.3:
            gpu.record_stream(live[-1], random.choice(streams))
        if random.random() < 0.1:
            live.pop(random.randrange(len(live)))


@examples(60)
@given(
    seed=st.integers(0, 1 << 32),
    shares=st.booleans(),
    settings=st.sampled_from(["", "roundup_power2_divisions:4"]),
    least_bytes=st.sampled_from([0, 100 * MIB]),
)
def test_what_is_not_replayed_would_save_nothing(seed, shares, settings, least_bytes):
    gpu = gpuviz.SimulatedGPU(settings=settings, real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        dense_program(gpu, seed, shares=shares)
    memory = ReservedMemory(recorder.recording, 0)
    if not memory.can_be_lower(least_bytes):
        least = max(least_bytes, LEAST_SHARE * memory.peak)
        for other in ("cupy", EXPANDABLE, "", "max_split_size_mb:128"):
            assert memory.saved(memory.replayed(other)) < least
        for change in ("one_stream", "no_stream_uses"):
            assert memory.saved(memory.replayed(memory.own, change)) < least


def test_few_programs_of_large_arrays_are_replayed():
    for seed in range(10):
        gpu = gpuviz.SimulatedGPU(real_time=False)
        with gpuviz.record(device=gpu) as recorder:
            dense_program(gpu, seed, shares=False)

        assert not ReservedMemory(recorder.recording, 0).can_be_lower(100 * MIB)
