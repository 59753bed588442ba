"""Events that are recorded or awaited where they do not order what they should."""

from pathlib import PurePath

import pytest

import gpuviz
from gpuviz.hazards.misplaced_events import event_name
from gpuviz.hazards.one_change import of_one_change
from gpuviz.present.text import hazards_text

BYTES = 1 << 20


class Pair:
    """Two streams of a simulated GPU, one that writes an array and one that reads it."""

    def __init__(self):
        self.gpu = gpuviz.SimulatedGPU(real_time=False)
        self.one, self.other, self.third = (self.gpu.Stream(non_blocking=True) for _ in range(3))
        self.arrays = [self.gpu.empty(BYTES) for _ in range(2)]
        self.gpu.synchronize()

    def write(self, *arrays):
        with self.one:
            self.gpu.launch("produce", writes=arrays or self.arrays[:1], duration=1e-3, share=0.1)

    def read(self, *arrays):
        with self.other:
            self.gpu.launch("consume", reads=arrays or self.arrays[:1], duration=1e-3, share=0.1)


def early(pair):
    event = pair.one.record()
    pair.write()
    pair.other.wait_event(event)
    pair.read()


def late(pair):
    pair.write()
    event = pair.one.record()
    pair.read()
    pair.other.wait_event(event)
    pair.read()


def on_own_stream(pair):
    pair.write()
    pair.other.wait_event(pair.other.record())
    pair.read()


def on_idle_stream(pair):
    pair.write()
    pair.other.wait_event(pair.third.record())
    pair.read()


def without_event(pair):
    pair.write()
    pair.read()


def with_another_event(pair):
    with pair.third:
        pair.gpu.launch("prepare", writes=pair.arrays[1:], duration=1e-3, share=0.1)
    pair.write()
    pair.other.wait_event(pair.third.record())
    pair.read(*pair.arrays)


def right(pair):
    pair.write()
    pair.other.wait_event(pair.one.record())
    pair.read()


def recorded(program):
    pair = Pair()
    with gpuviz.record(device=pair.gpu) as recorder:
        program(pair)
        pair.gpu.synchronize()
    return recorder.recording


@pytest.mark.parametrize(
    ("program", "text"),
    [
        (early, "is recorded too early in early"),
        (late, "only in late"),
        (on_own_stream, "whose work it does not need to wait for: record it on"),
        (on_idle_stream, "whose work it does not need to wait for: record it on"),
    ],
)
def test_the_fix_says_what_is_wrong_with_the_event(program, text):
    recording = recorded(program)
    (hazard,) = (each for each in recording.hazards() if each.kind == "RAW")

    assert text in hazard.fix
    assert hazard.fix.startswith("Event event, " if hazard.misplaced.name else "The event that ")
    assert hazard.misplaced.record.startswith(program.__name__)
    assert hazard.misplaced.wait.startswith(program.__name__)
    assert "second_stream.wait_event" not in hazard.fix
    # The names in the lines to move are those of another function.
    assert of_one_change(recording, [hazard])[0].suggestion == ()


@pytest.mark.parametrize("mistake", ["early", "late"])
def test_the_line_that_is_in_the_wrong_place_is_moved(mistake):
    gpu = gpuviz.SimulatedGPU(real_time=False)
    one, other = gpu.Stream(non_blocking=True), gpu.Stream(non_blocking=True)
    array = gpu.empty(BYTES)
    gpu.synchronize()
    with gpuviz.record(device=gpu) as recorder:
        if mistake == "early":
            ready = one.record()
        with one:
            gpu.launch("produce", writes=[array], duration=1e-3)
        if mistake == "late":
            ready = one.record()
        if mistake == "early":
            other.wait_event(ready)
        with other:
            gpu.launch("consume", reads=[array], duration=1e-3)
        if mistake == "late":
            other.wait_event(ready)
        gpu.synchronize()
    recording = recorder.recording
    lines = of_one_change(recording, recording.hazards())[0].suggestion

    record, wait = "ready = one.record()", "other.wait_event(ready)"
    produce = '  gpu.launch("produce", writes=[array], duration=1e-3)'
    consume = '  gpu.launch("consume", reads=[array], duration=1e-3)'
    expected = {
        "early": (f"- {record}", produce, f"+ {record}"),
        "late": (f"+ {wait}", consume, f"- {wait}"),
    }
    assert tuple(each for each in lines if not each.startswith("@@")) == expected[mistake]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("compute.wait_event(ready)", "ready"),
        ("self.compute.wait_event(self.events[slot])", "self.events[slot]"),
        ("ready.wait(compute)", "ready"),
        ("compute.wait_event(copies.record())", ""),
        ("compute.wait_stream(copies)", ""),
    ],
)
def test_an_event_is_called_as_the_line_that_waits_calls_it(line, name):
    assert event_name(line) == name


