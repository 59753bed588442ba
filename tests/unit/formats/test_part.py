"""Growing recordings: appended rows are never lost, and partial ones never load as complete."""

import errno
import os
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from gpuviz.analysis.derived_tables import derived_for_file
from gpuviz.data.manifest import Manifest
from gpuviz.errors import FormatError, RecordingExistsError, SpoolError
from gpuviz.formats.last_flush import LAST_FLUSH
from gpuviz.formats.part import PartWriter
from gpuviz.recording import Recording, load
from tests.examples import examples, share_of
from tests.unit.recording.from_events import one_line_stacks, rows_table

EXAMPLES = examples(
    20,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def events(first, count, stack=0):
    rows = [
        {"time": n, "action": "alloc", "address": 512 * n, "size": 512, "stack": stack}
        for n in range(first, first + count)
    ]
    return rows_table(rows).combine_chunks().to_batches()[0]


def append_stack(writer, number):
    for name, table in one_line_stacks([number]).items():
        writer.append(name, table.to_batches()[0])


def times(recording):
    return recording.tables["memory_events"]["time"].to_pylist()


def finished(writer):
    recording = Recording(writer.tables(), Manifest())
    writer.finish(recording, derived_for_file(recording))
    writer.discard()
    return load(writer.path)


def grown(folder, flushes=3, rows=4):
    """Return a writer after some flushes of some events each, with a new stack per flush."""
    writer = PartWriter(folder / "run.gpuviz", Manifest(start_unix_ns=time.time_ns()))
    for number in range(flushes):
        append_stack(writer, number + 1)
        writer.append("memory_events", events(number * rows, rows, number + 1))
        writer.flush()
    return writer


def test_a_growing_directory_loads_at_any_time_with_all_that_was_flushed(tmp_path):
    writer = grown(tmp_path)
    writer.append("memory_events", events(12, 1, 3))

    recording = load(writer.directory)

    assert times(recording) == list(range(12))
    assert recording.tables["stacks"]["id"].to_pylist() == [1, 2, 3]
    assert recording.is_complete is False
    assert "was killed, or is still running" in recording.notes[0]
    assert times(finished(writer)) == list(range(13))


@EXAMPLES
@given(data=st.data())
def test_every_byte_that_was_written_is_checked(tmp_path, data):
    folder = tmp_path / str(time.monotonic_ns())
    folder.mkdir()
    directory = grown(folder).directory
    names = sorted(path.name for path in directory.glob("*.arrow"))
    path = directory / data.draw(st.sampled_from(names))
    content = bytearray(path.read_bytes())
    bit = data.draw(st.integers(0, 8 * len(content) - 1))
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)

    with pytest.raises(FormatError, match="checksum") as caught:
        load(directory)

    assert (caught.value.path, caught.value.member) == (str(directory), path.name)


@EXAMPLES
@given(data=st.data())
def test_what_lies_behind_the_last_flush_is_a_bonus(tmp_path, data):
    folder = tmp_path / str(time.monotonic_ns())
    folder.mkdir()
    writer = grown(folder, flushes=2)
    flushed = (writer.directory / LAST_FLUSH).read_bytes()
    size = (writer.directory / "memory_events.arrow").stat().st_size
    append_stack(writer, 3)
    writer.append("memory_events", events(8, 4, 3))
    writer.flush()
    path = writer.directory / "memory_events.arrow"
    content = path.read_bytes()
    end = data.draw(st.integers(size, len(content)))
    path.write_bytes(content[:end])
    (writer.directory / LAST_FLUSH).write_bytes(flushed)

    recording = load(writer.directory)

    assert times(recording) == list(range(12 if end == len(content) else 8))
    torn = any("incomplete batch" in note for note in recording.notes)
    # Words of dictionaries precede the rows in messages of their own.
    assert torn == (end not in (size, *ends_of_messages(content, size)))


def ends_of_messages(content, start):
    """Return where each message of an Arrow stream ends, from a place on."""
    reader = pa.BufferReader(content[start:])
    ends = []
    while reader.tell() < reader.size():
        pa.ipc.read_message(reader)
        ends.append(start + reader.tell())
    return ends


def test_noise_behind_the_last_flush_raises_nothing_but_a_format_error(tmp_path):
    writer = grown(tmp_path, flushes=2)
    path = writer.directory / "memory_events.arrow"
    content = path.read_bytes()
    for seed in range(share_of(200)):
        noise = bytes((seed * 7 + n * n * 31) % 256 for n in range(seed % 90))
        path.write_bytes(content + noise)
        assert times(load(writer.directory)) == list(range(8))


@pytest.mark.parametrize("name", ["memory_events", "stacks", "frames"])
@pytest.mark.parametrize("change", ["cut", "remove"])
def test_a_table_with_less_than_was_written_is_refused(tmp_path, name, change):
    directory = grown(tmp_path).directory
    path = directory / f"{name}.arrow"
    if change == "cut":
        os.truncate(path, path.stat().st_size - 8)
    else:
        path.unlink()

    with pytest.raises(FormatError, match="were written") as caught:
        load(directory)

    assert caught.value.member == path.name


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"unix_ns": 1}', '{"unix_ns": 1, "tables": {"a": {"rows": 1}}}']
    + [f'{{"unix_ns": {bad}, "tables": {{}}}}' for bad in ('"1"', "1e400", "-1", "null", "true")],
)
def test_a_last_flush_that_makes_no_sense_is_refused(tmp_path, text):
    directory = grown(tmp_path).directory
    (directory / LAST_FLUSH).write_text(text)

    with pytest.raises(FormatError, match=r"last_flush\.json: damaged"):
        load(directory)


