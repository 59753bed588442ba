"""Memory snapshots of PyTorch written from recordings."""

import pytest

from gpuviz import SimulatedGPU, record
from gpuviz.errors import RecordingExistsError
from gpuviz.exports import torch_export
from gpuviz.formats import rmm_csv, torch_snapshot
from gpuviz.recording import Recording, load
from tests.benchmarks import recording as made
from tests.unit.formats.plain_snapshots import (
    SNAPSHOTS,
    accounting,
    events,
    golden_snapshot,
    memory,
    read,
    snapshot,
    written,
)
from tests.unit.report.recordings import make_recording

GOLDENS = ("everything_1", "expandable_record_1", "nested_pools_1", "toggle_expandable_1")
# The opcodes that torch's viewer in the browser reads (torch/utils/viz/MemoryViz.js).
VIEWER_OPCODES = {
    *("PROTO", "STOP", "MARK", "MEMOIZE", "BINGET", "LONG_BINGET", "EMPTY_DICT", "SETITEMS"),
    *("EMPTY_LIST", "APPENDS", "APPEND", "TUPLE2", "NEWTRUE", "NEWFALSE", "NONE", "BININT"),
    *("BININT1", "BININT2", "LONG1", "BINFLOAT", "SHORT_BINUNICODE", "BINUNICODE", "SETITEM"),
}


@pytest.fixture(scope="module")
def simulated():
    """Return a recording of thousands of events on four streams, with stacks."""
    patch = pytest.MonkeyPatch()
    patch.setattr(made, "EVENTS", 3000)
    patch.setattr(made, "PAIRS", 1100)
    recording = made.recorded()
    patch.undo()
    return recording


def observed(folder):
    """Return a recording of an allocator with unknown segments."""
    log = folder / "log.csv"
    log.write_text(
        "Thread,Time,Action,Pointer,Size,Stream\n"
        "7,10:00:00.000001,free,0x500,100,0\n"
        "7,10:00:00.000002,allocate,0x10000,3000000,64\n"
        "7,10:00:00.000003,allocate,0x800,12,0\n"
        "7,10:00:00.000004,free,0x10000,3000000,64\n"
        "8,10:00:00.000005,allocate failure,(nil),77,0\n"
    )
    return Recording.of(rmm_csv.read(log))


def round_trip(recording, folder):
    return Recording.of(torch_snapshot.read(torch_export.write(recording, folder / "out.pickle")))


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_a_real_snapshot_comes_back_event_by_event(name, tmp_path):
    recording = read(snapshot(name), tmp_path)

    again = round_trip(recording, tmp_path)

    assert events(again) == events(recording)
    assert memory(again.memory_snapshot()) == memory(recording.memory_snapshot())
    assert again.manifest.extra == recording.manifest.extra
    assert again.manifest.settings == recording.manifest.settings


@pytest.mark.parametrize("name", GOLDENS)
def test_pools_and_expandable_segments_come_back(name, tmp_path):
    recording = read(golden_snapshot(name)[0], tmp_path)

    again = round_trip(recording, tmp_path)

    assert events(again) == events(recording)
    assert memory(again.memory_snapshot()) == memory(recording.memory_snapshot())


def test_a_recording_of_gpuviz_comes_back_with_its_manifest(simulated, tmp_path):
    again = round_trip(simulated, tmp_path)

    kept = (
        "allocator",
        "allocator_name",
        "simulated",
        "start_unix_ns",
        "program",
        "gpuviz_version",
    )
    assert events(again) == events(simulated)
    assert memory(again.memory_snapshot()) == memory(simulated.memory_snapshot())
    assert [getattr(again.manifest, each) for each in kept] == [
        getattr(simulated.manifest, each) for each in kept
    ]


def test_a_call_of_empty_cache_comes_back(tmp_path):
    gpu = SimulatedGPU(real_time=False)
    with record(device=gpu) as recorder:
        gpu.empty(30 << 20)
        gpu.empty_cache()
    recording = recorder.recording

    again = round_trip(recording, tmp_path)

    assert events(again)[-1]["action"] == "empty_cache"
    assert events(again) == events(recording)
    assert again.memory_snapshot() == []


