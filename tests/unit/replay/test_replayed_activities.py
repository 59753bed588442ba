"""`gpuviz.replay` of a recording with GPU activities, which are kept on the replay's clock."""

import pytest

import gpuviz
from gpuviz.data.manifest import Manifest
from gpuviz.recording import Recording
from gpuviz.simulation.replayed_activities import AT_OTHER_SPEED, NOTE
from tests.unit.recording.from_activities import Timeline, rows_of

MIB = 1 << 20
MS = 1_000_000
# Blocks 1 MiB apart; the second stream's handle is reused.
FIRST, SECOND = 0x7000_0000, 0x7010_0000


def recording(*events, total=1 << 30):
    """Return a recording of memory events, with two kernels and a copy on two streams."""
    timeline = Timeline()
    timeline.kernel(3 * MS, 4 * MS, "one", stream=7, correlation=11)
    timeline.copy(5 * MS, 6 * MS, stream=3, correlation=12, bytes=64)
    timeline.kernel(9 * MS, 10 * MS, "two", stream=7, correlation=13)
    for time, number in ((2 * MS, 11), (4 * MS, 12), (8 * MS, 13)):
        timeline.call(time, time + 1000, correlation=number, line=number)
    timeline.synchronization("stream_wait_event", 4 * MS, 4 * MS, stream=7, correlation=12)
    timeline.add("ranges", {"id": 1, "time": 0, "end": MS, "name": timeline.text("load")})
    for number, block, address in ((11, FIRST, FIRST + 8), (13, FIRST, FIRST), (13, 1, 1)):
        row = {"correlation": number, "block": block, "address": address, "mode": "read"}
        timeline.add("launch_blocks", row)
    streams = (
        {"id": 3, "handle": 0x30, "name": "copies", "kind": "non_blocking", "destroyed": -1},
        {"id": 6, "handle": 0x70, "name": "gone", "kind": "blocking", "destroyed": 1},
        {"id": 7, "handle": 0x70, "name": "work", "kind": "non_blocking", "destroyed": -1},
    )
    timeline.rows["streams"] = list(streams)
    made = timeline.recording(duration_ns=20 * MS, dropped_activities=2)
    device = {"id": 0, "name": "GPU", "total_memory": total, "kind": "cuda"}
    tables = {
        "memory_events": rows_of("memory_events", [{"size": 512} | row for row in events]),
        "devices": rows_of("devices", [device]),
    }
    return Recording(dict(made.tables) | tables, made.manifest)


def event(time, action, address, *, size=512, **columns):
    row = {"time": time, "action": action, "address": address, "requested_size": size}
    return row | {"stream": 7, "range": 0} | columns


USED_TWICE = (
    event(1 * MS, "alloc", FIRST, range=1),
    event(1 * MS, "alloc", SECOND, stream=3),
    event(6 * MS, "free_requested", FIRST),
    event(7 * MS, "alloc", FIRST, size=3 * MIB, stream=7),
    event(12 * MS, "free_requested", SECOND, stream=3),
)


def asked(one):
    actions = {"alloc", "free_requested", "oom"}
    rows = one.table("memory_events").to_pylist()
    return [row for row in rows if row["action"] in actions]


def test_activities_calls_and_names_are_the_recordings():
    before = recording(*USED_TWICE)

    after = gpuviz.replay(before)

    for name in (
        "activities",
        "api_calls",
        "synchronizations",
        "ranges",
        "strings",
        "streams",
        "launch_configurations",
        "stacks",
    ):
        assert after.table(name).to_pylist() == before.table(name).to_pylist() != []
    assert after.overlap() == before.overlap()
    assert after.kernels("line").to_pylist() == before.kernels("line").to_pylist()


def test_requests_have_the_times_streams_and_ranges_of_the_recording():
    before = recording(*USED_TWICE)

    after = gpuviz.replay(before)

    columns = ("time", "action", "requested_size", "stream", "range")
    sizes = [512, 512, 512, 3 * MIB, 512]
    expected = [
        (row["time"], row["action"], size, row["stream"], row["range"])
        for row, size in zip(USED_TWICE, sizes, strict=True)
    ]
    assert [tuple(row[column] for column in columns) for row in asked(after)] == expected
    times = after.table("memory_events")["time"].to_pylist()
    assert times == sorted(times)
    assert set(after.table("memory_events")["stream"].to_pylist()) == {3, 7}
    assert after.duration_ns == 20 * MS


