"""What streams are called: by the program, the variables that hold them, or their lines."""

from functools import partial
from pathlib import PurePath

import pytest

import gpuviz
from gpuviz.analysis.stream_names import stream_names
from gpuviz.recorder.live_classification import LiveClassification

OF_TORCH = "/usr/lib/python3/site-packages/torch/cuda/streams.py"


class Loader:
    """An object with a stream."""

    def __init__(self, gpu):
        self.copies = gpu.Stream()


@pytest.fixture
def gpu():
    return gpuviz.SimulatedGPU(real_time=False)


def names(gpu, program):
    """Return the names of the streams that a program makes, and its recording."""
    with gpuviz.record(device=gpu) as recorder:
        kept = program(gpu)
        gpu.fill(gpu.empty(1234))
    del kept
    recording = recorder.recording
    rows = recording.tables["streams"].to_pylist()
    of_program = {row["id"] for row in rows if row["kind"] == "blocking"}
    known = stream_names(recording)
    return [known[number] for number in sorted(of_program)], recording


def new_stream(gpu):
    return gpu.Stream()


def two_streams(gpu):
    return new_stream(gpu), new_stream(gpu)


def held(gpu):
    loader = Loader(gpu)
    first, second = gpu.Stream(), gpu.Stream()
    workers = [gpu.Stream() for _ in range(2)]
    third, fourth = two_streams(gpu)
    return loader, first, second, workers, third, fourth


HELD = [
    *("copies", "first", "second", "workers #1", "workers #2"),
    *("third", "fourth"),
]


def test_streams_are_called_by_what_holds_them(gpu):
    found, recording = names(gpu, held)

    assert found == HELD
    begin, end = recording.time_range
    part = recording.window((begin + end) // 2, end)
    assert set(HELD) <= set(stream_names(part).values())


def test_streams_of_one_name_are_numbered(gpu):
    def program(gpu):
        kept = []
        for _ in range(2):
            stream = gpu.Stream()
            kept.append(stream)
        named = gpu.Stream()
        gpuviz.name_stream(named, "copies", device=0)
        return [*kept, Loader(gpu), named]

    found, _ = names(gpu, program)

    assert found == ["stream #1", "stream #2", "copies #1", "copies #2"]


def test_a_stream_is_not_called_after_an_object_that_it_is_an_argument_of(gpu):
    def consumed(*, stream):
        return [stream]

    def run():
        return consumed(stream=gpu.Stream())

    def program(gpu):
        session = consumed(stream=gpu.Stream())
        result = run()
        return session, result

    found, _ = names(gpu, program)

    assert not any(each.startswith(("session", "result")) for each in found)


def test_a_stream_that_a_library_makes_is_not_called_by_its_result(gpu):
    def program(gpu):
        load = partial(gpu.Stream)
        result = load()
        lane = str(gpu.Stream())
        other = str(new_stream(gpu))
        return result, lane, other

    found, _ = names(gpu, program)

    first = program.__code__.co_firstlineno + 2
    of_function = new_stream.__code__.co_firstlineno + 1
    assert found == [
        f"stream made at {PurePath(__file__).name}:{line}"
        for line in (first, first + 1, of_function)
    ]


def test_a_stream_of_torch_is_not_called_by_who_asked_for_the_first(gpu):
    # torch makes all streams of its pool at once.
    namespace = {}
    source = "class Stream:\n def __init__(self, gpu):\n  self.all = [gpu.Stream() for _ in 'ab']"
    exec(compile(source, OF_TORCH, "exec"), namespace)  # noqa: S102 - the file's name matters

    def program(gpu):
        side = namespace["Stream"](gpu)
        return [side]

    found, recording = names(gpu, program)

    rows = recording.tables["streams"].to_pylist()
    assert found == [f"stream {row['handle']:#x}" for row in rows if row["kind"] == "blocking"]


def test_a_redacted_recording_has_no_names_of_variables(gpu, tmp_path):
    _, recording = names(gpu, held)

    path = recording.report(tmp_path / "report.html", redact=True)

    redacted = stream_names(gpuviz.load(path)).values()
    assert {name.partition(" ")[0] for name in redacted} == {"stream"}


def test_a_live_view_keeps_the_names_of_streams_whose_calls_are_long_ago(gpu):
    _, recording = names(gpu, held)
    live = LiveClassification()
    whole = live.restart({name: table.slice(0, 0) for name, table in recording.tables.items()})
    assert whole["names"].num_rows == 0
    for name, table in recording.tables.items():
        for batch in table.to_batches():
            live.take(name, batch)
    first = live.update()["names"]
    calls = recording.tables["api_calls"].slice(0, 1).to_batches()[0]
    for _ in range(4000):
        live.take("api_calls", calls)
    live.update()
    live.take("api_calls", calls)

    later = live.update()["names"]

    assert set(HELD) <= set(first["name"].to_pylist())
    assert later.equals(first)
