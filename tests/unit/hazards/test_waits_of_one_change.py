"""The waits that a report adds to a program: in which line, and for which event."""

from functools import partial

import pytest

from tests.unit.hazards.overlapping_kernels import BYTES, Gpu, reported


@pytest.fixture
def gpu():
    return Gpu()


def test_a_wait_in_a_line_before_needs_no_event_of_an_iteration(gpu):
    def train(gpu):
        load, compute = gpu.Stream(), gpu.Stream()
        batch = gpu.empty()
        gpu.gpu.synchronize()
        for _ in range(2):
            with load:
                gpu.gpu.fill(batch)
            compute.wait_event(load.record())
            with compute:
                gpu.launch("train", reads=[batch])

    (group,), _ = reported(gpu, train)

    assert group.suggestion[1:] == (
        "+ load.wait_event(compute.record())",
        "  gpu.gpu.fill(batch)",
    )


def test_one_function_that_launches_everything_is_told_apart_by_its_callers(gpu):
    def run(stream, name, **arrays):
        with stream:
            gpu.launch(name, **arrays)

    def program(gpu):
        one, other = gpu.Stream(), gpu.Stream()
        first, second = gpu.empty(), gpu.empty()
        gpu.gpu.synchronize()
        run(one, "write", writes=[first])
        run(other, "read", reads=[first])
        gpu.gpu.synchronize()
        run(one, "fill", writes=[second])
        run(other, "sum", reads=[second])

    groups, text = reported(gpu, program)

    assert [each.hazards[0].first.name for each in groups] == ["write", "fill"]
    assert "+ event = one.record()" in text
    assert [each for each in groups[1].suggestion if not each.startswith("@@")] == [
        '  run(one, "fill", writes=[second])',
        "+ event = one.record()",
        "+ other.wait_event(event)",
        '  run(other, "sum", reads=[second])',
    ]


def test_an_event_that_later_iterations_record_again_is_named(gpu):
    def program(gpu):
        main = gpu.Stream()
        workers = [gpu.Stream() for _ in range(3)]
        parts = [gpu.empty() for _ in workers]
        gpu.gpu.synchronize()
        for worker, part in zip(workers, parts, strict=True):
            with worker:
                gpu.launch("sum", writes=[part])
            done = worker.record()
        main.wait_event(done)
        with main:
            gpu.launch("combine", reads=parts)

    (group,), _ = reported(gpu, program)

    assert len(group.hazards) == 2
    assert group.fix.startswith("Event done, which stream main waits for")
    assert "and then again on stream workers #3" in group.fix
    assert group.fix.endswith("use another event each time, and wait for each.")


def test_an_event_of_another_name_is_not_the_same_one(gpu):
    def program(gpu):
        one, other, main = (gpu.Stream() for _ in range(3))
        array = gpu.empty()
        gpu.gpu.synchronize()
        with one:
            gpu.launch("sum", writes=[array])
        finished = one.record()
        with other:
            gpu.launch("other")
        done = other.record()
        main.wait_event(done)
        with main:
            gpu.launch("combine", reads=[array])
        finished.synchronize()

    (group,), _ = reported(gpu, program)

    assert group.hazards[0].misplaced is None
    assert "+ event = one.record()" in group.suggestion


def test_a_read_that_waits_for_a_write_orders_the_reuse_of_the_memory_too(gpu):
    def program(gpu):
        main, side = gpu.Stream(), gpu.Stream()
        gpu.gpu.synchronize()
        with main:
            array = gpu.gpu.empty(BYTES)
        with side:
            gpu.launch("produce", writes=[array])
        with main:
            gpu.launch("consume", reads=[array])
            del array
            other = gpu.empty()
            gpu.launch("fill", writes=[other])

    (group,), _ = reported(gpu, program)

    assert {each.kind for each in group.hazards} == {"RAW", "reuse", "use_after_free"}
    assert group.fix.startswith("Record an event on ")
    assert [each for each in group.suggestion if each.startswith("+")] == [
        "+ event = side.record()",
        "+ main.wait_event(event)",
    ]
    assert group.suggestion[-1] == '  gpu.launch("consume", reads=[array])'