def test_a_stream_without_a_variable_is_called_by_the_line_that_made_it():
    gpu = gpuviz.SimulatedGPU(real_time=False)
    array = gpu.empty(BYTES)
    with gpuviz.record(device=gpu) as recorder:
        with gpu.Stream(non_blocking=True):
            gpu.launch("fill", writes=[array], duration=1e-3)
        with gpu.Stream(non_blocking=True):
            gpu.launch("use", reads=[array], duration=1e-3)
        gpu.synchronize()
    (hazard,) = recorder.recording.hazards()

    first, second = (
        int(each.where.removeprefix(f"stream made at {PurePath(__file__).name}:"))
        for each in (hazard.first, hazard.second)
    )
    assert second == first + 2


@pytest.mark.parametrize("program", [without_event, with_another_event])
def test_without_such_an_event_a_new_one_is_proposed(program):
    (hazard,) = recorded(program).hazards()

    assert hazard.misplaced is None
    assert hazard.fix.startswith("Record an event on ")


def test_an_event_in_its_place_is_no_hazard():
    assert recorded(right).hazards() == ()


def test_a_ping_pong_with_one_event_recorded_too_early_is_one_report():
    def ping_pong(pair):
        for _ in range(4):
            done = pair.one.record()
            for array in pair.arrays:
                pair.write(array)
            pair.other.wait_event(done)
            for array in pair.arrays:
                pair.read(array)
                with pair.other:
                    pair.gpu.launch("scale", writes=[array], duration=1e-3, share=0.1)
            pair.one.wait_event(pair.other.record())

    recording = recorded(ping_pong)
    text = hazards_text(recording, recording.hazards())
    findings = [each for each in recording.findings() if each.rule == "R40"]

    assert len(recording.hazards()) > 1
    assert text.count("fix: ") == 1
    assert f"it also orders {len(recording.hazards()) - 1} more conflict" in text
    assert len(findings) == 1


@pytest.mark.parametrize("is_ordered", [True, False])
def test_a_wait_for_the_last_of_ordered_operations_is_the_fix_for_all(is_ordered):
    gpu = gpuviz.SimulatedGPU(real_time=False)
    upload, compute, download = (gpu.Stream(non_blocking=True) for _ in range(3))
    array = gpu.empty(BYTES)
    gpu.synchronize()
    with gpuviz.record(device=gpu) as recorder:
        with upload:
            gpu.copy_to_device(array, pinned=True, blocking=False)
        if is_ordered:
            compute.wait_event(upload.record())
        with compute:
            gpu.launch("scale", reads=[array], duration=1e-3, share=0.1)
            gpu.launch("shift", writes=[array], duration=1e-3, share=0.1)
        with download:
            gpu.copy_to_host(array, pinned=True, blocking=False)
        gpu.synchronize()
    recording = recorder.recording
    found = [each for each in recording.hazards() if each.second.name == "memcpy"]
    groups = of_one_change(recording, found)

    assert len(found) == 2
    assert len(groups) == (1 if is_ordered else 2)
    shift = next(each.first for each in found if each.first.name == "shift")
    assert (f"after {shift.site}," in groups[0].fix) == is_ordered


def test_the_same_line_twice_is_a_later_iteration():
    def loop(pair):
        streams = (pair.one, pair.other)
        for stream in streams:
            with stream:
                pair.gpu.launch("step", writes=pair.arrays[:1], duration=1e-3, share=0.1)

    recording = recorded(loop)
    (hazard,) = recording.hazards()
    text = hazards_text(recording, recording.hazards())

    assert f"on {hazard.second.where}, a later iteration of {hazard.second.site}" in text
    assert f"before the next iteration of {hazard.second.site}" in hazard.fix
    assert text.count("@@ ") == 1
    assert "+ stream.wait_event(event)  # of the iteration before" in text


@pytest.mark.parametrize("in_loop", [True, False])
def test_streams_are_called_by_their_variables(in_loop):
    gpu = gpuviz.SimulatedGPU(real_time=False)
    array = gpu.empty(BYTES)
    with gpuviz.record(device=gpu) as recorder:
        if in_loop:
            streams = []
            for _ in range(2):
                stream = gpu.Stream(non_blocking=True)
                streams.append(stream)
        else:
            copies, compute = gpu.Stream(non_blocking=True), gpu.Stream(non_blocking=True)
            streams = [copies, compute]
        with streams[0]:
            gpu.launch("fill", writes=[array], duration=1e-3)
        with streams[1]:
            gpu.launch("use", reads=[array], duration=1e-3)
        gpu.synchronize()
    (hazard,) = recorder.recording.hazards()
    text = hazards_text(recorder.recording, [hazard])

    names = ("stream", "stream") if in_loop else ("copies", "compute")
    assert (hazard.first.variable, hazard.second.variable) == names
    assert hazard.first.where == ("stream #1" if in_loop else "stream copies")
    first, second = ("first_stream", "second_stream") if in_loop else names
    assert f"+ event = {first}.record()" in text
    assert f"+ {second}.wait_event(event)" in text
