"""Streams and events of a simulated GPU."""

import gc
from concurrent.futures import ThreadPoolExecutor

import pytest

import gpuviz
from tests.unit.simulation.tables_of import activities, calls, kernels

US = 1000


def test_kernels_that_fit_run_side_by_side_on_two_streams_and_in_turn_on_one(recorded):
    def program(gpu):
        streams = [gpu.Stream(non_blocking=True) for _ in range(3)]
        for name, stream in zip("abc", streams, strict=True):
            with stream:
                gpu.launch(name, duration=100e-6, share=0.5)
        gpu.synchronize()
        with streams[0]:
            gpu.launch("d", duration=100e-6, share=0.5)
            gpu.launch("e", duration=100e-6, share=0.5)

    found = kernels(recorded(program))

    assert found["a"]["time"] < found["b"]["time"] < found["a"]["end"]
    assert found["c"]["time"] == found["a"]["end"]
    assert found["e"]["time"] == found["d"]["end"]


def test_an_event_orders_two_streams_and_the_tables_tell_which_record_was_waited_for(recorded):
    def program(gpu):
        first, second = gpu.Stream(non_blocking=True), gpu.Stream(non_blocking=True)
        event = gpu.Event()
        for name in ("a", "b"):
            with first:
                gpu.launch(name, duration=100e-6, share=0.25)
                event.record()
            second.wait_event(event)
            with second:
                gpu.launch(f"after {name}", duration=10e-6, share=0.25)

    recording = recorded(program)

    found = kernels(recording)
    assert found["after a"]["time"] == found["a"]["end"] == found["b"]["time"]
    assert found["after b"]["time"] == found["b"]["end"]
    rows = recording.table("synchronizations").to_pylist()
    records = [row for row in rows if row["kind"] == "event_record"]
    waits = [row for row in rows if row["kind"] == "stream_wait_event"]
    assert [row["time"] for row in records] == [found["a"]["end"], found["b"]["end"]]
    assert len({row["event"] for row in rows}) == 1
    assert [row["event_sync_id"] for row in waits] == [row["event_sync_id"] for row in records]
    assert {row["stream"] for row in records} == {found["a"]["stream"]}
    assert {row["stream"] for row in waits} == {found["after a"]["stream"]}


def test_an_event_that_was_never_recorded_holds_nobody_up(recorded):
    def program(gpu):
        first, second = gpu.Stream(non_blocking=True), gpu.Stream(non_blocking=True)
        with first:
            gpu.launch("long", duration=1, share=0.5)
        second.wait_event(gpu.Event())
        with second:
            gpu.launch("free", duration=1e-6, share=0.5)

    found = kernels(recorded(program))

    assert found["free"]["end"] < found["long"]["end"] - 900_000 * US


def test_a_wait_for_an_event_that_was_never_recorded_is_no_work_of_the_default_stream(recorded):
    def program(gpu):
        first, second = gpu.Stream(), gpu.Stream()
        with first:
            gpu.launch("long", duration=1, share=0.5)
        gpu.null_stream.wait_event(gpu.Event())
        with second:
            gpu.launch("free", duration=1e-6, share=0.5)

    recording = recorded(program)

    found = kernels(recording)
    assert found["free"]["end"] < found["long"]["end"] - 900_000 * US
    assert "stream_wait_event" not in recording.table("synchronizations")["kind"].to_pylist()


def test_a_wait_for_an_event_that_was_created_in_a_pause_has_a_row(recorded):
    def program(gpu):
        gpu.null_stream.wait_event(gpu.Event())
        gpu._native.pause()
        event = gpu.Event()
        gpu._native.resume()
        gpu.null_stream.wait_event(event)
        gpu.null_stream.wait_event(gpu.Event())
        event.synchronize()

    rows = recorded(program).table("synchronizations").to_pylist()

    assert [row["event_sync_id"] for row in rows if row["kind"] == "stream_wait_event"] == [0]
    assert [row["event_sync_id"] for row in rows if row["kind"] == "event_synchronize"] == [0]


