"""R15 and R16: memory that is cached for other streams, and failed requests because of it."""

import pytest

import gpuviz
from gpuviz.advice.reserved.reserved_memory import ReservedMemory
from tests.unit.advice.programs import MIB
from tests.unit.advice.reserving_programs import one, peak, recorded, rules


def two_phases(gpu):
    first, second = gpu.Stream(non_blocking=True), gpu.Stream(non_blocking=True)
    gpuviz.name_stream(first, "first")
    with first:
        blocks = [gpu.empty(32 * MIB) for _ in range(4)]
    del blocks
    with second:
        blocks = [gpu.empty(32 * MIB) for _ in range(4)]
    del blocks


def one_stream(gpu):
    first = gpu.Stream(non_blocking=True)
    for _ in range(2):
        with first:
            blocks = [gpu.empty(32 * MIB) for _ in range(4)]
        del blocks


def both_at_once(gpu):
    first, second = gpu.Stream(non_blocking=True), gpu.Stream(non_blocking=True)
    with first:
        blocks = [gpu.empty(32 * MIB) for _ in range(4)]
    with second:
        blocks += [gpu.empty(32 * MIB) for _ in range(4)]


def test_memory_cached_for_another_stream_is_found_and_one_stream_saves_what_was_predicted():
    before, after = recorded(two_phases), recorded(one_stream)
    finding = one(before, "R15")

    assert finding.saved_reserved_bytes == peak(before) - peak(after) == 128 * MIB
    assert finding.title == (
        "128 MiB is cached for `first` while `blocks = [gpu.empty(32 * MIB) for _ in range(4)]` "
        "needs new memory: on one stream, the allocator would reserve 128 MiB instead of 256 MiB."
    )
    assert finding.reason == (
        "224 MiB were reserved when 32.0 MiB were requested on another stream. The allocator "
        "reuses memory only on the stream that allocated it. The recorded allocations and frees "
        "were repeated on one stream."
    )
    assert finding.change == (
        "Allocate the arrays on one stream, and order the streams that use them with events "
        "(`wait_event`)."
    )
    assert finding.certainty == "possible"
    assert rules(before) == ["R15"]
    assert rules(after) == []


def test_streams_that_need_their_memory_at_once_are_no_finding():
    assert rules(recorded(both_at_once)) == []


def lanes(gpu, *, overlap):
    streams = [gpu.Stream(non_blocking=True) for _ in range(2)]
    for number in range(6):
        with streams[number % 2] as stream:
            array = gpu.empty(100 * MIB)
            gpu.launch("work", duration=5e-3, share=0.4, writes=[array])
            if not overlap:
                stream.synchronize()
        del array


def test_streams_that_work_at_the_same_time_need_memory_of_their_own():
    after_each_other = recorded(lambda gpu: lanes(gpu, overlap=False))
    at_once = recorded(lambda gpu: lanes(gpu, overlap=True))

    assert at_once.overlap().devices[0].concurrency > 1.2
    assert rules(after_each_other) == ["R15"]
    assert one(after_each_other, "R15").saved_reserved_bytes == 100 * MIB
    assert rules(at_once) == []


def on_many_streams(gpu, *, streams, pieces=16, waits=True):
    used = [gpu.Stream(non_blocking=True) for _ in range(streams)]
    for number in range(pieces):
        with used[number % streams] as stream:
            array = gpu.empty(32 * MIB)
            gpu.launch("work", duration=1e-3, share=0.05, writes=[array])
            if waits:
                stream.synchronize()
        del array


@pytest.mark.parametrize(
    ("memory", "streams", "expected"),
    [(2048, 16, ["R15"]), (8192, 16, ["R15"]), (2048, 2, []), (2048, 6, []), (16384, 16, [])],
)
def test_a_mostly_empty_device_needs_much_memory_for_nothing(memory, streams, expected):
    recording = recorded(lambda gpu: on_many_streams(gpu, streams=streams), memory=memory)

    assert rules(recording) == expected


def test_streams_for_one_piece_of_work_each_are_found_and_four_in_turn_save_what_was_predicted():
    before = recorded(lambda gpu: on_many_streams(gpu, streams=16), memory=2048)
    after = recorded(lambda gpu: on_many_streams(gpu, streams=4), memory=2048)
    finding = one(before, "R15")

    assert finding.saved_reserved_bytes == peak(before) - peak(after) == 384 * MIB
    assert finding.title == (
        "480 MiB is cached for 15 other streams while `array = gpu.empty(32 * MIB)` needs new "
        "memory: with 4 streams in turn, the allocator would reserve 128 MiB instead of 512 MiB."
    )
    assert finding.change.startswith(
        "Make 4 streams once and use them in turn, such as `streams[i % 4]`, instead of"
    )
    assert [each.amount for each in finding.lines] == ["512 MiB", "32.0 MiB"]
    assert rules(after) == []


@pytest.mark.parametrize(
    "program",
    [
        # The pieces of work run at the same time.
        lambda gpu: on_many_streams(gpu, streams=16, waits=False),
        # A fixed set of streams is used again.
        lambda gpu: on_many_streams(gpu, streams=16, pieces=32),
        lambda gpu: on_many_streams(gpu, streams=7, pieces=7),
    ],
)
def test_streams_that_are_not_abandoned_are_not_replaced(program):
    recording = recorded(program, memory=8192)

    assert len(ReservedMemory(recording, 0).abandoned_streams) == 0
    assert rules(recording) == []