def test_streams_that_take_turns_with_one_array_wait_for_the_iteration_before(gpu):
    def program(gpu):
        streams = [gpu.Stream() for _ in range(2)]
        scratch = gpu.empty()
        gpu.gpu.synchronize()
        for step in range(4):
            with streams[step % 2]:
                gpu.launch("expand", writes=[scratch])
                gpu.launch("reduce", reads=[scratch])

    (group,), text = reported(gpu, program)

    assert len(group.hazards) == 6
    assert group.fix.startswith("Let each iteration wait for the one before, which may be on ")
    assert [each for each in group.suggestion if not each.startswith("@@")] == [
        "+ stream.wait_event(event)  # of the iteration before",
        '  gpu.launch("expand", writes=[scratch])',
        '  gpu.launch("reduce", reads=[scratch])',
        "+ event = stream.record()",
    ]
    assert text.count("on streams #1") == len(group.hazards)


def test_a_wait_in_another_function_needs_no_name_of_the_event(gpu):
    def write(stream, array):
        with stream:
            gpu.launch("write", writes=[array])

    def program(gpu):
        one, other = gpu.Stream(), gpu.Stream()
        array = gpu.empty()
        gpu.gpu.synchronize()
        write(one, array)
        with other:
            gpu.launch("read", reads=[array])

    (group,), _ = reported(gpu, program)

    assert group.suggestion[1:] == (
        "+ other.wait_event(one.record())",
        '  gpu.launch("read", reads=[array])',
    )


def test_a_wait_after_a_call_that_frees_also_covers_what_is_launched_later(gpu):
    def program(gpu):
        main, side = gpu.Stream(), gpu.Stream()

        def offload():
            with main:
                batch = gpu.gpu.empty(BYTES)
            with side:
                side.wait_event(main.record())
                gpu.launch("embed", reads=[batch])

        shared = gpu.empty()
        gpu.gpu.synchronize()
        offload()
        with side:
            gpu.launch("produce", writes=[shared])
        with main:
            other = gpu.empty()
            gpu.launch("fill", writes=[other])
            gpu.launch("consume", reads=[shared])

    groups, _ = reported(gpu, program)

    assert {each.kind for group in groups for each in group.hazards} >= {"RAW", "reuse"}


def test_arrays_that_a_function_frees_wait_for_its_last_launch(gpu):
    def program(gpu):
        main, side = gpu.Stream(), gpu.Stream()

        def offload():
            with main:
                images = gpu.gpu.empty(BYTES)
                labels = gpu.gpu.empty(BYTES)
            side.wait_event(main.record())
            with side:
                gpu.launch("embed", reads=[images])
                gpu.launch("score", reads=[labels])

        gpu.gpu.synchronize()
        offload()
        offload()

    groups, _ = reported(gpu, program)

    suggestions = [each.suggestion for each in groups]
    assert suggestions
    for lines in suggestions:
        added = next(place for place, line in enumerate(lines) if line.startswith("+"))
        assert "score" in lines[added - 1]


def test_memory_that_a_recursion_frees_is_freed_when_its_function_returns(gpu):
    def program(gpu):
        main, side = gpu.Stream(), gpu.Stream()
        enter, leave = side.__enter__, partial(side.__exit__, None, None, None)
        launch = partial(gpu.launch, "embed")

        def descend(depth):
            with main:
                batch = gpu.gpu.empty(BYTES)
            side.wait_event(main.record())
            return descend(depth - 1) if depth else [enter(), launch(reads=[batch]), leave()]

        gpu.gpu.synchronize()
        descend(1)
        with main:
            other = gpu.empty()
            gpu.launch("fill", writes=[other])

    groups, _ = reported(gpu, program)

    fixes = [each.fix for group in groups for each in group.hazards if " returns" in each.fix]
    assert fixes
    assert all("descend returns" in each for each in fixes)
