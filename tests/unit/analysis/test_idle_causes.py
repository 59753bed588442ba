"""Each cause of idle time by hand; test_overlap.py tests random recordings."""

import pytest

from tests.unit.recording.from_activities import Timeline, only_device
from tests.unit.recording.plain_overlap import CAUSES


def idle(lane):
    """Return the non-zero causes of idle time."""
    times = {cause: getattr(lane, f"idle_{cause}_ns") for cause in CAUSES}
    return {cause: time for cause, time in times.items() if time}


def test_a_late_launch_is_the_hosts_and_what_follows_it_is_unknown():
    timeline = Timeline()
    timeline.kernel(0, 100)
    timeline.kernel(150, 200, correlation=7)
    timeline.call(120, 130, correlation=7)

    assert idle(only_device(timeline)) == {"host": 30, "unknown": 20}


def test_a_stream_that_waits_for_an_event_depends_on_what_was_before_the_record():
    timeline = Timeline()
    timeline.kernel(0, 100, correlation=1)
    timeline.kernel(0, 10, stream=2, correlation=2)
    timeline.synchronization("event_record", stream=1, event_sync_id=5, correlation=3)
    timeline.kernel(105, 300, correlation=4)
    timeline.synchronization("stream_wait_event", 12, 13, stream=2, event_sync_id=5, correlation=6)
    timeline.kernel(110, 120, stream=2, correlation=7)
    timeline.call(14, 16, correlation=7)
    waiting = timeline.recording().overlap().streams[1]

    expected = {"host": 4, "dependency": 86, "gpu_busy": 5, "unknown": 5 + 180}
    assert idle(waiting) == expected


def test_a_records_moment_on_the_gpu_is_what_a_wait_waits_for():
    timeline = Timeline()
    timeline.kernel(0, 10, stream=2, correlation=2)
    timeline.synchronization("event_record", 60, 60, stream=1, event_sync_id=5, correlation=3)
    timeline.synchronization("stream_wait_event", 12, 13, stream=2, event_sync_id=5, correlation=6)
    timeline.kernel(70, 80, stream=2, correlation=7)
    timeline.call(5, 9, correlation=7)

    assert idle(only_device(timeline)) == {"dependency": 50, "unknown": 10}


def test_a_wait_that_came_after_the_launch_explains_nothing():
    timeline = Timeline()
    timeline.kernel(0, 10, correlation=1)
    timeline.synchronization("event_record", 60, 60, stream=2, event_sync_id=5, correlation=3)
    timeline.kernel(70, 80, correlation=7)
    timeline.call(5, 9, correlation=7)
    timeline.synchronization("stream_wait_event", 12, 13, stream=1, event_sync_id=5, correlation=8)

    assert idle(only_device(timeline)) == {"unknown": 60}


def test_of_several_waits_the_one_that_completed_last_counts():
    timeline = Timeline()
    timeline.kernel(0, 10, correlation=1)
    timeline.synchronization("event_record", 60, 60, stream=2, event_sync_id=5, correlation=2)
    timeline.synchronization("event_record", 30, 30, stream=3, event_sync_id=6, correlation=3)
    for number in (5, 6):
        ids = {"event_sync_id": number, "correlation": number}
        timeline.synchronization("stream_wait_event", stream=1, **ids)
    timeline.kernel(70, 80, correlation=7)
    timeline.call(5, 9, correlation=7)

    assert idle(only_device(timeline)) == {"dependency": 50, "unknown": 10}


def test_an_event_handle_that_is_used_again_is_another_event():
    timeline = Timeline()
    timeline.kernel(0, 10, correlation=1)
    timeline.synchronization("event_record", 60, 60, stream=2, event=9, event_sync_id=5)
    timeline.synchronization("stream_wait_event", stream=1, event=9, event_sync_id=4, correlation=2)
    timeline.kernel(70, 80, correlation=7)
    timeline.call(5, 9, correlation=7)

    assert idle(only_device(timeline)) == {"unrecorded_event": 60}


@pytest.mark.parametrize(
    "name", ["cuStreamSynchronize", "cudaDeviceSynchronize", "cuMemcpyDtoH_v2"]
)
def test_a_launch_after_a_blocking_call_waited_for_that_call(name):
    timeline = Timeline()
    timeline.kernel(0, 100)
    timeline.call(50, 115, name, correlation=6)
    timeline.kernel(150, 200, correlation=7)
    timeline.call(120, 130, correlation=7)

    assert idle(only_device(timeline)) == {"synchronization": 15, "host": 15, "unknown": 20}


def test_another_threads_synchronization_is_no_cause():
    timeline = Timeline()
    timeline.kernel(0, 100)
    timeline.call(50, 115, "cuStreamSynchronize", correlation=6, thread=2)
    timeline.kernel(150, 200, correlation=7)
    timeline.call(120, 130, correlation=7)

    assert idle(only_device(timeline)) == {"host": 30, "unknown": 20}


