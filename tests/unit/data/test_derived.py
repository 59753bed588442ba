"""Derived tables in files: kept, or recomputed if they do not match the other tables."""

import zipfile

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given

from gpuviz.analysis.classification import classify
from gpuviz.analysis.derived_tables import DerivedTables
from gpuviz.data.derived import DERIVED_VERSION, marked, schemas
from gpuviz.data.manifest import Manifest
from gpuviz.formats.gpuviz import DERIVED_FOLDER
from gpuviz.recording import Recording, load
from tests.examples import examples
from tests.unit.recording.any_timeline import RECORDINGS
from tests.unit.recording.from_activities import Timeline

EXAMPLES = examples(
    10,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def timeline():
    made = Timeline()
    made.kernel(0, 10)
    made.kernel(50, 60, correlation=7)
    made.call(40, 45, correlation=7)
    made.call(60, 90, "cuMemcpyDtoH_v2", correlation=8)
    made.copy(70, 80, correlation=8, copy_kind="device_to_host", destination="pageable")
    made.synchronization("event_record", 9, 9, correlation=4, event_sync_id=3)
    made.synchronization("stream_wait_event", 11, 11, correlation=5, event_sync_id=3, stream=2)
    return made


def was_kept(recording):
    """Return whether the derived tables of the file were used."""
    return not isinstance(recording.derived, DerivedTables)


def edited(path, change):
    """Rewrite an archive with other members: ``change`` gets them all, as bytes by name."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def with_table(name, change):
    """Return a change of a derived table that keeps its mark."""

    def apply(members):
        member = f"{DERIVED_FOLDER}{name}.arrow"
        table = change(pa.ipc.open_stream(members[member]).read_all())
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        members[member] = sink.getvalue().to_pybytes()

    return apply


@EXAMPLES
@given(recording=RECORDINGS)
def test_a_file_has_the_derived_tables(recording, tmp_path):
    path = recording.save(tmp_path / "run.gpuviz", overwrite=True)

    loaded = load(path)

    assert was_kept(loaded)
    assert dict(loaded.derived) == classify(recording.tables)
    assert loaded.tables == recording.tables
    assert loaded.manifest.derived_version == DERIVED_VERSION


def test_a_derived_table_can_be_asked_for_by_name():
    recording = timeline().recording()

    assert recording.table("idle_gaps") == recording.derived["idle_gaps"]
    with pytest.raises(KeyError, match="host_waits, host_work, idle_gaps"):
        recording.table("idle_gap")


def test_a_report_has_the_derived_tables(tmp_path):
    recording = timeline().recording()

    loaded = load(recording.report(tmp_path / "run.html"))

    assert was_kept(loaded)
    assert dict(loaded.derived) == classify(recording.tables)


def change_version(members):
    manifest = members["manifest.json"].replace(
        b'"derived_version": %d' % DERIVED_VERSION, b'"derived_version": 99'
    )
    assert manifest != members["manifest.json"]
    members["manifest.json"] = manifest
    for name in schemas():
        with_table(name, lambda table: table.replace_schema_metadata({}))(members)


def last_row_twice(table):
    return pa.concat_tables([table, table.slice(table.num_rows - 1)])


DOUBTFUL = {
    "missing": lambda members: members.pop(f"{DERIVED_FOLDER}host_waits.arrow"),
    "of another version": change_version,
    "without a column": with_table("idle_gaps", lambda table: table.drop_columns(["cause"])),
}


@pytest.mark.parametrize("change", DOUBTFUL.values(), ids=DOUBTFUL)
def test_derived_tables_that_do_not_fit_are_made_anew(change, tmp_path):
    recording = timeline().recording()
    path = edited(recording.save(tmp_path / "run.gpuviz"), change)

    loaded = load(path)

    assert not was_kept(loaded)
    assert dict(loaded.derived) == classify(recording.tables)


def test_derived_tables_of_other_tables_are_made_anew(tmp_path):
    path = timeline().recording().save(tmp_path / "run.gpuviz")
    other = timeline()
    other.kernel(200, 210)
    changed = other.recording().save(tmp_path / "changed.gpuviz")

    def put_in_stale_ones(members):
        with zipfile.ZipFile(path) as archive:
            members |= {
                name: archive.read(name)
                for name in archive.namelist()
                if name.startswith(DERIVED_FOLDER)
            }

    loaded = load(edited(changed, put_in_stale_ones))

    assert not was_kept(loaded)
    assert dict(loaded.derived) == classify(other.recording().tables)


def test_a_window_has_its_own_derived_tables_and_the_waits_of_the_whole(tmp_path):
    whole = load(timeline().recording().save(tmp_path / "run.gpuviz"))
    window = whole.window(45, 100)

    gaps = window.derived["idle_gaps"].to_pylist()
    assert [{**gap, "activity": gap["activity"] + 1} for gap in gaps if gap["end"] < 90] == [
        gap for gap in whole.derived["idle_gaps"].to_pylist() if gap["time"] >= 45
    ]
    waits = window.derived["host_waits"].to_pylist()
    rows = ("call", "synchronization")
    touching = [
        wait
        for wait in whole.derived["host_waits"].to_pylist()
        if wait["time"] <= 100 and wait["end"] > 45
    ]
    assert [{**wait, **dict.fromkeys(rows)} for wait in waits] == [
        {**wait, **dict.fromkeys(rows)} for wait in touching
    ]
    for wait in waits:
        if wait["call"] >= 0:
            call = window.table("api_calls").slice(wait["call"], 1).to_pylist()[0]
            assert (call["name"], call["thread"]) == (wait["name"], wait["thread"])
    assert load(window.save(tmp_path / "part.gpuviz")).derived["host_waits"].to_pylist() == waits


def test_only_marked_tables_are_taken_for_those_of_a_recording():
    recording = timeline().recording()
    unmarked = Recording(recording.tables, Manifest(), classify(recording.tables))
    kept = Recording(recording.tables, Manifest(), marked(recording.derived, recording.tables))

    assert not was_kept(unmarked)
    assert was_kept(kept)


def test_the_user_frame_and_the_hosts_memory_are_made_where_a_file_has_none():
    made = timeline()
    made.call(200, 201, line=3)
    recording = made.recording()
    older = {
        **recording.tables,
        "stacks": recording.tables["stacks"].drop_columns(["user_frame"]),
        "activities": recording.tables["activities"].drop_columns(["host_memory"]),
    }

    assert Recording(older, Manifest()).tables == recording.tables
    assert recording.tables["stacks"]["user_frame"].to_pylist() == [2]
    memories = recording.tables["activities"]["host_memory"].to_pylist()
    assert memories == ["", "", "pageable"]