@pytest.mark.parametrize("place", [0, 3])
def test_a_long_piece_of_work_would_let_others_wait_on_streams_in_turn(place):
    def program(gpu):
        streams = [gpu.Stream(non_blocking=True) for _ in range(16)]
        for number, stream in enumerate(streams):
            with stream:
                array = gpu.empty(32 * MIB)
                duration = 60e-3 if number == place else 1e-3
                gpu.launch("work", duration=duration, share=0.05, writes=[array])
            if number == place:
                background = array
            else:
                stream.synchronize()
            del array
        gpu.synchronize()
        del background

    recording = recorded(program, memory=2048)

    assert len(ReservedMemory(recording, 0).abandoned_streams) == 0
    assert "in turn" not in one(recording, "R15").change


def test_memory_from_before_the_recording_has_no_line():
    gpu = gpuviz.SimulatedGPU(memory=2048 * MIB, real_time=False)
    on_streams = [gpu.Stream(non_blocking=True) for _ in range(20)]

    def works_on(streams, size):
        for stream in streams:
            with stream:
                array = gpu.empty(size * MIB)
                gpu.launch("work", duration=1e-3, share=0.05, writes=[array])
                stream.synchronize()
            del array

    works_on(on_streams[:16], 32)
    with gpuviz.record(device=gpu) as recorder:
        works_on(on_streams[:16], 32)
        works_on(on_streams[16:], 8)
    finding = one(recorder.recording, "R15")

    assert [(each.source, each.amount) for each in finding.lines] == [
        ("array = gpu.empty(size * MIB)", "80.0 MiB"),
        ("array = gpu.empty(size * MIB)", "8.00 MiB"),
    ]


def test_without_recorded_work_a_stream_that_needs_its_memory_again_is_no_finding():
    def program(gpu):
        first, second = gpu.Stream(non_blocking=True), gpu.Stream(non_blocking=True)
        for stream in (first, second, first):
            with stream:
                blocks = [gpu.empty(32 * MIB) for _ in range(4)]
            del blocks

    assert rules(recorded(program)) == []


def test_a_request_that_fails_because_of_another_streams_cache_is_found():
    def program(gpu):
        first, second = gpu.Stream(non_blocking=True), gpu.Stream(non_blocking=True)
        with first:
            segment = gpu.empty(240 * MIB)
            del segment
            kept, blocks = gpu.empty(20 * MIB), [gpu.empty(100 * MIB) for _ in range(2)]
            del blocks
        with second:
            return [kept, gpu.empty(100 * MIB), gpu.empty(100 * MIB)]

    finding = one(recorded(program), "R15")

    assert finding.title.endswith(
        "needs new memory: on one stream, the request that failed would have succeeded."
    )
    assert finding.saved_reserved_bytes == 100 * MIB


def test_several_streams_are_named():
    def program(gpu):
        streams = [gpu.Stream(non_blocking=True) for _ in range(3)]
        for number, stream in enumerate(streams):
            gpuviz.name_stream(stream, f"phase {number}")
            with stream:
                blocks = [gpu.empty(32 * MIB) for _ in range(2)]
            del blocks

    title = one(recorded(program, memory=200), "R15").title

    assert title.startswith("128 MiB is cached for `phase 0` and `phase 1` while")


def parked(gpu):
    side = gpu.Stream(non_blocking=True)
    for _ in range(6):
        array = gpu.empty(32 * MIB)
        ready = gpu.null_stream.record()
        side.wait_event(ready)
        with side:
            gpu.launch("use", duration=5e-2, reads=[array])
        gpu.record_stream(array, side)
        del array


def waiting(gpu):
    side = gpu.Stream(non_blocking=True)
    for _ in range(6):
        array = gpu.empty(32 * MIB)
        ready = gpu.null_stream.record()
        side.wait_event(ready)
        with side:
            gpu.launch("use", duration=5e-2, reads=[array])
        gpu.null_stream.wait_event(side.record())
        del array


def test_arrays_that_record_stream_keeps_are_found_and_an_event_saves_what_was_predicted():
    before, after = recorded(parked), recorded(waiting)
    finding = one(before, "R16")

    assert finding.saved_reserved_bytes == peak(before) - peak(after) == 160 * MIB
    assert finding.title == (
        "160 MiB of freed arrays wait for other streams while `array = gpu.empty(32 * MIB)` needs "
        "new memory: without the wait, the allocator would reserve 32.0 MiB instead of 192 MiB."
    )
    assert finding.reason == (
        "160 MiB were reserved when 32.0 MiB were requested. After `record_stream`, an array's "
        "memory is not reused until the other stream has finished the work queued before the free. "
        "The recorded allocations and frees were repeated without this."
    )
    assert finding.change == (
        "Instead of `record_stream`, let the stream that allocated an array wait for the other "
        "stream (`wait_event`) before you delete the array: then its memory is reused at once. "
        "The wait may cost time."
    )
    assert rules(before) == ["R16"]
    assert rules(after) == []


def test_arrays_whose_streams_finish_in_time_are_no_finding():
    def program(gpu):
        side = gpu.Stream(non_blocking=True)
        keep = [gpu.empty(32 * MIB) for _ in range(6)]
        for _ in range(6):
            array = gpu.empty(32 * MIB)
            with side:
                gpu.launch("use", duration=1e-4, reads=[array])
            gpu.record_stream(array, side)
            del array
            gpu.synchronize()
        del keep

    assert rules(recorded(program)) == []
