"""Files that would take far more memory than they have bytes, or that are no files at all."""

import base64
import io
import struct
import zipfile
import zlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gpuviz.analysis.derived_tables import derived_for_file
from gpuviz.data.manifest import Manifest
from gpuviz.data.tables import schemas
from gpuviz.errors import FormatError, RecordingError
from gpuviz.formats.arrow_directory import read as read_folder
from gpuviz.formats.arrow_directory import write_arrow, write_parquet
from gpuviz.formats.gpuviz import write_archive
from gpuviz.formats.load_limit import SMALLEST, VARIABLE
from gpuviz.formats.part import PartWriter
from gpuviz.recording import load
from tests.unit.formats.refused_files import refused
from tests.unit.report.recordings import make_recording

MANY = 4_000_000  # rows of more than 64 MiB


@pytest.fixture(scope="module")
def members():
    """Return the members of a small recording's file by name."""
    buffer = io.BytesIO()
    recording = make_recording()
    write_archive(buffer, recording, derived_for_file(recording))
    with zipfile.ZipFile(buffer) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archived(parts, path, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def stream(table, compression=None):
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def samples(rows=MANY):
    """Return a table of zeros in the schema of `device_memory`."""
    schema = schemas()["device_memory"]
    return pa.table([pa.nulls(rows, field.type).fill_null(0) for field in schema], schema=schema)


def without_rows(parts):
    """Return members whose manifest does not give numbers of rows."""
    return parts | {"manifest.json": Manifest().to_json().encode()}


@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
def test_a_table_of_zeros_in_an_archive_is_refused_before_it_is_expanded(
    members, tmp_path, compression
):
    zeros = {"device_memory.arrow": stream(samples(), compression)}
    path = archived(without_rows(members | zeros), tmp_path / "run.gpuviz")

    allocated = pa.default_memory_pool().max_memory()

    assert path.stat().st_size < 700_000
    assert refused(path) == "device_memory.arrow"
    assert pa.default_memory_pool().max_memory() - allocated < SMALLEST / 10


def test_the_limit_can_be_raised_by_an_argument_and_by_the_environment(
    members, tmp_path, monkeypatch
):
    zeros = {"device_memory.arrow": stream(samples(), "zstd")}
    path = archived(without_rows(members | zeros), tmp_path / "run.gpuviz")

    assert load(path, max_bytes=1 << 30).tables["device_memory"].num_rows == MANY
    monkeypatch.setenv(VARIABLE, str(1 << 30))
    assert load(path).tables["device_memory"].num_rows == MANY
    with pytest.raises(FormatError, match=r"limit for this file is 1\.00 MiB"):
        load(path, max_bytes=1 << 20)


@pytest.mark.parametrize("value", ["much", "0", "-1", "1e9"])
def test_a_limit_in_the_environment_that_is_no_number_is_named(tmp_path, monkeypatch, value):
    path = make_recording().save(tmp_path / "run.gpuviz")
    monkeypatch.setenv(VARIABLE, value)

    with pytest.raises(RecordingError, match=f"{VARIABLE} must be a positive number of bytes"):
        load(path)


@pytest.mark.parametrize(("value", "error"), [(0, ValueError), ("1", TypeError), (True, TypeError)])
def test_a_limit_that_is_no_number_of_bytes_is_named(tmp_path, value, error):
    with pytest.raises(error, match="max_bytes must be"):
        load(make_recording().save(tmp_path / "run.gpuviz"), max_bytes=value)


def test_a_member_that_declares_less_than_it_has_is_not_expanded(members, tmp_path):
    parts = without_rows(members | {"device_memory.arrow": bytes(100 << 20)})
    path = archived(parts, tmp_path / "run.gpuviz")
    content = path.read_bytes()
    path.write_bytes(content.replace(struct.pack("<I", 100 << 20), struct.pack("<I", 1000)))

    with pytest.raises(FormatError, match=r"device_memory\.arrow: damaged"):
        load(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_other_methods_of_compression_are_refused(members, tmp_path, method):
    path = archived(members, tmp_path / "run.gpuviz", method)

    with pytest.raises(FormatError, match=f"compressed by method {method}; expected deflate"):
        load(path)


def test_tables_that_gpuviz_does_not_know_are_not_loaded(members, tmp_path):
    more = {"bomb.arrow": bytes(100 << 20), "derived/bomb.arrow": b"", "a.txt": bytes(1 << 20)}
    path = archived(members | more, tmp_path / "run.gpuviz")

    recording = load(path)

    assert "bomb" not in recording.tables
    assert "does not read: 'bomb', 'derived/bomb'." in recording.notes[-1]


def test_a_report_is_limited_as_its_recording(members, tmp_path):
    zeros = {"device_memory.arrow": stream(samples(), "zstd")}
    path = archived(without_rows(members | zeros), tmp_path / "run.gpuviz")
    page = tmp_path / "run.html"
    text = base64.b64encode(path.read_bytes())
    page.write_bytes(b'<html><script id="gpuviz-recording">' + text + b"</script>")

    assert refused(page) == "device_memory.arrow"


def test_a_folder_of_a_growing_recording_is_limited(tmp_path):
    writer = PartWriter(tmp_path / "run.gpuviz", Manifest())
    (writer.directory / "device_memory.arrow").write_bytes(stream(samples(), "zstd"))

    assert refused(writer.directory) == "device_memory.arrow"


@pytest.mark.parametrize("write", [write_arrow, write_parquet])
def test_an_exported_folder_is_limited(tmp_path, write):
    folder = write(make_recording(), tmp_path / "run")
    zeros = samples()
    pq.write_table(zeros, folder / "device_memory.parquet")
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(folder / "device_memory.arrow", zeros.schema, options=options) as writer:
        writer.write_table(zeros)

    assert refused(folder).startswith("device_memory.")


def test_a_text_that_repeats_is_counted_each_time(members, tmp_path):
    schema = schemas()["devices"]
    names = pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int8()), ["x" * (1 << 20)])
    rows = {
        field.name: pa.nulls(1000, field.type).fill_null("" if field.type == "string" else 0)
        for field in schema
    }
    table = pa.table(rows | {"name": names})
    path = archived(
        without_rows(members | {"devices.arrow": stream(table)}), tmp_path / "run.gpuviz"
    )
    folder = write_parquet(make_recording(), tmp_path / "run")
    pq.write_table(table, folder / "devices.parquet")

    assert refused(path) == "devices.arrow"
    assert refused(folder) == "devices.parquet"


