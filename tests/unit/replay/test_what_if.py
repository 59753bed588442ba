"""`Recording.what_if`: a row for the recording and each setting."""

import json
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import gpuviz
from gpuviz import _core
from gpuviz.analysis.allocator_settings import line_to_use
from gpuviz.commands.cli import commands
from gpuviz.data.manifest import Manifest
from gpuviz.errors import RecordingError
from gpuviz.recording import Recording
from tests.examples import examples
from tests.torch_alone import of_torch
from tests.unit.advice.programs import recorded
from tests.unit.replay.test_replay import SHIPPED, record, shipped
from tests.unit.replay.torch_programs import random_program

MIB = 1 << 20
EXPANDABLE = "expandable_segments:True"
INSTALLED = "cupy.cuda.set_allocator(gpuviz.malloc)"


def reserved_mib(program, *settings):
    """Return the MiB reserved at the peak by a program on a simulated GPU, by setting."""
    rows = recorded(program).what_if(settings).to_pylist()
    return [row["peak_reserved"] / MIB for row in rows[1:]]


def mapped_mib(recording):
    """Return the MiB that are mapped after each allocation, with expandable segments."""
    rows = gpuviz.replay(recording, settings=EXPANDABLE).table("memory_events").to_pylist()
    mapped = np.cumsum([row["size"] * (row["action"] == "segment_map") for row in rows]) // MIB
    return [int(mapped[at]) for at, row in enumerate(rows) if row["action"] == "alloc"]


# The programs of PyTorch's "When does fragmentation occur" and their figures.


def small_before_large(gpu):
    small = [gpu.empty(16 * MIB) for _ in range(8)]
    del small
    return [gpu.empty(32 * MIB) for _ in range(4)]


def large_before_small(gpu):
    large = [gpu.empty(32 * MIB) for _ in range(4)]
    del large
    return [gpu.empty(16 * MIB) for _ in range(8)]


def small_only(gpu):
    return [gpu.empty(16 * MIB) for _ in range(8)]


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


def random_gpu_program(gpu, seed, *, shares=True):
    """Allocate, free, share and release at random, until a request fails.

    A failure is explained, which takes longer than the rest.
    """
    random, streams, live = Random(seed), [gpu.null_stream, gpu.Stream()], []
    for _ in range(150):
        drawn = random.random()
        if drawn < 0.55 or not live:
            try:
                with random.choice(streams):
                    live.append(gpu.empty(random.randrange(1, random.choice([MIB, 30 * MIB]))))
            except _core.OutOfMemoryError:
                return
        elif drawn < 0.9:
            live.pop(random.randrange(len(live)))
        elif drawn < 0.97 and shares:
            gpu.record_stream(random.choice(live), random.choice(streams))
        else:
            gpu.empty_cache()


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


def parts_of_a_segment(gpu):
    """Free every second part of a segment, which cannot be released as a whole then."""
    segment = gpu.empty(240 * MIB)
    del segment
    blocks = [gpu.empty(60 * MIB) for _ in range(4)]
    blocks[0] = blocks[2] = None
    return [*blocks, gpu.empty(100 * MIB)]


def test_the_calls_of_the_driver_have_an_estimated_time():
    def program(gpu):
        array = gpu.empty(1024 * MIB)
        del array
        return gpu.empty(1500 * MIB)

    rows = recorded(program).what_if(["", EXPANDABLE], capacity=2000 * MIB).to_pylist()

    # One segment, its release, the next segment.
    assert rows[1]["driver_calls"] == 3
    assert rows[1]["driver_ns"] == 2 * 60_000 + 45_000 + 50 * 2524 + 620 * 1024
    # Pages of 20 MiB.
    assert rows[2]["driver_calls"] == 75
    assert rows[2]["driver_ns"] == 75 * 45_000


