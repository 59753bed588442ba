"""Recordings read from memory snapshots of PyTorch."""

import pickle

import pytest

from gpuviz.analysis.state import state_at
from gpuviz.recording import load
from tests.unit.formats.plain_snapshots import (
    DATA,
    FIRST_US,
    MIB,
    SNAPSHOTS,
    events,
    golden_snapshot,
    memory,
    read,
    sites,
    snapshot,
)
from tests.unit.formats.torch_snapshots import BASE, block, event, freed_block, segment, whole
from tests.unit.recording.from_events import counted

GOLDENS = ("everything_1", "expandable_record_1", "gc_1", "nested_pools_1")


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("name", SNAPSHOTS)
def test_a_real_snapshot_ends_as_it_says_and_has_its_events(name, protocol, tmp_path):
    values = snapshot(name)
    trace = values["device_traces"][0]

    recording = read(values, tmp_path, protocol)

    rows = events(recording)
    assert memory(recording.memory_snapshot()) == memory(values["segments"])
    assert [row["action"] for row in rows] == [each["action"] for each in trace]
    assert [row["time_us"] for row in rows] == [each["time_us"] for each in trace]
    assert [row["frames"] for row in rows] == [sites(each) for each in trace]
    assert [row["address"] for row in rows] == [
        each["addr"] if "addr" in each else each["device_free"] for each in trace
    ]
    assert state_at(recording).anomalies == 0


def test_load_reads_a_snapshot_whatever_its_name(tmp_path):
    path = tmp_path / "run.gpuviz"
    path.write_bytes((DATA / "pipeline.pickle").read_bytes())

    recording = load(path)

    assert recording.manifest.allocator_name == "PyTorch's caching allocator"
    assert recording.table("memory_events").num_rows > 100


@pytest.mark.parametrize("name", GOLDENS)
def test_statistics_are_those_of_torch_up_to_the_last_peak(name, tmp_path):
    values, statistics = golden_snapshot(name)

    recording = read(values, tmp_path)

    found, expected = counted(recording.memory_stats()), counted(statistics)
    if name.startswith("everything"):
        # It depends on the order of frees that completed together, which a trace does not contain.
        for key in [key for key in expected if key.startswith("inactive_split")]:
            found.pop(key)
            expected.pop(key)
    assert found == expected
    assert memory(recording.memory_snapshot()) == memory(values["segments"])
    assert recording.manifest.initial_events == 0
    assert recording.notes == ()


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 1])
@pytest.mark.parametrize("name", [*GOLDENS, "toggle_expandable_1"])
def test_a_trace_that_begins_in_the_middle_leads_to_the_same_memory(name, share, tmp_path):
    values, _ = golden_snapshot(name)
    first = int(share * len(values["device_traces"][0]))
    whole_recording = read(values, tmp_path)
    cut, _ = golden_snapshot(name, first)

    recording = read(cut, tmp_path)

    before = recording.manifest.initial_events
    count = len(values["device_traces"][0]) - first
    assert memory(recording.memory_snapshot()) == memory(values["segments"])
    assert recording.table("memory_events").num_rows == before + count
    if not name.startswith("toggle"):
        state, whole_state = state_at(recording), state_at(whole_recording)
        current = "allocated_bytes.all.current"
        assert state.statistics(0)[current] == whole_state.statistics(0)[current]
        assert state.anomalies == 0


@pytest.mark.parametrize("name", ["toggle_all_2", "toggle_expandable_1"])
@pytest.mark.parametrize("part", [4, 10, 16])
def test_a_late_begin_keeps_every_live_block_while_settings_change(name, part, tmp_path):
    values, _ = golden_snapshot(name)
    first = part * len(values["device_traces"][0]) // 20
    cut, _ = golden_snapshot(name, first)

    recording = read(cut, tmp_path)

    live, sizes = set(), {}
    for row in events(read(values, tmp_path))[:first]:
        if row["action"] == "alloc":
            live.add(row["address"])
            sizes[row["address"]] = row["requested_size"]
        elif row["action"] == "free_requested":
            live.discard(row["address"])
    found = recording.memory_snapshot(at=-1)
    blocks = {
        block["address"]: block["requested_size"]
        for segment in found
        for block in segment["blocks"]
        if block["state"] == "active_allocated"
    }
    assert blocks == {address: sizes[address] for address in live}
    assert state_at(recording).anomalies == 0
    assert not any("contradict" in note for note in recording.notes)