def test_a_directory_before_its_first_flush_is_an_empty_recording(tmp_path):
    writer = PartWriter(tmp_path / "run.gpuviz", Manifest())

    recording = load(writer.directory)

    assert times(recording) == []
    assert "The time of the last write is unknown" in recording.notes[0]


def test_a_directory_of_something_else_is_refused(tmp_path):
    with pytest.raises(FormatError, match=r"manifest\.json: missing"):
        load(tmp_path)


PROGRAM = """
import sys, pyarrow as pa
from pathlib import Path
from tests.unit.formats.test_part import PartWriter, Manifest, append_stack, events
writer = PartWriter(Path(sys.argv[1]) / "run.gpuviz", Manifest())
number = 0
while True:
    append_stack(writer, number + 1)
    writer.append("memory_events", events(number * 50, 50, number + 1))
    writer.flush()
    number += 1
    print(number, flush=True)
    if number < 20:
        sys.stdin.readline()
"""


def test_a_killed_writer_leaves_what_it_had_flushed(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, tmp_path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        for _ in range(20):
            flushed = int(process.stdout.readline())
            print(file=process.stdin, flush=True)  # it goes on while its files are read
            load_any_time(tmp_path, flushed)
        process.send_signal(signal.SIGKILL)
        flushed = [20, *map(int, process.stdout.read().split())][-1]

    assert load_any_time(tmp_path, flushed).manifest.complete is False


def load_any_time(folder, flushed):
    """Return the recording of a growing directory, which has at least this number of flushes."""
    recording = load(folder / "run.gpuviz.part")
    found = times(recording)
    assert found == list(range(len(found)))
    assert len(found) >= 50 * flushed
    stacks = recording.tables["memory_events"]["stack"].to_pylist()
    assert stacks == [n // 50 + 1 for n in found]
    return recording


def fails_for_want_of_room(writer):
    try:
        writer.flush()
    except SpoolError as error:
        return "No space left" in str(error)
    return False


@pytest.mark.parametrize("fails_after", range(0, 2600, 130))
def test_a_full_disk_loses_nothing(tmp_path, monkeypatch, fails_after):
    writer = PartWriter(tmp_path / "run.gpuviz", Manifest())
    room = [fails_after]
    write = os.write

    def write_while_there_is_room(descriptor, content):
        if room[0] == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = write(descriptor, content[: min(room[0], 100)])
        room[0] -= written
        return written

    monkeypatch.setattr(os, "write", write_while_there_is_room)
    is_full = []
    for number in range(4):
        append_stack(writer, number + 1)
        writer.append("memory_events", events(number * 4, 4, number + 1))
        is_full.append(fails_for_want_of_room(writer))
        assert writer.tables()["memory_events"]["time"].to_pylist() == list(range(number * 4 + 4))
        assert writer.tables()["stacks"]["id"].to_pylist() == list(range(1, number + 2))
    assert is_full == sorted(is_full)
    assert is_full[-1] == (room[0] == 0)
    left = times(load(writer.directory))
    assert left == list(range(len(left)))
    room[0] = 1 << 20
    writer.flush()
    assert times(load(writer.directory)) == list(range(16))

    whole = finished(writer)

    assert times(whole) == list(range(16))
    assert not writer.directory.exists()


def test_a_disk_that_is_full_at_the_end_keeps_the_directory(tmp_path, monkeypatch):
    writer = grown(tmp_path)
    writer.append("memory_events", events(12, 2))

    def full(*_args, **_options):
        raise OSError(errno.ENOSPC, "No space left on device")

    recording = Recording(writer.tables(), Manifest())
    with monkeypatch.context() as patch:
        patch.setattr("gpuviz.formats.gpuviz.write_stream", full)
        with pytest.raises(SpoolError, match="No space left"):
            writer.finish(recording, derived_for_file(recording))

    assert times(load(writer.directory)) == list(range(12))
    assert times(finished(writer)) == list(range(14))


def test_a_directory_that_cannot_be_written_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(*_args, **_options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", full)

    with pytest.raises(SpoolError, match="No space left"):
        PartWriter(tmp_path / "run.gpuviz", Manifest())

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["run.gpuviz", "run.gpuviz.part"])
def test_a_recording_does_not_begin_over_something(tmp_path, name):
    (tmp_path / name).mkdir()

    with pytest.raises(RecordingExistsError, match=name):
        PartWriter(tmp_path / "run.gpuviz", Manifest())


def test_batches_with_other_dictionaries_join(tmp_path):
    writer = PartWriter(tmp_path / "run.gpuviz", Manifest())
    for number in (1, 2):
        append_stack(writer, number)
        writer.flush()

    frames = writer.tables()["frames"]

    assert frames["source"].to_pylist() == ["1", "2"]
    assert load(writer.directory).tables["frames"]["source"].to_pylist() == ["1", "2"]
    assert isinstance(frames["source"].type, pa.DictionaryType)


def test_frames_that_nobody_stored_are_left_out_of_call_stacks(tmp_path):
    writer = PartWriter(tmp_path / "run.gpuviz", Manifest())
    append_stack(writer, 1)
    stack = one_line_stacks([1])["stacks"].to_pylist()[0]
    rows = [
        {**stack, "id": 2, "frames": [7, 1, 8], "user_frame": 7},
        {**stack, "id": 3, "frames": []},
        {**stack, "id": 4, "frames": [9]},
        {**stack, "id": 5, "frames": [1, 1]},
    ]
    schema = one_line_stacks([1])["stacks"].schema
    writer.append("stacks", pa.Table.from_pylist(rows, schema=schema).to_batches()[0])
    writer.append("memory_events", events(0, 2, 2))
    writer.flush()

    stacks = load(writer.directory).tables["stacks"]

    assert stacks["frames"].to_pylist() == [[1], [1], [], [], [1, 1]]
    assert stacks["user_frame"].to_pylist()[1] == 0
