"""Perfetto traces against the recording's tables, with Perfetto's messages and its own reader."""

import json
from pathlib import Path
from zipfile import ZipFile

import pytest
from hypothesis import given

import gpuviz
from gpuviz.data.tables import DICTIONARIES
from gpuviz.exports.perfetto import write
from tests.examples import examples
from tests.integration.formats import perfetto_file, plain_trace
from tests.integration.formats.trace_processor import answers
from tests.unit.formats.any_recording import HOSTILE, any_recording, empty, with_memory
from tests.unit.recording.from_activities import Timeline

EXAMPLES = examples(30)
RECORDED = Path(gpuviz.__file__).parent / "commands" / "recordings"
NO_ERRORS = "select name, value from stats where value != 0 and severity != 'info'"


@EXAMPLES
@given(recording=any_recording())
def test_slices_flows_and_counters_are_those_of_the_tables(recording, tmp_path_factory):
    path = write(recording, tmp_path_factory.mktemp("trace") / "run.pftrace")

    file = perfetto_file.read(path)

    assert file.slices == plain_trace.slices(recording)
    assert file.flows == plain_trace.flows(recording)
    names = {device: file_name(recording, device) for device in range(4)}
    expected = plain_trace.counters(recording)
    assert file.counters == {(names[d], name): rows for (d, name), rows in expected.items()}
    ranges = DICTIONARIES["ranges", "kind"]
    assert {outer for outer, _ in file.nested} <= {"graph", "call", *ranges}


def file_name(recording, device):
    (name,) = [r["name"] for r in recording.tables["devices"].to_pylist() if r["id"] == device] or [
        ""
    ]
    return f"GPU {device}: {name}" if name else f"GPU {device}"


@pytest.mark.parametrize("name", ["kmeans", "fft_filter", "image_pipeline"])
def test_perfetto_reads_what_was_recorded_on_a_gpu(name, tmp_path):
    recording = gpuviz.load(RECORDED / f"{name}.gpuviz")
    path = recording.export(tmp_path / "run.pftrace")

    errors, slices, flows, counters, kernels = answers(
        path.read_bytes(),
        NO_ERRORS,
        "select category, name, ts, dur from slice",
        "select o.ts, i.ts from flow "
        "join slice o on slice_out = o.id join slice i on slice_in = i.id",
        "select t.name, c.ts, cast(c.value as int) from counter c join counter_track t "
        "on c.track_id = t.id order by c.id",
        "select extract_arg(arg_set_id, 'debug.correlation'), extract_arg(arg_set_id, 'debug.grid')"
        " from slice where category = 'kernel'",
    )

    expected = plain_trace.slices(recording)
    assert errors == []
    assert sorted(slices) == sorted((s.category, s.name, s.time, s.duration) for s in expected)
    assert sorted(flows) == plain_trace.flows(recording)
    for (_, name_of_counter), rows in plain_trace.counters(recording).items():
        found = [(ts, value) for track, ts, value in counters if track == name_of_counter]
        assert found == rows
    assert sorted(kernels) == sorted(grids(recording))


def grids(recording):
    launches = {row["id"]: row for row in recording.tables["launch_configurations"].to_pylist()}
    for row in recording.tables["activities"].to_pylist():
        if row["kind"] == "kernel":
            launch = launches[row["launch"]]
            yield row["correlation"], ", ".join(str(launch[f"grid_{axis}"]) for axis in "xyz")


def test_perfetto_shows_each_device_as_a_process_and_each_stream_as_a_track(tmp_path):
    timeline = Timeline()
    for device, stream, name in ((0, 1, "my stream"), (0, 2, "B"), (1, 3, "C")):
        timeline.add("streams", {"id": stream, "device": device, "name": name})
        timeline.kernel(10, 20, device=device, stream=stream)
    path = timeline.recording().export(tmp_path / "run.pftrace")

    (tracks,) = answers(
        path.read_bytes(),
        "select process.name, process_track.name from slice join process_track "
        "on slice.track_id = process_track.id join process using (upid) order by 2",
    )

    assert tracks == [("GPU 0", "B"), ("GPU 1", "C"), ("GPU 0", "my stream")]


