"""Recordings of several processes as one: contents, ids, analyses."""

import random

import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuviz
from gpuviz.data.columns import plain
from gpuviz.data.manifest import Manifest
from gpuviz.errors import GpuvizError
from gpuviz.merging.ids import SPACES
from gpuviz.recording import Recording
from tests.unit.merging.processes_of_a_run import process, program, rows
from tests.unit.recording.from_activities import rows_of

HAPPENED = (
    *("activities", "api_calls", "synchronizations", "launch_blocks", "memory_events"),
    "host_memory_events",
)


@pytest.fixture(scope="module")
def parts():
    """Four processes of one host, which began at different times."""
    return [process(program(seed), seed, ranks=4, start=seed * 1_234_567) for seed in range(4)]


@pytest.fixture(scope="module")
def merged(parts):
    return gpuviz.merge(parts)


def level_at(recording, device, time):
    levels = recording.memory_levels
    chosen = (plain(levels["device"]) == device) & (plain(levels["time"]) <= time)
    return plain(levels["allocated"])[chosen][-1] if chosen.any() else 0


@given(st.integers(0, 10**6), st.integers(1, 5))
def test_each_row_is_kept_once_and_levels_are_the_sums(seed, count):
    draw = random.Random(seed)
    parts = [
        process(program(draw.random()), number, start=draw.randrange(10**7))
        for number in range(count)
    ]

    merged = gpuviz.merge(parts)

    for name in HAPPENED:
        assert merged.tables[name].num_rows == sum(part.tables[name].num_rows for part in parts)
    first = min(part.manifest.start_monotonic_ns for part in parts)
    for time in draw.sample(range(merged.duration_ns + 1), 20):
        own = [time - (part.manifest.start_monotonic_ns - first) for part in parts]
        expected = sum(level_at(part, 0, max(at, 0)) for part, at in zip(parts, own, strict=True))
        assert sum(level_at(merged, each, time) for each in merged.devices) == expected


def test_ids_of_two_processes_differ(parts, merged):
    for columns in SPACES.values():
        of_merged, of_parts = set(), 0
        for table, column in columns:
            of_merged |= set(plain(merged.tables[table][column]).tolist()) - {0}
        for part in parts:
            seen = [set(plain(part.tables[table][column]).tolist()) for table, column in columns]
            of_parts += len(set().union(*seen) - {0})
        assert len(of_merged) == of_parts
    for name in ("devices", "streams", "ranges", "threads", "stacks", "frames", "strings"):
        ids = merged.tables[name]["id"].to_pylist()
        assert len(ids) == len(set(ids))


def test_blocks_of_two_processes_have_different_addresses(merged):
    seen = [
        set(plain(each.recording.tables["launch_blocks"]["address"]).tolist())
        for each in merged.processes
    ]

    assert all(seen)
    assert sum(map(len, seen)) == len(set().union(*seen))


def test_equal_call_stacks_and_names_are_kept_once(parts, merged):
    texts = {row["text"] for part in parts for row in part.table("strings").to_pylist()}

    assert sorted(merged.table("strings")["text"].to_pylist()) == sorted(texts)
    assert merged.tables["frames"].num_rows == len(
        {tuple(row.values())[1:] for part in parts for row in part.table("frames").to_pylist()}
    )


def test_each_gpu_of_each_process_is_a_device(parts, merged):
    assert merged.devices == (0, 1, 2, 3)
    for device, part in enumerate(parts):
        ours, theirs = merged.memory_stats(device), part.memory_stats(0)
        assert ours == theirs
        at, its = merged.peak(device), part.peak(0)
        assert at.bytes == its.bytes
        assert at.time_ns == its.time_ns + device * 1_234_567


def test_totals_are_the_sums_of_the_processes(parts, merged):
    for question in ("kernels", "copies", "synchronizations", "sites", "lines"):
        ours = getattr(merged, question)()
        theirs = [getattr(part, question)() for part in parts]
        for column in ("count", "total_ns", "bytes", "total_bytes"):
            if column in ours.schema.names:
                total = sum(pc.sum(each[column]).as_py() or 0 for each in theirs)
                assert (pc.sum(ours[column]).as_py() or 0) == total