def test_the_bounds_of_cuda_malloc_async_contain_what_the_driver_needs():
    def program(gpu):
        first = gpu.empty(40 * MIB)
        del first
        with gpu.Stream():
            other = gpu.empty(40 * MIB)
        del other
        return gpu.empty(70 * MIB), gpu.empty(1)

    (row,) = recorded(program).what_if("cudaMallocAsync").slice(1).to_pylist()

    assert row["peak_allocated"] == 70 * MIB + 1
    assert row["peak_reserved_lower"] == 72 * MIB
    # Powers of two: 64 MiB on each stream, 128 MiB, and 512 B, in units of 32 MiB.
    assert row["peak_reserved"] == 288 * MIB
    assert row["num_ooms"] == 0
    assert row["driver_calls"] is row["segments"] is row["fragmentation"] is None


def test_between_the_bounds_it_is_unknown_whether_requests_fail():
    recording = recorded(small_only)

    (row,) = recording.what_if("cudaMallocAsync", capacity=150 * MIB).slice(1).to_pylist()
    assert (row["peak_reserved_lower"], row["peak_reserved"]) == (128 * MIB, 128 * MIB)
    assert row["num_ooms"] == 0

    (row,) = recording.what_if("cudaMallocAsync", capacity=100 * MIB).slice(1).to_pylist()
    assert row["num_ooms"] is None


def random_sequence(streams, low, high, seed):
    """Yield what a program did on a real GPU: (block, size, stream), or (block,) for a free."""
    random, live, count = Random(seed), [], 0
    for _ in range(4000):
        if len(live) >= 60 or (live and random.random() < 0.45):
            yield (live.pop(random.randrange(len(live))),)
        else:
            yield count, int(2 ** random.uniform(low, high)), random.randrange(streams)
            live.append(count)
            count += 1


MEASURED = Path(__file__).parent / "data" / "cuda_malloc_async.json"


@pytest.mark.parametrize(
    ("streams", "low", "high", "seed", "reserved"), json.loads(MEASURED.read_text())
)
def test_the_bounds_of_cuda_malloc_async_hold_on_an_h200(streams, low, high, seed, reserved):
    def program(source):
        allocator, blocks = source.allocators[0], {}
        for block, *new in random_sequence(streams, low, high, seed):
            if new:
                blocks[block] = allocator.allocate(new[0], stream=new[1])
            else:
                allocator.free(blocks.pop(block))

    (row,) = record(program).what_if("cudaMallocAsync").slice(1).to_pylist()

    assert row["peak_reserved_lower"] <= reserved <= row["peak_reserved"]
    assert row["peak_reserved"] < 2.9 * row["peak_reserved_lower"] or reserved == 32 * MIB


def test_without_arguments_the_settings_that_matter_are_tried():
    recording = recorded(small_only)
    names = recording.what_if()["settings"].to_pylist()

    assert names == [
        "recorded",
        "expandable_segments:True",
        "max_split_size_mb:32",
        "max_split_size_mb:128",
        "roundup_power2_divisions:8",
        "expandable_segments:True,roundup_power2_divisions:8",
        "cupy",
        "cudaMallocAsync",
    ]
    # On another GPU the program's own settings are one more question.
    assert recording.what_if(capacity=1 << 30)["settings"].to_pylist() == [
        "recorded",
        "",
        *names[1:],
    ]


def test_a_log_without_segments_has_no_reserved_bytes():
    original = recorded(small_only)
    events = original.tables["memory_events"]
    kept = pc.not_equal(pc.cast(events["action"], "string"), "segment_alloc")
    tables = {**original.tables, "memory_events": events.filter(kept)}
    recording, own = Recording(tables, Manifest(simulated=True)).what_if("").to_pylist()

    assert recording["peak_reserved"] is recording["driver_calls"] is None
    assert recording["peak_allocated"] == own["peak_reserved"] == 128 * MIB


