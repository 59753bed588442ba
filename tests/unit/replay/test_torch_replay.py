"""Replays of torch's memory snapshots, which lack what a replay needs to know."""

import json
import lzma
from collections import Counter
from dataclasses import replace

import pytest

import gpuviz
from gpuviz.formats import rmm_csv
from tests.unit.formats.plain_snapshots import (
    FIRST_US,
    GOLDENS,
    golden_snapshot,
    read,
    snapshot,
)
from tests.unit.replay.torch_programs import MIB, random_program

BASE = 0x7F00_0000_0000
FILES = sorted(path.name.removesuffix(".json.xz") for path in GOLDENS.glob("*.xz"))
PEAK = "reserved_bytes.all.peak"
CALLS = (
    "2 calls of empty_cache were inferred from memory that was released although no request "
    "needed it."
)


def golden(name):
    return json.loads(lzma.decompress((GOLDENS / f"{name}.json.xz").read_bytes()))


def own_settings(program):
    limit = program["fraction"]
    parts = [program["conf"]] if program["conf"] else []
    return ",".join(parts + ([] if limit is None else [f"per_process_memory_fraction:{limit}"]))


def actions(recording):
    return Counter(recording.table("memory_events")["action"].to_pylist())


def events(recording):
    """Return the events as torch records them; frees that completed together in any order."""
    kept = ("action", "size", "requested_size", "pool")
    rows = recording.table("memory_events").to_pylist()
    found = [
        tuple(row[key] for key in kept)
        for row in rows
        if row["action"] not in {"empty_cache", "memory_limit", "snapshot"}
    ]
    ordered, run = [], []
    for row in [*found, None]:
        if row is not None and row[0] == "free_completed":
            run.append(row)
            continue
        ordered += [*sorted(run), row]
        run = []
    return ordered[:-1]


# A trace does not contain changes of the settings.
@pytest.mark.parametrize("name", [name for name in FILES if not name.startswith("toggle")])
def test_a_program_of_torch_under_its_own_settings_does_the_same_again(name, tmp_path):
    program = golden(name)
    recording = read(golden_snapshot(name)[0], tmp_path)

    again = gpuviz.replay(
        recording, settings=own_settings(program), capacity=program["total_memory"]
    )

    assert again.memory_stats()[PEAK] == recording.memory_stats()[PEAK]
    assert events(again) == events(recording)


@pytest.mark.parametrize("seed", range(30))
def test_random_programs_under_their_own_settings_reserve_the_same(seed, tmp_path):
    program = random_program(seed, stacks=seed % 2 == 0)
    recording = program.recording(tmp_path)

    again = gpuviz.replay(recording, settings=program.all_settings, capacity=program.total)

    assert again.memory_stats()[PEAK] == program.peak_reserved
    counted = ("alloc", "oom", "segment_alloc", "segment_map", "segment_free", "segment_unmap")
    assert [actions(again)[each] for each in counted] == [
        actions(recording)[each] for each in counted
    ]