def test_launches_touch_the_blocks_of_the_replay():
    after = gpuviz.replay(recording(*USED_TWICE))

    small, _, large = (row["address"] for row in asked(after) if row["action"] == "alloc")
    touched = after.table("launch_blocks").select(["correlation", "block", "address"]).to_pylist()
    assert [tuple(row.values()) for row in touched] == [(11, small, small + 8), (13, large, large)]
    assert small != large


def test_a_request_that_fails_in_the_replay_alone_leaves_the_rest_in_place():
    before = recording(*USED_TWICE, total=4 * MIB)

    after = gpuviz.replay(before)

    found = [(row["time"], row["action"]) for row in asked(after)]
    assert (7 * MS, "oom") in found
    assert found[-1] == (12 * MS, "free_requested")
    assert after.table("launch_blocks")["correlation"].to_pylist() == [11]


def test_a_request_that_failed_in_the_recording_is_at_its_time_in_the_replay():
    before = recording(event(2 * MS, "oom", FIRST, size=MIB), event(5 * MS, "alloc", FIRST))

    after = gpuviz.replay(before)

    found = [(row["time"], row["action"]) for row in asked(after)]
    assert found == [(2 * MS, "alloc"), (2 * MS, "free_requested"), (5 * MS, "alloc")]
    assert after.table("launch_blocks")["correlation"].to_pylist() == [13]


@pytest.mark.parametrize(
    ("speed", "note", "activities"),
    [(0, NOTE, 3), (1, NOTE, 3), (1.0, NOTE, 3), (2, AT_OTHER_SPEED, 0)],
)
def test_the_replay_says_what_its_activities_are(speed, note, activities):
    after = gpuviz.replay(recording(*USED_TWICE), speed=speed)

    assert after.notes[-1] == note
    assert after.table("activities").num_rows == activities
    assert after.manifest.dropped_activities == (2 if activities else 0)


def test_a_recording_without_memory_events_keeps_its_activities():
    before = recording()

    after = gpuviz.replay(before)

    assert after.table("activities") == before.table("activities")
    assert after.table("launch_blocks").num_rows == 0


def test_ranges_stay_without_activities_and_around_a_replay_are_not_in_it():
    before = recording(*USED_TWICE)
    names = ("memory_events", "devices", "streams", "ranges", "strings")
    only = Recording({name: before.table(name) for name in names}, Manifest())

    with gpuviz.range("around"):
        after = gpuviz.replay(only)

    assert after.table("ranges") == before.table("ranges")
    assert set(after.table("memory_events")["range"].to_pylist()) == {0, 1}
    # The request in the range, and the segment that it needed.
    assert after.table("memory_events")["range"].to_pylist().count(1) == 2
    assert after.notes[-1] == NOTE


def test_a_recording_without_activities_has_no_note_on_them():
    before = recording(*USED_TWICE)
    names = ("memory_events", "devices", "streams")
    plain = Recording({name: before.table(name) for name in names}, Manifest())

    after = gpuviz.replay(plain)

    assert len(after.notes) == 1


def touched_blocks(one):
    """Return, for each row of ``launch_blocks``, its offset and the live block at its block."""
    events = one.table("memory_events").to_pylist()
    called = {row["correlation"]: row["time"] for row in one.table("api_calls").to_pylist()}
    found = []
    for row in one.table("launch_blocks").to_pylist():
        live = {}
        for made in events:
            if made["time"] <= called[row["correlation"]]:
                if made["action"] == "alloc":
                    live[made["address"]] = made["requested_size"], made["stream"]
                elif made["action"] == "free_completed":
                    live.pop(made["address"], None)
        found.append((row["address"] - row["block"], row["mode"], live[row["block"]]))
    return found


def test_a_program_on_streams_touches_the_same_blocks_in_its_replay():
    gpu = gpuviz.SimulatedGPU(memory=1 << 30, real_time=False)
    kept = []
    with gpuviz.record(device=gpu) as recorder:
        streams = [gpu.Stream() for _ in range(3)]
        for number in range(60):
            with streams[number % 3]:
                array = gpu.empty(1000 * (1 + number % 7))
                gpu.copy_to_device(array, pinned=True)
                gpu.launch("step", reads=[array], writes=kept[-1:], duration=2e-5)
                gpu.work_on_host(1e-5)
                kept = [*kept[-3:], array]
    before = recorder.recording

    after = gpuviz.replay(before)

    assert len(touched_blocks(before)) > 100
    assert touched_blocks(after) == touched_blocks(before)
    assert after.overlap() == before.overlap()
    assert after.notes[-1] == NOTE
