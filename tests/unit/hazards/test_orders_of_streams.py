"""What orders two streams, so that their operations on the same memory are no hazards."""

import pytest

import gpuviz
from tests.unit.hazards.two_streams import LONG_S, RAW, SIZE, Program, write_then_read


def wait_before_record(program):
    event = program.gpu.Event()
    program.t.wait_event(event)
    program.s.record(event)


def wait_again_after_record(program):
    event = program.gpu.Event()
    program.t.wait_event(event)
    program.s.record(event)
    program.t.wait_event(event)


def wait_for_an_event_with_the_handle_of_another(program):
    event = program.s.record()
    handle = event.ptr
    del event
    event = program.gpu.Event()
    assert event.ptr == handle
    program.t.wait_event(event)


def test_a_read_on_another_stream_without_a_wait_is_a_hazard(program):
    write_then_read(program, lambda _: None)

    assert program.found() == [RAW]


@pytest.mark.parametrize(
    "between",
    [
        lambda program: program.t.wait_event(program.s.record()),
        lambda program: program.s.synchronize(),
        lambda program: program.s.record().synchronize(),
        lambda program: program.gpu.synchronize(),
        wait_again_after_record,
    ],
)
def test_what_orders_the_streams_makes_it_none(program, between):
    write_then_read(program, between)

    assert program.found() == []


@pytest.mark.parametrize(
    "between",
    [
        lambda program: program.t.synchronize(),
        lambda program: program.t.wait_event(program.t.record()),
        lambda program: program.s.wait_event(program.t.record()),
        lambda program: program.s.done,
        lambda program: program.s.record().done,
        lambda program: program.t.wait_event(program.gpu.Event()),
        lambda program: program.gpu.null_stream.wait_event(program.gpu.Event()),
        lambda program: program.gpu.Event().synchronize(),
        lambda program: program.gpu.Event().done,
        wait_before_record,
        wait_for_an_event_with_the_handle_of_another,
        lambda program: program.gpu.empty(3 * SIZE),
        lambda program: program.launch(program.gpu.null_stream),
    ],
)
def test_what_does_not_order_them_leaves_it(program, between):
    write_then_read(program, between)

    assert program.found() == [RAW]


@pytest.mark.parametrize("object_of", [lambda s: s, lambda s: s.record()])
def test_a_query_that_returns_success_orders_them(program, object_of):
    def poll(program):
        queried = object_of(program.s)
        while not queried.done:
            program.gpu.work_on_host(1e-4)

    write_then_read(program, poll)

    assert program.found() == []


def test_an_event_covers_only_what_was_launched_before_its_record(program):
    a = program.empty(program.s)
    event = program.s.record()
    program.launch(program.s, "write", writes=[a])
    program.t.wait_event(event)
    program.launch(program.t, "read", reads=[a])

    assert program.found() == [RAW]


def test_the_default_stream_orders_blocking_streams():
    program = Program(non_blocking=False)

    write_then_read(program, lambda program: program.launch(program.gpu.null_stream))

    assert program.found() == []


@pytest.mark.parametrize("is_recorded", [True, False])
@pytest.mark.parametrize("wait", [lambda t, e: t.wait_event(e), lambda _, e: e.synchronize()])
def test_a_wait_for_an_event_from_before_the_recording_orders_everything(is_recorded, wait):
    gpu = gpuviz.SimulatedGPU(real_time=False)
    s, t = gpu.Stream(non_blocking=True), gpu.Stream(non_blocking=True)
    event = s.record() if is_recorded else gpu.Event()
    with gpuviz.record(device=gpu) as recorder:
        with s:
            a = gpu.empty(SIZE)
            gpu.launch("write", writes=[a], duration=LONG_S)
        wait(t, event)
        with t:
            gpu.launch("read", reads=[a], duration=LONG_S)
        gpu.synchronize()

    assert recorder.recording.hazards() == ()


def test_streams_may_come_and_go(program):
    a = program.empty(program.s)
    for _ in range(20):
        stream = program.gpu.Stream(non_blocking=True)
        program.launch(stream, "write", writes=[a])
        stream.synchronize()
        del stream
    program.launch(program.t, "read", reads=[a])

    assert program.found() == []


def test_a_stream_with_the_handle_of_a_destroyed_one_has_arrays_of_its_own(program):
    for _ in range(20):
        stream = program.gpu.Stream(non_blocking=True)
        a = program.empty(stream)
        program.launch(stream, "write", writes=[a])
        program.launch(stream, "read", reads=[a])
        del a
        stream.synchronize()
        del stream

    assert program.found() == []


def test_a_stream_that_reuses_memory_of_the_destroyed_one_with_its_handle_is_not_ordered(program):
    first = program.gpu.Stream(non_blocking=True)
    a = program.empty(first)
    program.launch(first, "read", reads=[a])
    handle, address = first.ptr, a.ptr
    del first
    second = program.gpu.Stream(non_blocking=True)
    del a
    b = program.empty(second)
    program.launch(second, "write", writes=[b])

    found = program.found()

    assert (second.ptr, b.ptr) == (handle, address)
    assert ("reuse", "read", "write") in [(kind, *names) for kind, _, *names in found]