def test_lanes_and_their_causes_are_those_of_each_process(parts, merged):
    ours = merged.overlap().devices

    for device, part in enumerate(parts):
        (theirs,) = part.overlap().devices
        for name in ("busy_ns", "kernel_ns", "idle_host_ns", "idle_synchronization_ns", "count"):
            assert getattr(ours[device], name) == getattr(theirs, name)


def test_a_process_of_a_merged_recording_is_its_own_recording(parts, merged):
    for part, each in zip(parts, merged.processes, strict=True):
        assert each.name == f"rank {each.rank}"
        assert each.devices == {each.rank: 0}
        assert each.clock_error == 0
        assert each.recording.tables["activities"].num_rows == part.tables["activities"].num_rows
        assert each.recording.manifest.process_id == part.manifest.process_id
        ours, theirs = each.recording.kernels(), part.kernels()
        # Equal call stacks have one id.
        assert ours.drop_columns(["stack"]).equals(theirs.drop_columns(["stack"]))
        assert each.recording.memory_stats(each.rank) == part.memory_stats(0)


def owner(name, row, processes):
    """Return the position of the process that a row belongs to; None for none."""
    for number, each in enumerate(processes):
        if name in {"devices", "threads"}:
            is_own = row["id"] in each[name]
        elif "device" in row and name != "host_memory_events":
            is_own = row["device"] in each["devices"]
        else:
            is_own = row.get("thread") in each["threads"]
        if is_own:
            return number
    for number, each in enumerate(processes):
        of_correlation = (
            each["first_correlation"] <= row.get("correlation", -1) <= each["last_correlation"]
        )
        if of_correlation or (
            name == "host_memory_events"
            and each["first_address"] <= row["address"] <= each["last_address"]
        ):
            return number
    return None


def test_each_row_belongs_to_one_process(merged):
    processes = merged.table("processes").to_pylist()

    for name in set(merged.processes[0].rows) - {"processes"}:
        known = merged.table(name).to_pylist()
        owners = [owner(name, row, processes) for row in known]
        for number, each in enumerate(merged.processes):
            expected = [row for row, of in enumerate(owners) if of == number]
            assert each.rows[name].tolist() == expected, name
            own = each.recording.tables[name].to_pylist()
            assert own == [known[row] for row in expected]


def test_a_merged_recording_survives_a_file(merged, tmp_path):
    back = gpuviz.load(merged.save(tmp_path / "all.gpuviz"))

    assert back.manifest.notes == merged.manifest.notes
    for name in merged.tables:
        assert rows(back, name) == rows(merged, name)
    for name in ("host_waits", "idle_gaps", "stream_waits"):
        assert back.derived[name].equals(merged.derived[name])
    assert [each.name for each in back.processes] == ["rank 0", "rank 1", "rank 2", "rank 3"]


def test_two_processes_on_one_gpu_are_told_apart(parts):
    def on_gpu(recording, uuid):
        devices = recording.tables["devices"]
        place = devices.schema.get_field_index("uuid")
        tables = dict(recording.tables)
        tables["devices"] = devices.set_column(place, "uuid", [[uuid]])
        return Recording(tables, recording.manifest)

    merged = gpuviz.merge([on_gpu(parts[0], "aa"), on_gpu(parts[1], "aa"), parts[2]])

    assert merged.table("devices")["uuid"].to_pylist() == ["aa", "aa", ""]
    assert [each.devices for each in merged.processes] == [{0: 0}, {1: 0}, {2: 0}]