def test_blocks_outside_of_segments_come_back(tmp_path):
    recording = observed(tmp_path)

    again = round_trip(recording, tmp_path)

    assert events(again) == events(recording)
    assert memory(again.memory_snapshot()) == memory(recording.memory_snapshot())
    assert again.manifest.initial_events == recording.manifest.initial_events == 1


def test_ranges_come_back_by_name_and_time(tmp_path):
    recording = make_recording()

    again = round_trip(recording, tmp_path)

    spans = [
        sorted(
            (row["time"] // 1000, row["end"] // 1000) for row in each.table("ranges").to_pylist()
        )
        for each in (again, recording)
    ]
    assert [row["range"] for row in events(again)] == [row["range"] for row in events(recording)]
    assert spans[0] == spans[1]


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_every_segment_is_the_sum_of_its_blocks(name, tmp_path):
    values = written(read(snapshot(name), tmp_path), tmp_path)

    assert set(accounting(values)) == {0}
    assert memory(values["segments"]) == memory(snapshot(name)["segments"])


def test_every_event_has_what_torchs_tools_ask_of_it(simulated, tmp_path):
    values = written(simulated, tmp_path)

    (trace,) = values["device_traces"]
    asked = {"action", "size", "stream", "time_us", "compile_context", "user_metadata", "frames"}
    lacking = [
        event
        for event in trace
        if asked - event.keys() or (event["action"] == "oom") == ("addr" in event)
    ]
    assert lacking == []
    assert len(trace) == simulated.table("memory_events").num_rows
    assert set(accounting(values)) == {0}


def test_a_failed_request_has_the_devices_free_memory(tmp_path):
    values = written(read(snapshot("oom"), tmp_path), tmp_path)

    found = [event for event in values["device_traces"][0] if event["action"] == "oom"]
    expected = [event for event in snapshot("oom")["device_traces"][0] if event["action"] == "oom"]
    assert [(each["size"], each["device_free"]) for each in found] == [
        (each["size"], each["device_free"]) for each in expected
    ]


@pytest.mark.parametrize("size", [1, 512, 1000, 3 << 20])
def test_a_failed_request_has_its_rounded_size_and_comes_back(size, tmp_path):
    gpu = SimulatedGPU(memory=1 << 20, real_time=False)
    with record(device=gpu) as recorder, pytest.raises(MemoryError):
        gpu.empty(size)
    recording = recorder.recording

    (event,) = written(recording, tmp_path)["device_traces"][0]

    assert (event["action"], event["size"]) == ("oom", -(-size // 512) * 512)
    assert events(round_trip(recording, tmp_path)) == events(recording)


def test_counters_of_the_allocator_come_back(tmp_path):
    gpu = SimulatedGPU(memory=100 << 20, settings="max_split_size_mb:64", real_time=False)
    with record(device=gpu) as recorder:
        gpu.empty(60 << 20)
        gpu.empty(80 << 20)
        gpu.empty_cache()
    recording = recorder.recording

    again = round_trip(recording, tmp_path)
    twice = Recording.of(torch_snapshot.read(torch_export.write(again, tmp_path / "twice.pickle")))

    counted = ("num_alloc_retries", "num_sync_all_streams", "max_split_size")
    expected = [recording.memory_stats()[key] for key in counted]
    assert expected == [1, 2, 64 << 20]
    for one in (again, twice):
        assert [one.memory_stats()[key] for key in counted] == expected


def test_the_order_of_events_of_several_devices_comes_back(tmp_path):
    traces = [
        [{"action": "segment_alloc", "addr": 1 << 30, "size": 2 << 20, "stream": 0}],
        [{"action": "segment_alloc", "addr": 1 << 31, "size": 2 << 20, "stream": 0}],
    ]
    for number, trace in enumerate(traces):
        trace[0]["time_us"] = 10 - number
        trace += [
            {"action": action, "addr": trace[0]["addr"], "size": 5, "stream": 0, "time_us": time}
            for time, action in enumerate(["alloc", "free_requested", "free_completed"], 20)
        ]
    recording = read({"segments": [], "device_traces": traces}, tmp_path)
    order = [0, 4, 1, 2, 5, 3, 6, 7, *range(8, recording.table("memory_events").num_rows)]
    mixed = Recording(
        dict(recording.tables) | {"memory_events": recording.table("memory_events").take(order)},
        recording.manifest,
    )

    again = round_trip(mixed, tmp_path)

    kept = ["action", "address", "size", "device", "time"]
    assert (
        again.table("memory_events").select(kept).to_pylist()
        == mixed.table("memory_events").select(kept).to_pylist()
    )


@pytest.mark.parametrize(
    "order", [None, 3, [0], [0, 1], [0, -1], [0, 2, 7, 2], [0, 3, 1, 1], ["0", 4], [0, 1 << 70]]
)
def test_an_impossible_order_of_devices_is_passed_over(order, tmp_path):
    event = {"action": "alloc", "addr": 1 << 30, "size": 5, "stream": 0, "time_us": 1}
    traces = [[event, event | {"action": "free_requested"}]] * 2

    recording = read(
        {"segments": [], "device_traces": traces, "gpuviz": {"device_order": order}}, tmp_path
    )

    assert recording.table("memory_events")["device"].to_pylist()[:4] == [0, 0, 1, 1]


def test_requested_sizes_of_free_blocks_and_unknown_lines_come_back(tmp_path):
    frames = [{"name": "f", "filename": "a.cpp", "line": 2**64 - 1}]
    blocks = [
        {"address": 1 << 30, "size": 512, "requested_size": 77, "state": "inactive"},
        {"address": (1 << 30) + 512, "size": 1024, "requested_size": 600}
        | {"state": "active_allocated", "frames": frames},
        {"address": (1 << 30) + 1536, "size": 1024, "requested_size": 900, "state": "inactive"},
    ]
    segment = {"device": 0, "address": 1 << 30, "total_size": 2560, "stream": 0, "blocks": blocks}
    values = {"segments": [segment | {"segment_type": "small"}], "device_traces": []}

    first = written(read(values, tmp_path), tmp_path)
    second = written(read(first, tmp_path), tmp_path)

    for found in (first, second):
        (one,) = found["segments"]
        assert [each["requested_size"] for each in one["blocks"]] == [77, 600, 900]
        assert one["blocks"][1]["frames"] == frames


def test_a_memory_limit_comes_back(tmp_path):
    gpu = SimulatedGPU(memory=1 << 30, real_time=False)
    gpu._allocator.set_memory_fraction(0.5)
    with record(device=gpu) as recorder:
        gpu._allocator.set_memory_fraction(0.25)

    again = round_trip(recorder.recording, tmp_path)

    sizes = [row["size"] for row in events(again) if row["action"] == "memory_limit"]
    assert sizes == [1 << 29, 1 << 28]


def test_every_block_lies_in_a_segment_at_every_event(tmp_path):
    values = written(observed(tmp_path), tmp_path)
    segments = {each["address"]: each["total_size"] for each in values["segments"]}

    # Backwards from the end, like torch's viewer.
    homeless = []
    for event in reversed(values["device_traces"][0]):
        if event["action"] == "segment_free":
            segments[event["addr"]] = event["size"]
        elif event["action"] == "segment_alloc":
            del segments[event["addr"]]
        elif event["action"] in {"alloc", "free_requested", "free_completed"}:
            start = [first for first in segments if first <= event["addr"]]
            if not start or event["addr"] + event["size"] > max(start) + segments[max(start)]:
                homeless.append(event["addr"])

    # Initial events have no event before which a segment could be placed.
    assert homeless == []


def test_only_opcodes_that_torchs_viewer_reads_are_written(simulated, tmp_path):
    import pickletools

    path = torch_export.write(simulated, tmp_path / "out.pickle")

    opcodes = {opcode.name for opcode, _, _ in pickletools.genops(path.read_bytes())}
    assert opcodes - VIEWER_OPCODES == set()


def test_a_file_that_is_there_stays(simulated, tmp_path):
    path = tmp_path / "out.pickle"
    path.write_text("precious")

    with pytest.raises(RecordingExistsError, match=r"out\.pickle exists"):
        simulated.export(path)

    assert path.read_text() == "precious"
    simulated.export(path, overwrite=True)
    assert load(path).manifest.simulated is True
    assert [file.name for file in tmp_path.iterdir()] == ["out.pickle"]
