"""`gpuviz.replay`: the same operations on a simulated device."""

import dataclasses
import importlib
import signal
import threading
import time

import pytest

import gpuviz
from gpuviz.data.manifest import Manifest
from gpuviz.recorder.recorder import Recorder
from gpuviz.recording import Recording
from tests.unit.recorder.simulated_source import SimulatedSource
from tests.unit.replay.recorded import (
    MIB,
    SHIPPED,
    STREAM,
    named,
    record,
    requests,
    shipped,
)


def test_calls_of_empty_cache_are_repeated_where_they_were():
    def program(source):
        allocator = source.allocators[0]
        for size in (30, 50):
            allocator.free(allocator.allocate(size * MIB))
            allocator.empty_cache()

    original = record(program)

    again = gpuviz.replay(original, speed=0)

    expected = [("empty_cache", 30 * MIB), ("empty_cache", 50 * MIB)]
    for recording in (original, again):
        rows = named(recording)
        assert [
            (row["action"], row["size"]) for row in rows if row["action"] == "empty_cache"
        ] == expected
    assert [row["action"] for row in named(again)] == [row["action"] for row in named(original)]


def several_streams(source):
    allocator = source.allocators[0]
    live = [allocator.allocate(1000 * (n + 1), stream=STREAM * (n % 3)) for n in range(60)]
    for position, address in enumerate(live):
        if position % 4 == 0:
            allocator.record_stream(address, STREAM * 7)
        if position % 5:
            allocator.free(address)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_recording_of_a_gpu_keeps_its_requests_streams_stacks_and_threads(name):
    recording = shipped(name)

    replayed = gpuviz.replay(recording, speed=0)

    for actions in (("alloc",), ("free_requested",), ("alloc", "free_requested")):
        assert requests(replayed, *actions) == requests(recording, *actions)
    for table in ("frames", "stacks", "threads"):
        assert replayed.table(table) == recording.table(table)
    assert replayed.is_complete


def test_stream_uses_are_replayed_on_streams_of_the_same_handles():
    recording = record(several_streams)

    replayed = gpuviz.replay(recording, speed=0)

    actions = ("alloc", "free_requested", "record_stream")
    assert len(requests(recording, *actions)) == 60 + 48 + 15
    assert requests(replayed, *actions) == requests(recording, *actions)


def test_the_live_bytes_of_every_line_are_the_originals():
    recording = shipped("conjugate_gradient")

    def by_line(one):
        columns = ["site", "source", "live_bytes", "live_count", "total_bytes", "total_count"]
        return sorted(tuple(r.values()) for r in one.sites("line").select(columns).to_pylist())

    replayed = by_line(gpuviz.replay(recording, speed=0))

    assert replayed == by_line(recording)
    assert any("conjugate_gradient.py:53" in site for site, *_ in replayed)


def test_each_device_replays_its_own_operations():
    def program(source):
        for number in range(30):
            address = source.allocate(number + 1, device=number % 2)
            if number % 3:
                source.free(address, device=number % 2)

    recording = record(program, devices=2)
    replayed = gpuviz.replay(recording, speed=0)

    for device in (0, 1):
        assert replayed.memory_stats(device) == recording.memory_stats(device)


def test_memory_from_before_the_first_event_kept_is_replayed():
    live = []

    def program(source):
        for number in range(200):
            live.append(source.allocate(1000 * number + 1))
            if number % 3 == 0:
                source.free(live.pop(0))

    def record_pieces(source):
        for _ in range(10):
            program(source)
            _ = Recorder._active.recording

    recording = record(record_pieces, max_events=500)
    replayed = gpuviz.replay(recording, speed=0)

    assert recording.manifest.initial_events > 0
    key = "requested_bytes.all.current"
    assert replayed.memory_stats()[key] == recording.memory_stats()[key] > 0


@pytest.mark.parametrize(("speed", "least_s", "most_s"), [(1, 0.25, 5), (3, 0.08, 5)])
def test_the_duration_follows_from_the_speed(speed, least_s, most_s):
    def program(source):
        for _ in range(4):
            source.free(source.allocate(1234))
            time.sleep(0.1)
        source.allocate(1234)

    recording = record(program)
    replayed = gpuviz.replay(recording, speed=speed)

    times = replayed.table("memory_events")["time"].to_pylist()
    assert least_s * 1e9 <= times[-1] - times[0] < most_s * 1e9
    assert len(times) == recording.table("memory_events").num_rows


def test_a_replay_does_not_wait_and_keeps_the_times():
    def program(source):
        for _ in range(3):
            source.free(source.allocate(1234))
            time.sleep(0.4)
        source.allocate(1234)

    recording = record(program)
    began = time.monotonic()

    replayed = gpuviz.replay(recording)

    assert time.monotonic() - began < 1
    asked = [row["time"] for row in named(recording) if row["action"] != "segment_alloc"]
    assert [r["time"] for r in named(replayed) if r["action"] != "segment_alloc"] == asked
    assert replayed.duration_ns == recording.duration_ns


