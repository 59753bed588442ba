"""Hazards of one cause are one report, whose lines can be added to the program as they are."""

import pytest

from tests.unit.hazards.overlapping_kernels import BYTES, Gpu, reported


@pytest.fixture
def gpu():
    return Gpu()


def fork(gpu):
    main = gpu.Stream()
    workers = [gpu.Stream() for _ in range(5)]
    data = gpu.empty()
    gpu.gpu.synchronize()
    with main:
        gpu.launch("load", writes=[data])
    for worker in workers:
        with worker:
            gpu.launch("map", reads=[data])


def join(gpu):
    main = gpu.Stream()
    workers = [gpu.Stream() for _ in range(3)]
    parts = [gpu.empty() for _ in workers]
    gpu.gpu.synchronize()
    for worker, part in zip(workers, parts, strict=True):
        with worker:
            gpu.launch("sum", writes=[part])
    with main:
        gpu.launch("combine", reads=parts)


def turns(gpu):
    streams = [gpu.Stream() for _ in range(3)]
    total = gpu.empty()
    gpu.gpu.synchronize()
    for stream in streams:
        with stream:
            gpu.launch("add", writes=[total])


def missing_link(gpu):
    decode, resize, infer = (gpu.Stream() for _ in range(3))
    frame, small = gpu.empty(), gpu.empty()
    gpu.gpu.synchronize()
    with decode:
        gpu.launch("decode", writes=[frame])
    with resize:
        gpu.launch("resize", reads=[frame], writes=[small])
    resized = resize.record()
    with infer:
        infer.wait_event(resized)
        gpu.launch("infer", reads=[frame, small])


def temporaries(gpu):
    main, side = gpu.Stream(), gpu.Stream()
    gpu.gpu.synchronize()
    for _ in range(3):
        with main:
            batch = gpu.gpu.empty(BYTES)
            gpu.launch("augment", writes=[batch])
        side.wait_event(main.record())
        with side:
            gpu.launch("embed", reads=[batch])
        del batch


def offloading(gpu):
    main, side = gpu.Stream(), gpu.Stream()

    def offload():
        with main:
            batch = gpu.gpu.empty(BYTES)
            gpu.launch("augment", writes=[batch])
        side.wait_event(main.record())
        with side:
            gpu.launch("embed", reads=[batch])

    gpu.gpu.synchronize()
    offload()
    offload()


def handles_reused(gpu):
    cache = gpu.empty()
    gpu.gpu.synchronize()
    for _ in range(3):
        request = gpu.Stream()
        with request:
            gpu.launch("fill", writes=[cache])
        del request


@pytest.mark.parametrize(
    ("program", "count", "lines"),
    [
        (fork, 5, ["+ event = main.record()", "+ second_stream.wait_event(event)"]),
        (join, 3, []),
        (
            turns,
            3,
            ["+ stream.wait_event(event)  # of the iteration before", "+ event = stream.record()"],
        ),
        (missing_link, 2, ["+ event = decode.record()", "+ resize.wait_event(event)"]),
        (temporaries, 2, ["+ main.wait_event(side.record())"]),
        (offloading, 3, ["+ main.wait_event(side.record())"]),
        (
            handles_reused,
            3,
            ["+ stream.wait_event(event)  # of the iteration before", "+ event = stream.record()"],
        ),
    ],
)
def test_hazards_that_one_change_orders_are_one_report(gpu, program, count, lines):
    (group,), text = reported(gpu, program)

    assert len(group.hazards) == count
    assert [each for each in group.suggestion if each.startswith("+")] == lines
    assert text.count("fix: ") == 1


def test_the_streams_of_a_list_are_not_called_by_its_name(gpu):
    (group,), _ = reported(gpu, fork)

    assert "let stream workers #1, stream workers #2, " in group.fix
    assert "and 2 others wait for it before fork" in group.fix


def test_all_streams_of_a_line_that_records_events_are_to_record_one(gpu):
    (group,), _ = reported(gpu, join)

    assert group.fix.startswith("Record an event on each of stream workers #1, ")
    assert "let stream main wait for all of them before join" in group.fix


def test_a_stream_with_the_handle_of_a_destroyed_one_is_told_apart(gpu):
    _, text = reported(gpu, handles_reused)

    assert "on stream request #2, a later iteration of handles_reused" in text


def test_memory_that_a_return_frees_is_used_in_the_function_that_returned(gpu):
    (group,), text = reported(gpu, offloading)
    lines = group.suggestion

    assert " when offloading.<locals>.offload returns, make the stream" in group.fix
    assert lines[0].startswith("@@ offloading.<locals>.offload (")
    assert lines[1:] == (
        '  gpu.launch("embed", reads=[batch])',
        "+ main.wait_event(side.record())",
    )
    assert "synchronize" not in text