@pytest.mark.parametrize("settings", ["", "max_split_size_mb:32", "expandable_segments:True"])
def test_what_existed_before_the_trace_is_where_it_was(settings, tmp_path):
    program = random_program(9, count=800, settings=settings)
    late = replace(program, trace=program.trace[len(program.trace) // 3 :])
    recording = late.recording(tmp_path)

    again = gpuviz.replay(recording, settings=program.all_settings, capacity=program.total)

    assert recording.manifest.initial_events > 20
    assert again.memory_stats()[PEAK] == recording.memory_stats()[PEAK]
    if "expandable" not in settings:  # the part of a range before its first pages is unknown
        known = {row["address"] for row in again.table("memory_events").to_pylist()}
        assert {segment["address"] for segment in recording.memory_snapshot(at=-1)} <= known


@pytest.mark.parametrize("name", ["gpt", "oom", "pipeline", "resnet"])
def test_the_requests_of_a_real_snapshot_do_not_fail_without_a_known_capacity(name, tmp_path):
    recording = read(snapshot(name), tmp_path)

    again = gpuviz.replay(recording)

    assert actions(again)["alloc"] >= actions(recording)["alloc"] > 0
    assert again.memory_stats()["allocated_bytes.all.peak"] > 0
    assert "capacity is unknown" in again.notes[1]
    assert again.notes[0] == (
        "Replayed on the simulated device from a recording of PyTorch's caching allocator"
    )
    assert [row["total_memory"] for row in again.table("devices").to_pylist()] == [0]


def test_the_requests_of_a_log_of_rmm_do_not_fail_without_a_known_capacity(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text(
        "Thread,Time,Action,Pointer,Size,Stream\n"
        "7,10:00:00.000001,allocate,0x10000,3000000,64\n"
        "7,10:00:00.000002,allocate failure,(nil),77000000000,0\n"
        "7,10:00:00.000003,free,0x10000,3000000,64\n"
    )
    recording = rmm_csv.read(log)

    again = gpuviz.replay(recording)

    assert actions(again)["oom"] == 0
    assert [
        row["requested_size"]
        for row in again.table("memory_events").to_pylist()
        if row["action"] == "alloc"
    ] == [3_000_000, 77_000_000_000]
    assert again.notes == (
        "Replayed on the simulated device from a recording of RMM",
        "The capacity is unknown: the replay has unlimited memory.",
    )


def test_a_capacity_is_that_of_each_device(tmp_path):
    recording = read(snapshot("gpt"), tmp_path)

    again = gpuviz.replay(recording, capacity=100 * MIB)

    assert actions(again)["oom"] > 0
    assert again.memory_stats()[PEAK] <= 100 * MIB
    assert [row["total_memory"] for row in again.table("devices").to_pylist()] == [100 * MIB]
    assert not any("unknown" in note for note in again.notes)


@pytest.mark.parametrize("capacity", [0, -1])
def test_a_capacity_below_a_byte_is_named(capacity, tmp_path):
    recording = read(snapshot("oom"), tmp_path)

    with pytest.raises(ValueError, match=f"capacity must be at least 1 byte, got {capacity}"):
        gpuviz.replay(recording, capacity=capacity)


def step(action, address, size, stack=1, **more):
    frames = [{"name": f"line {stack}", "filename": "train.py", "line": stack}]
    return {"action": action, "addr": address, "size": size, "stream": 0, "frames": frames} | more


def freed(address, size, stack=1):
    return [step("free_requested", address, size, stack), step("free_completed", address, size)]


def whole(trace):
    """Return the snapshot of a trace at the end of which everything was released."""
    timed = [each | {"time_us": FIRST_US + row} for row, each in enumerate(trace)]
    return {"segments": [], "device_traces": [timed]}


def emptied(tmp_path, release_stack, request_stack):
    """Return the replay of a request for 50 MiB after a release of 30 MiB."""
    trace = [
        step("segment_alloc", BASE, 30 * MIB),
        step("alloc", BASE, 30 * MIB),
        *freed(BASE, 30 * MIB, 2),
        step("segment_free", BASE, 30 * MIB, release_stack),
        step("segment_alloc", BASE, 50 * MIB, request_stack),
        step("alloc", BASE, 50 * MIB, request_stack),
        *freed(BASE, 50 * MIB, 2),
        step("segment_free", BASE, 50 * MIB, 9),
    ]
    return gpuviz.replay(read(whole(trace), tmp_path))


def test_a_release_with_the_stack_of_the_request_after_it_is_a_retry(tmp_path):
    again = emptied(tmp_path, release_stack=4, request_stack=4)

    assert actions(again)["empty_cache"] == 1  # the one at the end
    assert again.memory_stats()[PEAK] == 50 * MIB
    assert "Memory is limited to" in again.notes[1]


def test_a_release_with_a_stack_of_its_own_is_a_call_of_empty_cache(tmp_path):
    again = emptied(tmp_path, release_stack=3, request_stack=4)

    rows = again.table("memory_events").to_pylist()
    assert [row["size"] for row in rows if row["action"] == "empty_cache"] == [30 * MIB, 50 * MIB]
    assert again.memory_stats()[PEAK] == 50 * MIB
    assert again.notes[1:] == (
        "The capacity is unknown: the replay has unlimited memory.",
        CALLS,
    )


def test_a_free_that_waited_for_a_stream_waits_as_long_in_the_replay(tmp_path):
    trace = [
        step("segment_alloc", BASE, 30 * MIB),
        step("alloc", BASE, 30 * MIB),
        step("free_requested", BASE, 30 * MIB),
        step("segment_alloc", BASE + 64 * MIB, 30 * MIB),
        step("alloc", BASE + 64 * MIB, 30 * MIB),
        step("free_completed", BASE, 30 * MIB),
        step("alloc", BASE, 30 * MIB),
        *freed(BASE, 30 * MIB),
        *freed(BASE + 64 * MIB, 30 * MIB),
        step("segment_free", BASE, 30 * MIB, 5),
        step("segment_free", BASE + 64 * MIB, 30 * MIB, 5),
    ]
    recording = read(whole(trace), tmp_path)

    again = gpuviz.replay(recording)

    assert events(again) == events(recording)
    active = [row["active"] for row in recording.memory_levels.to_pylist()]
    assert [row["active"] for row in again.memory_levels.to_pylist()] == active


def test_pools_with_large_numbers_cost_nothing(tmp_path):
    trace = [
        step("segment_alloc", BASE, 2 * MIB, pool_id=(0, 1_000_000_000)),
        step("alloc", BASE, 512, pool_id=(0, 1_000_000_000)),
    ]
    values = whole(trace)
    values["segments"] = [
        {
            "device": 0,
            "address": BASE,
            "total_size": 2 * MIB,
            "stream": 0,
            "segment_type": "small",
            "segment_pool_id": (0, 1_000_000_000),
            "is_expandable": False,
            "blocks": [
                {"address": BASE, "size": 512, "state": "active_allocated"},
                {"address": BASE + 512, "size": 2 * MIB - 512, "state": "inactive"},
            ],
        }
    ]

    again = gpuviz.replay(read(values, tmp_path))

    assert {row["pool"] for row in again.table("memory_events").to_pylist()} == {2_000_000_000}