def test_the_default_stream_waits_for_blocking_streams_and_they_for_it(recorded):
    def program(gpu):
        blocking, other = gpu.Stream(), gpu.Stream(non_blocking=True)
        for stream, name in (
            (blocking, "before"),
            (gpu.null_stream, "default"),
            (blocking, "after"),
            (other, "independent"),
        ):
            with stream:
                gpu.launch(name, duration=100e-6, share=0.25)

    found = kernels(recorded(program))

    assert found["default"]["time"] == found["before"]["end"]
    assert found["after"]["time"] == found["default"]["end"]
    assert found["independent"]["end"] < found["default"]["end"]


def test_work_of_a_destroyed_blocking_stream_still_holds_up_the_default_stream(recorded):
    def program(gpu):
        stream = gpu.Stream()
        with stream:
            gpu.launch("before", duration=100e-6, share=0.25)
        del stream
        gpu.launch("default", duration=100e-6, share=0.25)

    found = kernels(recorded(program))

    assert found["default"]["time"] == found["before"]["end"]


def test_a_handle_that_is_used_again_is_another_stream(recorded):
    handles = []

    def program(gpu):
        for name in ("a", "b"):
            stream = gpu.Stream(non_blocking=True, priority=-1)
            handles.append(stream.ptr)
            with stream:
                gpu.launch(name, duration=500e-6)
            x = gpu.empty(1000)
            del stream, x

    recording = recorded(program)

    found = kernels(recording)
    rows = {row["id"]: row for row in recording.table("streams").to_pylist()}
    first, second = rows[found["a"]["stream"]], rows[found["b"]["stream"]]
    assert handles[0] == handles[1] == first["handle"] == second["handle"]
    assert first["destroyed"] < second["created"] < second["destroyed"]
    assert {row["kind"] for row in (first, second)} == {"non_blocking"}
    assert {row["priority"] for row in (first, second)} == {-1}
    assert found["a"]["end"] > first["destroyed"]


def test_memory_belongs_to_the_stream_that_had_the_handle_when_it_was_allocated(recorded):
    def program(gpu):
        for name in ("a", "b", "c"):
            stream = gpu.Stream(non_blocking=True)
            with stream:
                x = gpu.empty(1000)
                gpu.launch(name, writes=[x], duration=50e-6)
                del x
            stream.synchronize()
            del stream

    recording = recorded(program)

    events = recording.table("memory_events").to_pylist()
    streams = [each["stream"] for each in kernels(recording).values()]
    assert len(set(streams)) == 3
    assert [each["stream"] for each in events if each["action"] == "alloc"] == streams
    assert [each["stream"] for each in events if each["action"] == "free_requested"] == streams


def test_a_kernel_of_higher_priority_gets_room_first(recorded):
    def program(gpu):
        low, high = gpu.Stream(non_blocking=True), gpu.Stream(non_blocking=True, priority=-5)
        with gpu.Stream(non_blocking=True):
            gpu.launch("first", duration=100e-6)
        with low:
            gpu.launch("low", duration=100e-6)
        with high:
            gpu.launch("high", duration=100e-6)

    found = kernels(recorded(program))

    assert found["high"]["time"] == found["first"]["end"]
    assert found["low"]["time"] == found["high"]["end"]


def test_synchronizing_waits_for_what_it_names_and_for_no_more(recorded):
    def program(gpu):
        short, long = gpu.Stream(non_blocking=True), gpu.Stream(non_blocking=True)
        with short:
            gpu.launch("short", duration=100e-6, share=0.5)
            event = short.record()
        with long:
            gpu.launch("long", duration=10e-3, share=0.5)
        assert [event.done, short.done, long.done] == [False, False, False]
        event.synchronize()
        assert [event.done, short.done, long.done] == [True, True, False]
        short.synchronize()
        gpu.synchronize()
        assert long.done

    recording = recorded(program)

    found = kernels(recording)
    named = {row["correlation"] for row in recording.table("api_calls").to_pylist()}
    waits = recording.table("synchronizations").to_pylist()
    rows = {row["kind"]: row for row in waits if row["correlation"] in named}
    queried = [row["kind"] for row in waits if row["correlation"] not in named]
    assert queried == ["event_synchronize", "stream_synchronize", "stream_synchronize"]
    assert found["short"]["end"] <= rows["event_synchronize"]["end"] < found["long"]["end"]
    assert rows["stream_synchronize"]["end"] < found["long"]["end"]
    assert rows["stream_synchronize"]["stream"] == found["short"]["stream"]
    assert found["long"]["end"] == rows["context_synchronize"]["end"]


