"""Random damage to files of every format."""

import base64
import io
import struct
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq

from gpuviz.analysis.derived_tables import derived_for_file
from gpuviz.conclusions.store import for_report
from gpuviz.data.manifest import Manifest
from gpuviz.errors import FormatError
from gpuviz.formats.arrow_directory import write_arrow, write_parquet
from gpuviz.formats.gpuviz import write_archive
from gpuviz.formats.part import PartWriter
from gpuviz.recording import load
from gpuviz.report.sections import sections_table
from tests.unit.formats.plain_snapshots import snapshot_bytes
from tests.unit.report.recordings import make_recording

NUMBERS = [0, 1, 127, 255, 1 << 15, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 40]
NUMBERS += [(1 << 63) - 1, 1 << 63, (1 << 64) - 1]
WORDS = [b"null", b"-1", b"1e999", b"[]", b"{}", b'"x"', b"18446744073709551616", b"true"]
LOG = b"Thread,Time,Action,Pointer,Size,Stream\n" + b"".join(
    b"7,10:00:0%d.000001,%s,0x%x,%d,0\n" % (n % 10, action, 512 * n, 100 + n)
    for n in range(1, 20)
    for action in (b"allocate", b"free")
)


def damaged(content, source):
    """Return bytes with a few places changed, removed, inserted, repeated or cut off."""
    content = bytearray(content)
    for _ in range(source.choice([1, 1, 1, 2, 6])):
        place = source.randint(0, max(len(content) - 1, 0))
        change = source.choice(["flip", "flip", "number", "number", "word", "cut", "copy", "end"])
        if change == "flip" and content:
            content[place] ^= 1 << source.randint(0, 7)
        elif change == "number":
            number = struct.pack("<Q", source.choice(NUMBERS))[: source.choice([2, 4, 8])]
            content[place & ~3 : (place & ~3) + len(number)] = number
        elif change == "word":
            word = source.choice(WORDS)
            content[place : place + source.choice([0, len(word)])] = word
        elif change == "cut":
            del content[place : place + source.randint(1, 64)]
        elif change == "copy":
            other = source.randint(0, max(len(content) - 1, 0))
            content[place:place] = content[other : other + source.randint(1, 400)]
        elif source.random() < 0.2:
            del content[place:]
    return bytes(content)


def members():
    """Return the members of a recording's file by name."""
    buffer = io.BytesIO()
    recording = make_recording()
    shown = sections_table(recording)
    write_archive(buffer, recording, derived_for_file(recording) | for_report(recording, shown))
    with zipfile.ZipFile(buffer) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archive_of(parts):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def with_compressed_batches(stream, source):
    """Return the same table as a stream of compressed batches."""
    table = pa.ipc.open_stream(stream).read_all()
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=source.choice([None, "zstd", "lz4"]))
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def damaged_archive(source):
    """Return an archive that is damaged, or one member of which is."""
    parts = members()
    if source.random() < 0.25:
        return damaged(archive_of(parts), source)
    name = source.choice(sorted(parts))
    content = parts[name]
    if name.endswith(".arrow"):
        content = with_compressed_batches(content, source)
    return archive_of(parts | {name: damaged(content, source)})


def gpuviz_file(folder, source):
    path = folder / "run.gpuviz"
    path.write_bytes(damaged_archive(source))
    return path


def html_file(folder, source):
    path = folder / "run.html"
    text = base64.b64encode(damaged_archive(source))
    page = b'<!doctype html><script id="gpuviz-recording">' + text + b"</script>"
    path.write_bytes(damaged(page, source) if source.random() < 0.1 else page)
    return path


def part_folder(folder, source):
    writer = PartWriter(folder / "run.gpuviz", Manifest(start_unix_ns=1))
    for name, table in make_recording().tables.items():
        for batch in table.to_batches():
            writer.append(name, batch)
    writer.flush()
    if source.random() < 0.7:
        (writer.directory / "last_flush.json").unlink()
    return damaged_folder(writer.directory, source)


def arrow_folder(folder, source):
    return damaged_folder(write_arrow(make_recording(), folder / "run"), source)


def parquet_folder(folder, source):
    written = write_parquet(make_recording(), folder / "run")
    for path in written.glob("*.parquet"):
        pq.write_table(pq.read_table(path), path, compression=source.choice(["none", "zstd"]))
    return damaged_folder(written, source)


def damaged_folder(folder, source):
    path = source.choice(sorted(folder.iterdir()))
    path.write_bytes(damaged(path.read_bytes(), source))
    return folder


def torch_file(folder, source):
    path = folder / "snapshot.pickle"
    path.write_bytes(damaged(snapshot_bytes(source.choice(["gpt", "oom"])), source))
    return path


def rmm_file(folder, source):
    path = folder / "log.csv"
    path.write_bytes(damaged(LOG, source))
    return path


KINDS = {
    "gpuviz": gpuviz_file,
    "html": html_file,
    "part": part_folder,
    "arrow": arrow_folder,
    "parquet": parquet_folder,
    "torch": torch_file,
    "rmm": rmm_file,
}


def outcome(path):
    """Return whether a file could be loaded, or an error that does not name it."""
    try:
        recording = load(path)
        for device in recording.devices[:3]:
            recording.memory_stats(device)
        recording.findings()
    except FormatError as error:
        return False if str(error).startswith(str(path)) else error
    return True