def test_a_synchronization_after_the_launch_is_no_cause():
    timeline = Timeline()
    timeline.kernel(0, 100)
    timeline.kernel(150, 200, correlation=7)
    timeline.call(50, 90, correlation=7)
    timeline.call(95, 220, "cuStreamSynchronize", correlation=8)

    assert idle(only_device(timeline)) == {"unknown": 50}


def test_a_query_does_not_block():
    timeline = Timeline()
    timeline.kernel(0, 100)
    timeline.call(100, 115, "cuEventQuery", correlation=6)
    timeline.synchronization("event_synchronize", 100, 115, correlation=6)
    timeline.kernel(150, 200, correlation=7)
    timeline.call(120, 130, correlation=7)

    assert idle(only_device(timeline)) == {"host": 30, "unknown": 20}


@pytest.mark.parametrize("name", ["cudaMalloc", "cudaMalloc_v3020", "cuMemFree_v2", "cuMemMap"])
def test_a_gap_in_which_memory_is_allocated_is_the_allocations(name):
    timeline = Timeline()
    timeline.kernel(0, 100)
    timeline.call(90, 140, name, correlation=6, thread=2)
    timeline.kernel(170, 200, correlation=7)
    timeline.call(150, 160, correlation=7)

    assert idle(only_device(timeline)) == {"allocation": 40, "host": 20, "unknown": 10}


def test_an_allocation_within_a_blocking_call_is_the_allocations_alone():
    timeline = Timeline()
    timeline.kernel(0, 100)
    timeline.call(100, 140, "cuStreamSynchronize", correlation=5)
    timeline.call(110, 120, "cuMemFree_v2", correlation=6, thread=2)
    timeline.kernel(170, 200, correlation=7)
    timeline.call(150, 160, correlation=7)

    assert idle(only_device(timeline)) == {
        "allocation": 10,
        "synchronization": 30,
        "host": 20,
        "unknown": 10,
    }


@pytest.mark.parametrize("name", ["cudaMallocAsync", "cuMemAllocFromPoolAsync", "cuMemFreeAsync"])
def test_an_allocation_in_stream_order_holds_nothing_up(name):
    timeline = Timeline()
    timeline.kernel(0, 100)
    timeline.call(100, 140, name, correlation=6)
    timeline.kernel(170, 200, correlation=7)
    timeline.call(150, 160, correlation=7)

    assert idle(only_device(timeline)) == {"host": 60, "unknown": 10}


def test_without_calls_all_idle_time_is_unknown():
    timeline = Timeline()
    timeline.kernel(0, 100, correlation=3)
    timeline.kernel(170, 200, correlation=7)

    assert idle(only_device(timeline)) == {"unknown": 70}


def test_a_window_cuts_activities_and_looks_beyond_its_end_for_the_cause():
    timeline = Timeline()
    timeline.kernel(0, 100)
    timeline.kernel(170, 200, correlation=7)
    timeline.call(150, 160, correlation=7)
    device = only_device(timeline, start=90, end=130)

    assert (device.count, device.busy_ns, device.window_ns) == (1, 10, 40)
    assert idle(device) == {"host": 30}


def test_a_stream_without_room_waits_for_the_busy_gpu():
    timeline = Timeline()
    timeline.kernel(0, 100, correlation=1)
    timeline.call(2, 4, correlation=2)
    timeline.kernel(90, 110, stream=2, correlation=2)
    timeline.copy(4, 30, stream=3, correlation=3)
    first, second, copies = timeline.recording().overlap(start=0, end=110).streams

    assert idle(first) == {"unknown": 10}
    assert idle(second) == {"host": 4, "gpu_busy": 86}
    assert idle(copies) == {"unknown": 84}


def test_a_copy_does_not_wait_for_the_room_of_kernels():
    timeline = Timeline()
    timeline.kernel(0, 100, correlation=1)
    timeline.call(0, 1, correlation=2)
    timeline.copy(50, 60, stream=2, correlation=2)
    timeline.call(60, 61, correlation=3)
    timeline.copy(80, 90, stream=2, correlation=3)
    timeline.copy(65, 75, stream=3, correlation=4)

    waiting = timeline.recording().overlap(start=0, end=90).streams[1]

    assert idle(waiting) == {"host": 2, "gpu_busy": 10, "unknown": 49 + 9}


def test_only_the_first_launch_after_a_wait_waits_for_an_event_of_before_the_recording():
    timeline = Timeline()
    of_stream = {"stream": 1, "event_sync_id": 5, "correlation": 1}
    timeline.synchronization("stream_wait_event", 1, 2, **of_stream)
    timeline.call(2, 3, correlation=2)
    timeline.kernel(40, 50, correlation=2)
    timeline.call(3, 4, correlation=3)
    timeline.kernel(60, 70, correlation=3)

    assert idle(only_device(timeline, start=0)) == {
        "host": 3,
        "unrecorded_event": 37,
        "unknown": 10,
    }