@pytest.mark.parametrize("name", GOLDENS)
def test_levels_after_a_late_begin_are_those_of_the_whole_trace(name, tmp_path):
    values, _ = golden_snapshot(name)
    first = len(values["device_traces"][0]) // 2
    cut, _ = golden_snapshot(name, first)
    levels = read(values, tmp_path).memory_levels.to_pylist()

    found = read(cut, tmp_path).memory_levels.to_pylist()[1:]

    begin = 3000 * first
    expected = [row | {"time": row["time"] - begin} for row in levels if row["time"] >= begin]
    kept = ("time", "requested", "reserved")
    assert [[row[key] for key in kept] for row in found[-400:]] == [
        [row[key] for key in kept] for row in expected[-400:]
    ]
    wrong = [
        (row["allocated"], right["allocated"])
        for row, right in zip(found, expected[-len(found) :], strict=True)
        if abs(row["allocated"] - right["allocated"]) > 8 * MIB
    ]
    assert wrong == []


def test_a_block_has_what_its_segment_could_not_split_off(tmp_path):
    trace = freed_block(20 * MIB, 19 * MIB + 5)

    recording = read(whole([block(BASE, 20 * MIB, "inactive")], trace), tmp_path)

    assert [row["size"] for row in events(recording)] == [20 * MIB] * 4
    assert [row["requested_size"] for row in events(recording)] == [0, *[19 * MIB + 5] * 3]


def test_a_block_ends_where_the_rest_of_its_segment_was_split_off(tmp_path):
    trace = freed_block(20 * MIB, 5 * MIB + 5)

    recording = read(whole([block(BASE, 20 * MIB, "inactive")], trace), tmp_path)

    assert [row["size"] for row in events(recording)][1:] == [5 * MIB + 512] * 3


def test_max_split_size_keeps_large_blocks_whole(tmp_path):
    settings = {"allocator_settings": {"max_split_size": 4 * MIB}}
    trace = freed_block(20 * MIB, 5 * MIB + 5)

    recording = read(whole([block(BASE, 20 * MIB, "inactive")], trace, **settings), tmp_path)

    assert [row["size"] for row in events(recording)][1:] == [20 * MIB] * 3


def test_a_block_of_max_split_size_from_before_the_trace_is_whole(tmp_path):
    settings = {"allocator_settings": {"max_split_size": 32 * MIB}}
    trace = [
        event("free_requested", BASE, 40 * MIB + 5),
        event("free_completed", BASE, 40 * MIB + 5),
    ]
    segments = [block(BASE, 50 * MIB, "inactive")]

    recording = read(whole(segments, trace, **settings), tmp_path)

    (before,) = recording.memory_snapshot(at=-1)
    assert [(each["size"], each["requested_size"]) for each in before["blocks"]] == [
        (50 * MIB, 40 * MIB + 5)
    ]
    assert recording.memory_stats()["max_split_size"] == 32 * MIB


def test_what_existed_before_is_there_from_the_start(tmp_path):
    trace = [event("free_requested", BASE, 900), event("free_completed", BASE, 900)]
    trace = [each | {"time_us": FIRST_US + 7} for each in trace]

    recording = read(whole([block(BASE, 2 * MIB, "inactive")], trace), tmp_path)

    (before,) = recording.memory_snapshot(at=-1)
    assert [(each["size"], each["state"]) for each in before["blocks"]] == [
        (1024, "active_allocated"),
        (2 * MIB - 1024, "inactive"),
    ]
    assert "begins in the middle" in recording.notes[0]


def test_events_that_lack_are_made_up_for_at_the_end_with_a_note(tmp_path):
    trace = [event("segment_alloc", BASE, 20 * MIB), event("alloc", BASE, 4 * MIB)]
    values = whole([block(BASE, 20 * MIB, "inactive")], trace)

    recording = read(values, tmp_path)

    assert memory(recording.memory_snapshot())[0]["allocated_size"] == 0
    assert [row["action"] for row in events(recording)][2:] == ["free_requested", "free_completed"]
    assert recording.notes[-1].endswith("added at its end to match them: 2 events.")


