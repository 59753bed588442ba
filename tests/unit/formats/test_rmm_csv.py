"""Recordings read from RMM's CSV logs."""

import pytest

from gpuviz.errors import FormatError
from gpuviz.recording import load

HEADER = "Thread,Time,Action,Pointer,Size,Stream\n"
LINES = (
    "2342727,15:47:02.841961,allocate,0x10012400000,1048576,0\n"
    "2342727,15:47:02.841977,free,0x10012400000,1048576,0\n"
)


def logged(folder, lines, name="log.csv", header=HEADER):
    path = folder / name
    path.write_text(header + lines)
    return load(path)


def rows(recording, *columns):
    return [tuple(row[name] for name in columns) for row in rows_of(recording)]


def rows_of(recording):
    return recording.table("memory_events").to_pylist()


def test_allocations_and_frees_are_events(tmp_path):
    recording = logged(tmp_path, LINES)

    assert rows(recording, "time", "action", "address", "size", "thread") == [
        (0, "alloc", 0x10012400000, 1048576, 2342727),
        (16_000, "free_requested", 0x10012400000, 1048576, 2342727),
        (16_000, "free_completed", 0x10012400000, 1048576, 2342727),
    ]
    assert recording.memory_stats()["allocated_bytes.all.peak"] == 1048576
    assert recording.manifest.allocator == "observe"
    assert recording.manifest.start_unix_ns == 0


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("15:47:02.841961", "15:47:02.841977"),
        ("15:47:02:841961", "15:47:02:841977"),
        ("23:59:59.999999", "00:00:00.000015"),
        ("1634567890.123456", "1634567890.123472"),
        ("2024-02-29 01:02:03.5", "2024-02-29 01:02:03.500016"),
    ],
)
def test_times_are_read_as_the_versions_of_rmm_write_them(first, second, tmp_path):
    lines = f"1,{first},allocate,0x500,8,0\n1,{second},deallocate,0x500,8,0\n"

    assert rows(logged(tmp_path, lines), "time") == [(0,), (16_000,), (16_000,)]


def test_seconds_since_1970_are_the_start(tmp_path):
    recording = logged(tmp_path, "1,1634567890.5,allocate,0x500,8,0\n")

    assert recording.manifest.start_unix_ns == 1_634_567_890_500_000_000
    assert recording.manifest.created == "2021-10-18T14:38:10.500000+00:00"


def test_a_failure_is_out_of_memory(tmp_path):
    recording = logged(tmp_path, "1,10:00:00.0,allocate failure,(nil),77,0x40\n")

    assert rows(recording, "action", "address", "size") == [("oom", 0, 77)]
    assert recording.table("streams")["handle"].to_pylist() == [0x40]


def test_a_block_that_is_only_freed_existed_before(tmp_path):
    recording = logged(tmp_path, "1,10:00:00.0,free,0x500,77,3\n")

    assert rows(recording, "action")[0] == ("alloc",)
    assert recording.manifest.initial_events == 1
    assert recording.notes[1] == "1 blocks were allocated before the start of RMM's log."
    assert recording.memory_stats()["allocated_bytes.all.current"] == 0


def test_the_device_is_in_the_name_of_the_log(tmp_path):
    assert logged(tmp_path, LINES, "log.dev3.csv").devices == (3,)


def test_columns_are_found_by_name(tmp_path):
    header = '"Size","Action","Extra","Pointer","Time","Thread","Stream"\n'
    lines = "8,allocate,x,0x500,10:00:00.0,140573312345856,0\n"

    recording = logged(tmp_path, lines, header=header)

    assert rows(recording, "address", "size", "thread") == [(0x500, 8, 1)]
    assert recording.table("threads").to_pylist() == [{"id": 1, "name": "thread 140573312345856"}]


def test_lines_about_no_bytes_are_left_out_with_a_note(tmp_path):
    recording = logged(tmp_path, "1,10:00:00.0,allocate,(nil),0,0\n" + LINES)

    assert len(rows_of(recording)) == 3
    assert recording.notes[-1] == "1 lines of RMM's log have 0 bytes and were left out."


def test_a_log_without_threads_has_events_of_none(tmp_path):
    lines = "10:00:00:000001,allocate,0x500,8,0\n10:00:01:000001,free,0x500,8,0\n"

    recording = logged(tmp_path, lines, header="Time,Action,Pointer,Size,Stream\n")

    assert rows(recording, "time", "action", "address", "size", "thread") == [
        (0, "alloc", 0x500, 8, 0),
        (10**9, "free_requested", 0x500, 8, 0),
        (10**9, "free_completed", 0x500, 8, 0),
    ]
    assert recording.table("threads").num_rows == 0


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        (
            "Thread,Action,Pointer,Size,Stream\n",
            "line 1: no column time in thread, action, pointer, size, stream; expected thread, ti",
        ),
        ("Thread,Time,Action,Pointer,Size\n", "line 1: no column stream in thread, time, action"),
        (
            "Event Type,Device ID,Address,Stream,Size (bytes),Free Memory,Total Memory,Start,End\n",
            "line 1: the log of an RMM without memory resources (rmmWriteLog), which is not read",
        ),
        ("Name,Size\n", "not a gpuviz recording"),
    ],
)
def test_a_log_of_another_layout_is_refused_with_what_it_lacks(header, problem, tmp_path):
    with pytest.raises(FormatError) as caught:
        logged(tmp_path, "1,2,3,4,5\n", header=header)

    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("1,10:00:00.0,grow,0x500,8,0", "line 2: action 'grow'; expected allocate, free"),
        ("1,noon,allocate,0x500,8,0", "line 2: time 'noon'; expected HH:MM:SS"),
        ("1,2024-13-01 10:00:00,allocate,0x500,8,0", "line 2: date '2024-13-01'; expected YYYY"),
        ("1,10:00:00.0,allocate,here,8,0", "line 2: pointer 'here'; expected a number of base 16"),
        ("1,10:00:00.0,allocate,0x500,-8,0", "line 2: size '-8'; expected at least 0"),
        ("1,10:00:00.0,allocate,0x500,8", "line 2: too few values; expected thread, time"),
        ("1,10:00:00.0,allocate,0x500,8,0" + "0" * 5000, "longer than 4096 bytes"),
    ],
)
def test_a_line_that_is_none_of_the_log_is_named(line, problem, tmp_path):
    with pytest.raises(FormatError) as caught:
        logged(tmp_path, line + "\n")

    assert problem in str(caught.value)