def test_an_index_that_names_a_batch_again_and_again_is_not_followed(tmp_path):
    folder = write_arrow(make_recording(), tmp_path / "run")
    path = folder / "device_memory.arrow"
    content = path.read_bytes()
    length = struct.unpack("<i", content[-10:-6])[0]
    path.write_bytes(content[: -10 - length] + b"\xff" * length + content[-10:])

    assert read_folder(folder).tables["device_memory"] == make_recording().tables["device_memory"]


@pytest.mark.parametrize("kind", [pa.null(), pa.struct([]), pa.list_(pa.null(), 0), pa.binary(0)])
def test_columns_whose_values_take_no_space_are_not_read(members, tmp_path, kind):
    rows = 5
    column = pa.array([None] * rows, kind)
    table = samples(rows).append_column("more", column)
    only = pa.table({"more": column})
    path = archived(
        without_rows(members | {"device_memory.arrow": stream(table)}), tmp_path / "a.gpuviz"
    )
    empty = archived(
        without_rows(members | {"device_memory.arrow": stream(only)}), tmp_path / "b.gpuviz"
    )

    assert load(path).tables["device_memory"] == samples(rows)
    with pytest.raises(FormatError, match="no columns of known types"):
        load(empty)


def test_buffers_that_overlap_are_counted_each_time(members, tmp_path):
    rows = 1_000_000
    schema = schemas()["device_memory"]
    unexpected = [f"more{number}" for number in range(20)]
    shared = pa.array([0] * rows, pa.int64())
    columns = {field.name: pa.array([0] * rows, field.type) for field in schema}
    table = pa.table(columns | dict.fromkeys(unexpected, shared))
    content = overlapping(stream(table), shared.nbytes)
    parts = without_rows(members | {"device_memory.arrow": content})
    path = archived(parts, tmp_path / "run.gpuviz")

    assert len(content) < SMALLEST
    assert refused(path) == "device_memory.arrow"


def overlapping(content, length):
    """Return a stream in which all buffers of this length are the first one."""
    reader = pa.ipc.MessageReader.open_stream(content)
    schema, batch = reader.read_next_message(), reader.read_next_message()
    metadata, body = bytearray(batch.metadata), batch.body.to_pybytes()
    first, last = None, 0
    for at in range(0, len(metadata) - 15, 8):
        offset, size = struct.unpack_from("<qq", metadata, at)
        if size == length and 0 <= offset < len(body):
            first = offset if first is None else first
            last = max(last, offset)
            struct.pack_into("<qq", metadata, at, first, size)
    assert last > first
    kept = body[: first + length]
    position = metadata.find(struct.pack("<q", len(body)))
    struct.pack_into("<q", metadata, position, len(kept))
    start = content.index(schema.metadata.to_pybytes()) + len(schema.metadata)
    return (
        content[:start] + b"\xff\xff\xff\xff" + struct.pack("<I", len(metadata)) + metadata + kept
    )


def test_an_archive_of_very_many_members_is_refused(tmp_path):
    path = tmp_path / "run.gpuviz"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(10_001):
            archive.writestr(f"{number}.txt", b"")

    with pytest.raises(FormatError, match="more than 10000 members"):
        load(path)


@pytest.mark.parametrize("place", ["zip", "part"])
def test_a_manifest_of_many_megabytes_is_refused(members, tmp_path, place):
    text = b'{"format": "gpuviz", "version": 1, "x": [' + b"[]," * (4 << 20) + b"1]}"
    path = archived(members | {"manifest.json": text}, tmp_path / "run.gpuviz")
    if place == "part":
        path = PartWriter(tmp_path / "other.gpuviz", Manifest()).directory
        (path / "manifest.json").write_bytes(text)

    with pytest.raises(FormatError, match=r"manifest\.json: damaged .*at most"):
        load(path)


def test_a_deflated_stream_in_a_damaged_archive_names_the_file(tmp_path):
    path = tmp_path / "run.gpuviz"
    path.write_bytes(b"PK\x03\x04" + zlib.compress(bytes(1 << 20)))

    with pytest.raises(FormatError, match="the end of the ZIP archive is missing"):
        load(path)