def test_pools_of_graphs_get_numbers_beside_those_of_mem_pools(tmp_path):
    pools = [(0, 0), (0, 1), (1, 0)]
    segments = [
        segment([block(BASE + n * 32 * MIB, 2 * MIB)], segment_pool_id=pool, frames=[])
        for n, pool in enumerate(pools)
    ]

    recording = read({"segments": segments, "device_traces": [[]]}, tmp_path)

    found = [each["segment_pool_id"] for each in recording.memory_snapshot()]
    assert found == [(0, 0), (0, 1), (0, 2)]
    assert recording.manifest.extra["torch_snapshot"]["pools"] == {"1": [0, 1], "2": [1, 0]}


def test_a_bare_list_of_segments_is_a_recording_of_one_moment(tmp_path):
    values = snapshot("pipeline")["segments"]

    recording = read(values, tmp_path)

    assert memory(recording.memory_snapshot()) == memory(values)
    assert recording.notes == (
        "The torch snapshot has no trace, only the state of memory when it was taken.",
    )


def test_the_oldest_form_has_frames_under_history_and_no_addresses(tmp_path):
    frame = {"name": "step", "filename": "train.py", "line": 3}
    history = [{"addr": BASE + 512, "real_size": 700, "frames": [frame]}]
    blocks = [
        {"size": 512, "state": "inactive"},
        {"size": 1024, "state": "active_allocated", "history": history},
    ]
    old = {"device": 0, "address": BASE, "total_size": 1536, "blocks": blocks}

    recording = read({"segments": [old | {"segment_type": "small", "stream": 0}]}, tmp_path)

    (found,) = recording.memory_snapshot()
    assert found["blocks"][1] == block(BASE + 512, 1024, requested=700, frames=[frame])


def test_events_without_times_keep_their_order(tmp_path):
    trace = freed_block(20 * MIB, 5)

    recording = read(whole([block(BASE, 20 * MIB, "inactive")], trace), tmp_path)

    assert recording.table("memory_events")["time"].to_pylist() == [0, 1000, 2000, 3000]
    assert recording.notes == (
        "The torch snapshot has no times: its events are shown 1 µs apart, in their order.",
    )


def test_devices_keep_their_own_traces_and_streams(tmp_path):
    far = BASE + 64 * MIB
    traces = [
        [event("segment_alloc", BASE, 2 * MIB, time_us=FIRST_US)],
        [],
        [event("segment_alloc", far, 2 * MIB, stream=0x55, time_us=FIRST_US + 1)],
    ]
    segments = [
        segment([block(BASE, 2 * MIB, "inactive")]),
        segment([block(far, 2 * MIB, "inactive")], device=2, stream=0x55),
    ]

    recording = read({"segments": segments, "device_traces": traces}, tmp_path)

    assert recording.devices == (0, 2)
    streams = [(row["device"], row["handle"]) for row in recording.table("streams").to_pylist()]
    assert streams == [(0, 0), (2, 0x55)]
    assert [each["device"] for each in recording.memory_snapshot()] == [0, 2]


def test_unknown_actions_and_keys_are_passed_over_with_a_note(tmp_path):
    values = whole([block(BASE, 2 * MIB, "inactive")], [event("shrink", 0, 0, time_us=FIRST_US)])

    recording = read(values | {"new_key": {"a": [1, None, 2.5, b"x", {3}]}}, tmp_path)

    assert events(recording) == []
    assert recording.notes[-1] == (
        'Left out of the torch snapshot: events of the unknown action "shrink" (1).'
    )


def test_progress_counts_the_bytes_of_the_file_and_may_interrupt(tmp_path):
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(snapshot("gpt") | {"pad": [str(n) for n in range(900_000)]}))
    seen = []

    def interrupt(done, total):
        seen.append((done, total))
        raise KeyboardInterrupt

    from gpuviz.formats import torch_snapshot

    with pytest.raises(KeyboardInterrupt):
        torch_snapshot.read(path, interrupt)

    assert seen == [(0, path.stat().st_size)]