@pytest.mark.parametrize(
    ("nbytes", "pinned", "blocking", "waits"),
    [
        (64 << 10, True, False, False),
        (64 << 20, True, False, False),
        (64 << 10, False, False, False),
        ((64 << 10) + 1, False, False, True),
        (64 << 20, True, True, True),
    ],
)
def test_the_host_waits_for_a_copy_to_the_device_unless_it_is_pinned_or_small(
    recorded, nbytes, pinned, blocking, waits
):
    def program(gpu):
        with gpu.Stream(non_blocking=True):
            gpu.copy_to_device(gpu.empty(nbytes), pinned=pinned, blocking=blocking)

    recording = recorded(program)

    [copy] = activities(recording, "memcpy")
    [call] = calls(recording, f"cuMemcpyHtoD{'' if blocking else 'Async'}_v2")
    streams = {row["id"]: row["kind"] for row in recording.table("streams").to_pylist()}
    assert (copy["end"] <= call["end"]) == waits
    assert (copy["source"], copy["destination"]) == ("pinned" if pinned else "pageable", "device")
    assert streams[copy["stream"]] == ("default" if blocking else "non_blocking")


def test_copies_of_one_direction_take_turns_and_of_two_do_not(recorded):
    def program(gpu):
        for _ in range(2):
            with gpu.Stream(non_blocking=True):
                gpu.copy_to_device(gpu.empty(1 << 20), pinned=True)
            with gpu.Stream(non_blocking=True):
                gpu.copy_to_host(gpu.empty(1 << 20), pinned=True)

    rows = activities(recorded(program), "memcpy")

    to_device = [row for row in rows if row["copy_kind"] == "host_to_device"]
    to_host = [row for row in rows if row["copy_kind"] == "device_to_host"]
    assert to_device[0]["end"] <= to_device[1]["time"]
    assert to_host[0]["end"] <= to_host[1]["time"]
    assert to_host[0]["time"] < to_device[0]["end"]


def test_each_thread_has_a_current_stream_of_its_own(gpu):
    stream = gpu.Stream()
    with stream, ThreadPoolExecutor(1) as thread:
        here, there = gpu.current_stream, thread.submit(lambda: gpu.current_stream).result()

    assert here is stream
    assert there.ptr == 0
    assert gpu.current_stream.ptr == 0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda gpu: gpu.launch("k", duration=0), "between 1e-9 and 1e9 seconds, got 0"),
        (lambda gpu: gpu.launch("k", duration=float("nan")), "got nan"),
        (lambda gpu: gpu.launch("k", duration=1, share=0), "share must be above 0 and at most 1"),
        (lambda gpu: gpu.launch("k", duration=1, grid=()), "grid must have one to three numbers"),
        (lambda gpu: gpu.launch("k", duration=1, block=(0,)), "block must have one to three"),
        (lambda gpu: gpu.launch("k", duration=1, registers=-1), "registers must be between 0 and"),
        (lambda gpu: gpu.empty(-1), "nbytes must be a number of bytes from 0"),
        (lambda gpu: gpu.copy(gpu.empty(1), gpu.empty(2)), "must have the same size, got 1 and 2"),
        (lambda gpu: gpu._native.launch_graph(0, 7), "has no graph 7"),
        (
            lambda gpu: gpu._native.synchronize_stream(0x123),
            "has no stream 0x123; it was destroyed",
        ),
        (lambda gpu: gpu._native.synchronize_event(9), "has no event 9; it was destroyed"),
        (lambda gpu: gpu._native.destroy_stream(0), "The default stream cannot be destroyed"),
        (lambda _: gpuviz.SimulatedGPU(0), "memory must be at least 1 byte, got 0"),
        (lambda _: gpuviz.SimulatedGPU(settings="colour:blue"), "colour"),
    ],
)
def test_a_wrong_value_is_named_with_what_was_expected(gpu, wrong, message):
    with pytest.raises(ValueError, match="^.*" + message.replace("(", r"\(")):
        wrong(gpu)
    gc.collect()