def test_perfetto_shows_each_process_of_a_merged_recording_with_its_threads_and_devices(tmp_path):
    parts = []
    for number, name in enumerate(("one.py", "two.py")):
        timeline = Timeline()
        timeline.add("threads", {"id": 1, "name": "MainThread"})
        timeline.call(5, 8, correlation=1)
        timeline.kernel(10, 20, correlation=1)
        facts = {"boot_id": "b", "start_monotonic_ns": 1000 * (number + 1), "program": (name,)}
        launch = {"rank": number}
        parts.append(timeline.recording(process_id=4711, host=f"n{number}", launch=launch, **facts))
    path = gpuviz.merge(parts).export(tmp_path / "run.pftrace")

    errors, hosts, streams = answers(
        path.read_bytes(),
        NO_ERRORS,
        "select process.name, thread.name, slice.ts from slice join thread_track "
        "on slice.track_id = thread_track.id join thread using (utid) "
        "join process using (upid) order by ts",
        "select process.name, slice.ts from slice join process_track "
        "on slice.track_id = process_track.id join process using (upid) order by ts",
    )

    assert errors == []
    assert hosts == [
        ("rank 0: one.py", "MainThread", 5),
        ("rank 1: two.py", "MainThread", 1005),
    ]
    assert streams == [("rank 0 GPU 0", 10), ("rank 1 GPU 0", 1010)]


def ranks(hosts):
    """Return the recordings of ranks on hosts, of which each launches a kernel."""
    parts = []
    for number, host in enumerate(hosts):
        timeline = Timeline()
        timeline.add("threads", {"id": 1, "name": "MainThread"})
        timeline.call(5, 8, correlation=1)
        timeline.kernel(10, 20, correlation=1)
        timeline.add("clock_snapshots", {"time": 0, "wall": 10**18 + 1000 * number})
        facts = {
            "boot_id": host,
            "start_monotonic_ns": 1000 * (number + 1),
            "start_unix_ns": 10**18 + 1000 * number,
        }
        launch = {"rank": number}
        parts.append(
            timeline.recording(
                process_id=4711, host=host, launch=launch, program=("a.py",), **facts
            )
        )
    return parts


def test_an_archive_has_a_trace_for_each_host_and_perfetto_shows_all_on_one_axis(tmp_path):
    merged = gpuviz.merge(ranks(["n0", "n1", "n0"]))
    path = merged.export(tmp_path / "all.zip")

    with ZipFile(path) as archive:
        manifest, *names = archive.namelist()
        told = json.loads(archive.read(manifest))
        entries = {name: archive.read(name) for name in names}
    shown = (
        "select process.name, slice.ts - (select min(ts) from slice) from slice join {0}_track on "
    )
    shown += "slice.track_id = {0}_track.id {1} join process using (upid) order by ts"
    queries = [shown.format("process", ""), shown.format("thread", "join thread using (utid)")]
    errors, streams, hosts = answers(path.read_bytes(), NO_ERRORS, *queries)
    _, whole_streams, whole_hosts = answers(
        merged.export(tmp_path / "all.pftrace").read_bytes(), NO_ERRORS, *queries
    )

    assert errors == []
    assert streams == whole_streams
    assert hosts == whole_hosts
    assert [name for name, _ in streams] == ["rank 0 GPU 0", "rank 1 GPU 0", "rank 2 GPU 0"]
    assert names == ["0-n0.pftrace", "1-n1.pftrace"]
    (own,) = answers(entries["1-n1.pftrace"], queries[0])
    assert [name for name, _ in own] == ["rank 1 GPU 0"]
    found = told["perfetto_manifest"]
    assert found["version"] == 1
    assert [(each["path"], each["machine"]["name"]) for each in found["files"]] == [
        ("0-n0.pftrace", "n0"),
        ("1-n1.pftrace", "n1"),
    ]
    assert found["files"][1]["clocks"]["sync_to"]["file"] == "0-n0.pftrace"
    assert found["attributes"]["clock error of n0 (ns)"] == 0
    assert found["attributes"]["clock error of n1 (ns)"] > 0


def test_an_archive_of_one_process_has_one_trace(tmp_path):
    recording = gpuviz.load(RECORDED / "kmeans.gpuviz")
    path = recording.export(tmp_path / "run.zip")

    with ZipFile(path) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith(".pftrace")]
        content = archive.read(name)

    assert content == recording.export(tmp_path / "run.pftrace").read_bytes()


