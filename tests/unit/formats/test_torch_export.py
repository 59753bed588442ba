"""Memory snapshots of PyTorch written from recordings."""

import pytest

from gpuviz import SimulatedGPU, record
from gpuviz.errors import RecordingExistsError
from gpuviz.formats import rmm_csv, torch_snapshot
from gpuviz.recording.recording import load
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
    return rmm_csv.read(log)


def round_trip(recording, folder):
    return torch_snapshot.read(torch_snapshot.write(recording, folder / "out.pickle"))


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

    path = torch_snapshot.write(simulated, tmp_path / "out.pickle")

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
