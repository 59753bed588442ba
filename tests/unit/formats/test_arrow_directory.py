"""Folders of Arrow and Parquet files: written, read back, and by other tools."""

import dataclasses
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

import gpuviz
from gpuviz.data.manifest import Manifest
from gpuviz.errors import FormatError, RecordingExistsError
from gpuviz.formats.arrow_directory import layout, read, write_arrow, write_parquet
from gpuviz.recording import Recording
from tests.examples import examples, share_of
from tests.unit.formats.any_recording import any_recording, empty

EXAMPLES = examples(8)
RECORDED = Path(gpuviz.__file__).parent / "commands" / "recordings" / "fft_filter.gpuviz"
WRITERS = pytest.mark.parametrize("write", [write_arrow, write_parquet])


def names_in(folder):
    return [path.name for path in folder.iterdir()]


def differences(left, right):
    """Return the names of tables that differ, including types and metadata of their schemas."""
    names = left.tables.keys() | right.tables.keys()
    return [
        name
        for name in sorted(names)
        if left.tables[name] != right.tables[name]
        or not left.tables[name].schema.equals(right.tables[name].schema, check_metadata=True)
    ]


@WRITERS
def test_what_was_recorded_on_a_gpu_comes_back_equal(write, tmp_path):
    recording = gpuviz.load(RECORDED)

    back = read(write(recording, tmp_path / "run"))

    assert differences(recording, back) == []
    # Tables that an older version did not have are empty.
    rows = {name: table.num_rows for name, table in recording.tables.items()}
    assert back.manifest == dataclasses.replace(recording.manifest, tables=rows)


@EXAMPLES
@given(recording=any_recording())
@pytest.mark.parametrize("write", [write_arrow, write_parquet])
def test_any_recording_comes_back_equal(write, recording, tmp_path_factory):
    back = read(write(recording, tmp_path_factory.mktemp("folder") / "run"))

    assert [
        name
        for name, table in recording.tables.items()
        if table.to_pylist() != back.tables[name].to_pylist()
        or table.schema != back.tables[name].schema
    ] == []


@WRITERS
def test_an_empty_recording_comes_back_and_an_unknown_table_is_noted(write, tmp_path):
    mine = pa.table({"name": ["a", "b"]}, metadata={"by": "me"})
    recording = Recording(empty().tables, Manifest(extra={"new": [1]}))
    more = Recording({**empty().tables, "mine": mine}, recording.manifest)

    back = read(write(more, tmp_path / "run"))

    assert differences(recording, back) == []
    assert "does not read: 'mine'" in back.notes[0]
    assert back.manifest.extra == {"new": [1]}


def test_arrow_files_can_be_mapped_and_keep_dictionaries_and_units(tmp_path):
    recording = gpuviz.load(RECORDED)
    folder = write_arrow(recording, tmp_path / "run.arrow")

    allocated = pa.total_allocated_bytes()
    with pa.memory_map(str(folder / "memory_events.arrow")) as file:
        table = pa.ipc.open_file(file).read_all()
        mapped = pa.total_allocated_bytes() - allocated
        schema = table.schema
        assert table == recording.tables["memory_events"]

    assert mapped < table.nbytes / 4
    assert schema.field("action").type == pa.dictionary(pa.int8(), pa.utf8())
    assert schema.field("time").metadata == {b"unit": b"ns"}
    assert schema.field("requested_size").metadata == {b"unit": b"bytes"}
    assert schema.field("device").metadata is None
    assert b"nanoseconds since the recording's start" in schema.metadata[b"about"]


def test_parquet_files_keep_texts_as_dictionaries(tmp_path):
    recording = gpuviz.load(RECORDED)
    folder = write_parquet(recording, tmp_path / "run.parquet")

    table = pq.read_table(folder / "activities.parquet")

    assert pa.types.is_dictionary(table.schema.field("kind").type)
    assert table["kind"].to_pylist() == recording.tables["activities"]["kind"].to_pylist()


def test_the_layout_tells_a_folder_from_others(tmp_path):
    (tmp_path / "other").mkdir()

    assert layout(write_arrow(empty(), tmp_path / "a")) == "arrow"
    assert layout(write_parquet(empty(), tmp_path / "b")) == "parquet"
    assert layout(tmp_path / "other") == ""
    assert layout(RECORDED) == ""


@WRITERS
def test_a_damaged_file_is_named(write, tmp_path):
    folder = write(gpuviz.load(RECORDED), tmp_path / "run")
    path = next(folder.glob("memory_events.*"))
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])

    with pytest.raises(FormatError) as caught:
        read(folder)

    assert (caught.value.path, caught.value.member) == (str(folder), path.name)


@WRITERS
def test_flipped_bytes_give_the_table_or_a_named_error(write, tmp_path):
    recording = gpuviz.load(RECORDED)
    folder = write(recording, tmp_path / "run")
    path = next(folder.glob("activities.*"))
    content = path.read_bytes()
    members = set()

    for place in range(0, len(content), max(1, len(content) // share_of(100))):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        try:
            read(folder)
        except FormatError as error:
            members.add(error.member)

    assert members == {path.name}


@pytest.mark.parametrize(
    ("change", "member", "problem"),
    [
        (lambda folder: (folder / "pools.arrow").unlink(), "pools.arrow", "missing; the manifest"),
        (lambda folder: (folder / "manifest.json").unlink(), "manifest.json", "missing, or has no"),
        (
            lambda folder: change_manifest(folder, lambda m: m["tables"].update(pools=3)),
            "pools.arrow",
            "0 rows, the manifest has 3",
        ),
        (
            lambda folder: change_manifest(folder, lambda m: m["tables"].clear()),
            "manifest.json",
            'expected "tables" to have memory_events',
        ),
    ],
)
def test_a_folder_that_lacks_something_says_what(change, member, problem, tmp_path):
    folder = write_arrow(empty(), tmp_path / "run")
    change(folder)

    with pytest.raises(FormatError) as caught:
        read(folder)

    assert caught.value.member == member
    assert caught.value.problem.startswith(problem)


def change_manifest(folder, change):
    values = json.loads((folder / "manifest.json").read_text())
    change(values)
    (folder / "manifest.json").write_text(json.dumps(values))


def test_a_folder_of_other_files_is_never_replaced(tmp_path):
    folder = tmp_path / "run.arrow"
    folder.mkdir()
    (folder / "thesis.txt").write_text("mine")

    with pytest.raises(RecordingExistsError, match="gpuviz did not export"):
        write_arrow(empty(), folder, overwrite=True)

    assert (folder / "thesis.txt").read_text() == "mine"
    assert names_in(tmp_path) == ["run.arrow"]


def test_an_exported_folder_is_replaced_as_a_whole(tmp_path):
    folder = write_parquet(gpuviz.load(RECORDED), tmp_path / "run")

    write_arrow(empty(), folder, overwrite=True)

    assert {path.suffix for path in folder.iterdir()} == {".arrow", ".json"}
    assert read(folder).tables["activities"].num_rows == 0
    assert names_in(tmp_path) == ["run"]