@pytest.mark.parametrize("host", ["../../etc", "a/b\\c", "", "\udc80", "x" * 300])
def test_names_of_hosts_are_no_paths_in_an_archive(tmp_path, host):
    path = gpuviz.merge(ranks([host, "n1"])).export(tmp_path / "all.zip")

    with ZipFile(path) as archive:
        names = archive.namelist()
    assert len(names) == 3
    assert all(set(name) <= set("0123456789abcdefghijklmnopqrstuvwxyz_-.") for name in names)
    assert all(len(name) < 60 for name in names)


def test_perfetto_nests_no_work_of_a_stream_but_in_graphs(tmp_path):
    timeline = Timeline()
    timeline.kernel(10, 50, "around")
    timeline.kernel(20, 30, "within")
    timeline.activity("graph", 60, 90)
    timeline.kernel(65, 70, "node")
    path = timeline.recording().export(tmp_path / "run.pftrace")

    errors, depths, tracks = answers(
        path.read_bytes(),
        NO_ERRORS,
        "select name, depth from slice order by ts",
        "select count(distinct track_id) from slice",
    )

    assert errors == []
    assert depths == [("around", 0), ("within", 0), ("graph", 0), ("node", 1)]
    assert tracks == [(2,)]


def test_perfetto_reads_names_of_any_text_as_they_are(tmp_path):
    timeline = Timeline()
    for number, name in enumerate(HOSTILE):
        timeline.kernel(10 * number, 10 * number + 5, name)
    recording = timeline.recording(program=("caf\udce9.py", HOSTILE[0]))
    path = recording.export(tmp_path / "run.pftrace")

    file = perfetto_file.read(path)
    (names,) = answers(path.read_bytes(), "select name from slice order by ts")

    assert [each.name for each in file.slices] == [
        each.name for each in plain_trace.slices(recording)
    ]
    # SQL truncates a text at the character 0.
    assert [name for (name,) in names] == [name.split("\0")[0] for name in HOSTILE]


def test_out_of_memory_snapshots_releases_and_empty_cache_are_instants_with_their_bytes(tmp_path):
    segment = {"address": 2048, "size": 1024, "device": 0, "pause": 5}
    failed = {"action": "oom", "address": 77, "requested_size": 900, "size": 1024, "pause": 5}
    events = [
        {"action": "segment_alloc"} | segment,
        {"action": "segment_alloc"} | segment | {"address": 4096},
        failed,
        {"action": "segment_free"} | segment,
        {"action": "segment_free"} | segment | {"address": 4096},
        {"action": "empty_cache", "size": 2048, "pause": 5},
        {"action": "snapshot", "pause": 5},
    ]
    recording = with_memory(empty(), events)
    path = recording.export(tmp_path / "run.pftrace")

    (instants,) = answers(
        path.read_bytes(),
        "select name, ts, dur, extract_arg(arg_set_id, 'debug.bytes') from slice order by ts",
    )

    assert instants == [
        ("out of memory", 15, 0, 1024),
        ("segments released", 20, 0, 2048),
        ("empty_cache()", 30, 0, 2048),
        ("snapshot", 35, 0, None),
    ]


def test_a_recording_of_nothing_is_a_trace_that_perfetto_reads(tmp_path):
    path = empty().export(tmp_path / "run.pftrace")

    errors, slices = answers(path.read_bytes(), NO_ERRORS, "select count(*) from slice")

    assert errors == []
    assert slices == [(0,)]


def test_what_is_earlier_than_the_start_begins_the_trace(tmp_path):
    timeline = Timeline()
    timeline.kernel(-500, 20)
    path = timeline.recording(start_unix_ns=10_000).export(tmp_path / "run.pftrace")

    (slices,) = answers(path.read_bytes(), "select ts, dur, to_realtime(ts) from slice")

    assert slices == [(0, 520, 9_500)]


def test_the_file_says_what_the_wall_clock_was(tmp_path):
    recording = gpuviz.load(RECORDED / "fft_filter.gpuviz")
    path = recording.export(tmp_path / "run.pftrace")

    (slices,) = answers(path.read_bytes(), "select min(ts), to_realtime(min(ts)) from slice")

    first = plain_trace.slices(recording)
    time = min(each.time for each in first)
    assert slices == [(time, recording.manifest.start_unix_ns + time)]
