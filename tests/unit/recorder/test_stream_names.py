"""`gpuviz.name_stream`: names of streams in the active recording and in later ones."""

import gc
from types import SimpleNamespace

import pytest

import gpuviz
from gpuviz import _core
from gpuviz.recorder.recorder import Recorder
from gpuviz.recorder.stream_names import StreamNames, names
from tests.unit.recorder.simulated_source import SimulatedSource


@pytest.fixture(autouse=True)
def forget_names():
    yield
    names._names.clear()


@pytest.fixture
def source():
    return SimulatedSource()


def new_recorder(source):
    return Recorder(source, None, stacks=False, max_events=1000)


def named(recording):
    """Return the names of streams by device and handle."""
    rows = recording.table("streams").to_pylist()
    return {(row["device"], row["handle"]): row["name"] for row in rows}


class Stream:
    """The attributes of a CuPy stream that `name_stream` uses."""

    def __init__(self, handle, device=0):
        self.ptr, self.device_id = handle, device


def test_a_stream_is_named_while_recording_also_where_it_was_used_before(source):
    copies, compute = Stream(0x70), Stream(0x80)
    with new_recorder(source) as recorder:
        source.allocators[0].allocate(1234, 0x70)
        before = named(recorder.recording)
        gpuviz.name_stream(copies, "copies")
        gpuviz.name_stream(compute, "compute")
        gpuviz.name_stream(compute, "compute <b>")
        gpuviz.name_stream(0x80, "other", device=1)

    assert before[0, 0x70] == "stream 0x70"
    found = named(recorder.recording)
    assert (found[0, 0x70], found[0, 0x80], found[1, 0x80]) == ("copies", "compute <b>", "other")
    assert recorder.recording.table("streams")["id"].to_pylist() == [1, 2, 3]


def test_a_name_is_remembered_for_later_recordings_while_the_stream_lives(source):
    lives, dies = Stream(0x70), Stream(0x80)
    gpuviz.name_stream(lives, "lives")
    gpuviz.name_stream(dies, "dies")
    with new_recorder(source) as first:
        pass
    del dies
    gc.collect()
    with new_recorder(source.again()) as second:
        source.allocators[0].allocate(1234, 0x80)

    assert named(first.recording) == {(0, 0x70): "lives", (0, 0x80): "dies"}
    assert named(second.recording) == {(0, 0x70): "lives", (0, 0x80): "stream 0x80"}
    assert lives.ptr == 0x70


def test_a_new_name_outlives_an_older_stream_of_the_same_handle(source):
    old, new = Stream(0x70), Stream(0x70)
    gpuviz.name_stream(old, "old")
    gpuviz.name_stream(new, "new")
    del old
    gc.collect()
    with new_recorder(source) as recorder:
        pass

    assert named(recorder.recording) == {(0, 0x70): "new"}
    assert new.ptr == 0x70


def test_a_name_is_forgotten_when_the_session_saw_the_stream_end():
    rows = [
        (1, 0, 0x70, "ended", 0, 0, 0, 500),
        (2, 0, 0x80, "ended", 0, 0, 0, 500),
        (3, 0, 0x80, "came after", 0, 0, 600, -1),
        (4, 1, 0x70, "elsewhere", 0, 0, 0, -1),
    ]
    kept = StreamNames()
    with new_recorder(SimulatedSource()) as recorder:
        kept.begin(recorder._live.session)
        for _, device, handle, name, *_ in rows:
            kept.remember((device, handle), name)
        kept._session = SimpleNamespace(streams=lambda: rows)
        kept.end()

    assert kept._names == {(0, 0x80): "came after", (1, 0x70): "elsewhere"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0x70, 5), "name must be a str, got 5"),
        (
            ("copies", "copies"),
            "stream must be a cupy.cuda.Stream or a handle as int, got str",
        ),
    ],
)
def test_what_is_no_stream_or_no_name_is_refused(arguments, message):
    with pytest.raises(TypeError) as caught:
        gpuviz.name_stream(*arguments, device=0)

    assert str(caught.value) == message


def test_a_default_stream_keeps_its_name():
    default = Stream(0)
    gpuviz.name_stream(default, "main")
    del default
    gc.collect()
    session = _core.Session(stack_depth=0)
    names.begin(session)
    names.abandon_after_fork()

    assert [row[1:4] for row in session.streams()] == [(0, 0, "main")]