def test_a_device_that_only_copies_name_is_one_of_its_process():
    def copying(number):
        copy = {"time": 5, "end": 9, "kind": "copy", "copy_kind": "peer_to_peer", "bytes": 7}
        ends = {"source_device": 0, "destination_device": 1}
        tables = {"activities": rows_of("activities", [copy | ends])}
        return process(Recording(tables, Manifest()), number)

    merged = gpuviz.merge([copying(0), copying(1)])

    assert [each.devices for each in merged.processes] == [{0: 0, 1: 1}, {2: 0, 3: 1}]
    assert merged.table("activities")["source_device"].to_pylist() == [0, 2]
    assert merged.table("activities")["destination_device"].to_pylist() == [1, 3]


def test_more_devices_than_have_ids_are_refused():
    def with_devices(number):
        rows = [{"id": device, "kind": "cuda"} for device in range(2**14)]
        return process(Recording({"devices": rows_of("devices", rows)}, Manifest()), number)

    assert len(gpuviz.merge([with_devices(0), with_devices(1)]).devices) == 2**15
    with pytest.raises(GpuvizError, match="together they have more than 32,768 devices"):
        gpuviz.merge([with_devices(number) for number in range(3)])


def test_every_analysis_and_export_takes_a_merged_recording(merged, tmp_path):
    merged.memory_snapshot("peak")
    merged.fragmentation(device=2)
    merged.iterations(3)
    merged.leaks()
    merged.peak_chain(1, seconds=None)
    merged.what_if("max_split_size_mb:20", device=2)
    merged.compilations()
    merged.out_of_memory()
    merged.default_stream_work()
    merged.window(0, merged.duration_ns // 2).overlap()
    for name in ("run.pftrace", "run.json", "run.arrow", "run.pickle"):
        assert merged.export(tmp_path / name).exists()
    assert gpuviz.load(merged.report(tmp_path / "run.html")).tables["processes"].num_rows == 4
    redacted = gpuviz.load(merged.report(tmp_path / "public.html", redact=True))
    assert "node0" not in "".join(rows(redacted, "processes"))
    assert [each.name for each in redacted.processes] == [f"rank {n}" for n in range(4)]


def test_pinned_memory_is_that_of_all_processes_and_of_each(parts, merged):
    ends = [plain(part.host_memory.memory_levels["allocated"])[-1] for part in parts]

    assert min(ends) > 0
    assert plain(merged.host_memory.memory_levels["allocated"])[-1] == sum(ends)
    for part, each in zip(parts, merged.processes, strict=True):
        ours = each.recording.host_memory.memory_levels
        for name in ("requested", "allocated", "reserved"):
            assert ours[name].to_pylist() == part.host_memory.memory_levels[name].to_pylist()


def test_memory_that_existed_before_comes_first(parts):
    initial = sum(part.manifest.initial_events for part in parts)

    merged = gpuviz.merge(parts)

    assert merged.manifest.initial_events == initial > 0
    times = plain(merged.table("memory_events")["time"])[initial:]
    assert (np.diff(times) >= 0).all()


def test_threads_keep_their_ids_unless_another_process_has_them(parts, merged):
    system = [row["id"] for row in parts[0].table("threads").to_pylist() if row["id"]]
    ids = [row["threads"] for row in merged.table("processes").to_pylist()]

    assert ids[0] == system
    assert len({thread for each in ids for thread in each}) == 4 * len(system)


def test_64_processes_are_merged():
    parts = [process(program(number % 4), number, ranks=64, start=number) for number in range(64)]

    merged = gpuviz.merge(parts)

    assert merged.devices == tuple(range(64))
    assert [each.rank for each in merged.processes] == list(range(64))
    assert all(merged.peak(each).bytes == parts[each].peak(0).bytes for each in merged.devices)


def test_a_merged_recording_cannot_be_merged_again(merged):
    with pytest.raises(GpuvizError, match="recording 1 is a merged recording"):
        gpuviz.merge([merged])


def test_a_window_cannot_be_merged(parts):
    with pytest.raises(GpuvizError, match="recording 1 is a part of a recording"):
        gpuviz.merge([parts[0].window(0, 1000)])
