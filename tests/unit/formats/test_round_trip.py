import copy
import pickle

import pyarrow as pa
import pytest

import gpuviz.errors
from gpuviz.analysis.derived_tables import derived_for_file
from gpuviz.data.manifest import Manifest
from gpuviz.data.tables import ACTIONS, schemas
from gpuviz.formats.part import PartWriter
from gpuviz.recording import Recording, load

MIB = 1 << 20


def event(time, action, address, size, requested_size=0):
    return (time, action, address, size, requested_size, 0, 0, 1, 0, 1, 0, "")


EVENTS = [
    event(1, "segment_alloc", 1 << 40, 20 * MIB),
    event(2, "alloc", 1 << 40, 5 * MIB, 5 * MIB - 100),
    event(3, "alloc", (1 << 40) + 5 * MIB, 2 * MIB, 2 * MIB),
    event(4, "free_requested", 1 << 40, 5 * MIB, 5 * MIB - 100),
    event(5, "free_completed", 1 << 40, 5 * MIB, 5 * MIB - 100),
]


def event_table(events):
    schema = schemas()["memory_events"]
    columns = dict(zip(schema.names, zip(*events, strict=True), strict=True))
    codes = pa.array([ACTIONS.index(a) for a in columns["action"]], pa.int8())
    columns["action"] = pa.DictionaryArray.from_arrays(codes, pa.array(ACTIONS))
    return pa.table([pa.array(columns[f.name], f.type) for f in schema], schema=schema)


def recording():
    return Recording({"memory_events": event_table(EVENTS)}, Manifest(duration_ns=9))


def test_a_saved_recording_loads_with_equal_tables(tmp_path):
    path = recording().save(tmp_path / "run.gpuviz")

    loaded = load(path)

    assert loaded.tables == recording().tables
    assert loaded.duration_ns == 9


def sent(recorded):
    return pickle.loads(pickle.dumps(recorded))  # noqa: S301 - our own


@pytest.mark.parametrize("copied", [sent, copy.deepcopy])
def test_a_recording_that_was_asked_before_can_be_sent_to_another_process(copied):
    asked = recording()
    peak = asked.peak()

    other = copied(asked)

    assert (other.tables, other.manifest, other.peak()) == (asked.tables, asked.manifest, peak)


def test_saving_over_a_file_is_refused_unless_asked_for(tmp_path):
    path = recording().save(tmp_path / "run.gpuviz")

    with pytest.raises(gpuviz.errors.RecordingExistsError, match="overwrite=True"):
        recording().save(path)

    assert recording().save(path, overwrite=True) == path


def test_levels_statistics_and_parts_of_reserved_memory_agree():
    recorded = recording()

    stats = recorded.memory_stats()
    parts = recorded.fragmentation()

    assert stats["allocated_bytes.all.current"] == 2 * MIB
    assert stats["inactive_split_bytes.all.current"] == 18 * MIB
    assert recorded.memory_levels["largest_free"].to_pylist()[-1] == 13 * MIB
    assert (recorded.peak().time_ns, recorded.peak().bytes) == (3, 7 * MIB)
    assert sum(recorded.sites()["live_bytes"].to_pylist()) == 7 * MIB
    assert [b["size"] for b in recorded.memory_snapshot(at=4)[0]["blocks"]] == [
        5 * MIB,
        2 * MIB,
        13 * MIB,
    ]
    assert parts.reserved == (
        parts.requested
        + parts.rounding
        + parts.pending_free
        + parts.inactive_split
        + parts.cached_whole
    )


@pytest.mark.parametrize("length", [0, 1, 100, 1000])
def test_a_truncated_file_is_a_format_error(tmp_path, length):
    path = recording().save(tmp_path / "run.gpuviz")
    path.write_bytes(path.read_bytes()[:length])

    with pytest.raises(gpuviz.errors.FormatError, match=r"run\.gpuviz"):
        load(path)


def test_a_part_directory_loads_without_its_torn_end_and_says_so(tmp_path):
    writer = PartWriter(tmp_path / "run.gpuviz", Manifest())
    batches = event_table(EVENTS).to_batches(max_chunksize=2)
    for batch in batches:
        writer.append("memory_events", batch)
        writer.flush()
    whole = load(writer.directory)
    with (writer.directory / "memory_events.arrow").open("ab") as file:
        file.write(b"\xff\xff\xff\xff\x10")

    torn = load(writer.directory)

    assert torn.table("memory_events") == whole.table("memory_events")
    assert torn.is_complete is False
    assert any("incomplete batch" in note for note in torn.notes)
    written = Recording(writer.tables(), Manifest())
    writer.finish(written, derived_for_file(written))
    assert load(writer.path).tables == recording().tables