def test_a_replay_under_the_same_settings_has_the_same_addresses():
    recording = shipped("fft_filter")

    replayed = gpuviz.replay(recording)

    kept = ("action", "address", "size", "pool", "stream", "stack", "thread")
    assert [tuple(row[key] for key in kept) for row in named(replayed)] == [
        tuple(row[key] for key in kept) for row in named(recording)
    ]


def test_a_recording_while_another_one_is_made_can_be_replayed():
    recording = shipped("monte_carlo")

    with Recorder(SimulatedSource(1), None, stacks=False, max_events=100):
        replayed = gpuviz.replay(recording)

    assert requests(replayed, "alloc") == requests(recording, "alloc")


def test_the_manifest_says_what_was_replayed_where():
    recording = shipped("monte_carlo")
    replayed = gpuviz.replay(recording, speed=0)

    label = "Replayed on the simulated device from a recording made on NVIDIA H100 80GB HBM3"
    assert (replayed.manifest.label, replayed.manifest.simulated) == (label, True)
    assert replayed.notes[0] == label
    assert replayed.manifest.program == recording.manifest.program
    [device] = recording.table("devices").to_pylist()
    assert replayed.table("devices").to_pylist() == [device | {"kind": "simulated"}]
    assert replayed.manifest.memory_stats[0] == replayed.memory_stats()


def test_settings_replace_those_of_the_recording():
    recording = shipped("monte_carlo")
    settings = "expandable_segments:True"

    expandable = gpuviz.replay(recording, speed=0, settings=settings)
    again = gpuviz.replay(expandable, speed=0)
    plain = gpuviz.replay(expandable, speed=0, settings="")

    for one, action in (
        (expandable, "segment_map"),
        (again, "segment_map"),
        (plain, "segment_alloc"),
    ):
        actions = set(one.table("memory_events")["action"].to_pylist())
        assert actions & {"segment_map", "segment_alloc"} == {action}
    assert [one.manifest.settings for one in (expandable, again, plain)] == [settings, settings, ""]


def test_settings_of_a_later_version_are_left_out():
    recording = shipped("monte_carlo")
    settings = "of_a_later_torch:1,roundup_power2_divisions:[256:1,>:2]"
    manifest = dataclasses.replace(recording.manifest, settings=settings)

    replayed = gpuviz.replay(dataclasses.replace(recording, manifest=manifest))

    assert requests(replayed, "alloc") == requests(recording, "alloc")
    with pytest.raises(ValueError, match="of_a_later_torch"):
        gpuviz.replay(recording, settings=settings)


def test_the_function_stays_one_whatever_is_imported():
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("gpuviz.replay")

    assert callable(gpuviz.replay)


@pytest.mark.parametrize("speed", [-1, -0.5, float("nan"), float("-inf")])
def test_a_speed_below_0_is_named(speed):
    with pytest.raises(ValueError, match=f"speed must be at least 0, got {speed}"):
        gpuviz.replay(Recording({}, Manifest()), speed=speed)


@pytest.mark.parametrize(
    ("settings", "named"),
    [("no_such_key:3", "no_such_key"), ("expandable_segments:Perhaps", "Perhaps")],
)
def test_settings_that_are_wrong_are_named(settings, named):
    with pytest.raises(ValueError, match=named):
        gpuviz.replay(shipped("monte_carlo"), settings=settings)


def test_a_recording_without_events_and_devices_gives_an_empty_one():
    replayed = gpuviz.replay(Recording({}, Manifest()))

    assert replayed.table("memory_events").num_rows == 0
    assert replayed.devices == ()
    assert replayed.is_complete


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("devices", "table devices: no row for device 0, which has memory events"),
        ("streams", "table streams: no row for stream 1, which has memory events"),
    ],
)
def test_a_device_or_stream_that_is_not_described_is_named(missing, message):
    recording = shipped("monte_carlo")
    tables = {name: table for name, table in recording.tables.items() if name != missing}

    with pytest.raises(ValueError, match=message):
        gpuviz.replay(dataclasses.replace(recording, tables=tables))


def test_events_are_replayed_in_their_order_even_where_times_go_back():
    recording = shipped("monte_carlo")
    events = recording.table("memory_events")
    position = events.schema.get_field_index("time")
    backwards = events.set_column(
        position, "time", events["time"].take(list(range(len(events)))[::-1])
    )
    tables = dict(recording.tables) | {"memory_events": backwards}

    replayed = gpuviz.replay(dataclasses.replace(recording, tables=tables), speed=0)

    asked = ("alloc", "free_requested")
    assert requests(replayed, *asked) == requests(recording, *asked)


def test_an_interrupt_ends_a_replay_at_once():
    def program(source):
        source.allocate(1234)
        time.sleep(0.1)
        source.allocate(1234)

    recording = record(program)
    main = threading.main_thread().ident
    timer = threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT))
    timer.start()

    with pytest.raises(KeyboardInterrupt):
        gpuviz.replay(recording, speed=1e-4)

    assert Recorder._active is None