def test_each_device_has_its_own_table():
    def program(source):
        source.allocate(30 * MIB, device=0)
        source.allocate(50 * MIB, device=1)

    recording = record(program, devices=2)
    peaks = [recording.what_if("", device=each)["peak_reserved"].to_pylist() for each in (0, 1)]

    assert peaks == [[30 * MIB] * 2, [50 * MIB] * 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"settings": "foo:1"}, "foo"),
        ({"settings": "cuppy"}, "'cuppy' is neither cupy, cudaMallocAsync nor a setting"),
        ({"settings": ["", "max_split_size_mb:1"]}, "max_split_size"),
        ({"capacity": 0}, "capacity must be at least 1 byte, got 0"),
        ({"device": 3}, "the recording has no device 3"),
    ],
)
def test_what_cannot_be_replayed_is_an_error(arguments, message):
    with pytest.raises(ValueError, match=message):
        recorded(small_only).what_if(**arguments)


@pytest.mark.parametrize(
    ("allocator", "name", "settings", "line"),
    [
        ("caching", "", EXPANDABLE, f'gpuviz.set_allocator_settings("{EXPANDABLE}")'),
        ("caching", "", "cupy", "cupy.cuda.set_allocator(cupy.cuda.MemoryPool().malloc)"),
        (
            "observe",
            "cupy.cuda.memory.MemoryPool",
            EXPANDABLE,
            f'gpuviz.set_allocator_settings("{EXPANDABLE}"); {INSTALLED}',
        ),
        ("observe", "RMM", "", INSTALLED),
        (
            "observe",
            "RMM",
            "cudaMallocAsync",
            "cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)",
        ),
        (
            "observe",
            "PyTorch's caching allocator",
            EXPANDABLE,
            f"PYTORCH_CUDA_ALLOC_CONF={EXPANDABLE}",
        ),
        (
            "observe",
            "PyTorch's caching allocator",
            "cudaMallocAsync",
            "PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync",
        ),
    ],
)
def test_a_setting_is_given_as_the_line_to_paste(allocator, name, settings, line):
    manifest = Manifest(allocator=allocator, allocator_name=name)

    assert line_to_use(manifest, settings) == line


@pytest.mark.parametrize(
    ("total", "options", "is_said"),
    [(0, [], True), (0, ["--capacity", "24GiB"], False), (16 << 30, [], False)],
)
def test_the_command_says_what_it_rests_on_without_the_memory_of_the_gpu(
    tmp_path, total, options, is_said
):
    made = recorded(lambda gpu: gpu.empty(64 * MIB))
    place = made.tables["devices"].schema.get_field_index("total_memory")
    field = made.tables["devices"].schema.field(place)
    known = pa.array([total], field.type)
    devices = made.tables["devices"].set_column(place, field, known)
    path = Recording({**made.tables, "devices": devices}, made.manifest).save(
        tmp_path / "run.gpuviz"
    )

    done = CliRunner().invoke(commands, ["what-if", str(path), *options])

    assert done.exit_code == 0
    assert ("does not contain the memory of the GPU" in done.stdout) == is_said


def test_what_torchs_allocator_would_reserve_is_predicted_where_it_serves_alone():
    recording = recorded(small_before_large)
    expected = recording.what_if().to_pylist()
    found = of_torch(recording).what_if().to_pylist()

    assert [row["settings"] for row in expected if row not in found] == ["cupy"]
    assert [row for row in found if row not in expected] == []


def test_the_settings_of_torchs_allocator_are_those_of_its_variable():
    recording = of_torch(recorded(small_before_large), settings=EXPANDABLE)

    replayed = gpuviz.replay(recording)
    (row,) = replayed.what_if(EXPANDABLE).to_pylist()[1:]

    assert replayed.manifest.settings == EXPANDABLE
    assert row["peak_reserved"] == replayed.memory_stats()["reserved_bytes.all.peak"]
    assert EXPANDABLE not in [row["settings"] for row in recording.what_if().to_pylist()]


def test_two_allocators_that_served_memory_are_not_repeated():
    one = recorded(small_before_large)
    of_one, of_other = one.tables, of_torch(one).tables
    both = {
        name: pa.concat_tables([of_one[name], of_other[name]])
        for name in ("memory_events", "pools")
    }
    recording = Recording({**of_one, **both}, one.manifest)

    with pytest.raises(RecordingError, match="PyTorch's allocator used the GPU too"):
        recording.what_if()
