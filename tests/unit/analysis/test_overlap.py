"""Overlap, against plain Python by nanosecond, and by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuviz import _core
from gpuviz.analysis.overlap import Overlap
from tests.examples import examples
from tests.unit.recording.any_timeline import RECORDINGS, TIMES
from tests.unit.recording.from_activities import Timeline, only_device
from tests.unit.recording.plain_overlap import CAUSES, PlainOverlap

EXAMPLES = examples(40)

SUMS = (
    *(
        "sum_ns",
        "busy_ns",
        "kernel_ns",
        "copy_ns",
        "device_copy_ns",
        "kernel_copy_ns",
        "kernel_kernel_ns",
    ),
    *(f"idle_{cause}_ns" for cause in CAUSES),
)


def numbers(lane, names=("start", "end", "count", *SUMS)):
    return {name: getattr(lane, name) for name in names}


@EXAMPLES
@given(recording=RECORDINGS, start=st.none() | TIMES, length=st.none() | TIMES)
def test_every_number_is_that_of_one_nanosecond_after_the_other(recording, start, length):
    end = None if length is None else (start or 0) + length
    plain = PlainOverlap(recording)

    found = recording.overlap(start=start, end=end)

    expected = sorted({(row["device"], None) for row in plain.activities}, key=repr)
    assert [lane.device for lane in found.devices] == [device for device, _ in expected]
    streams = sorted({(row["device"], row["stream"]) for row in plain.activities})
    assert [(lane.device, lane.stream) for lane in found.streams] == streams
    for lane in (*found.devices, *found.streams):
        whole = dict.fromkeys(SUMS, 0)
        whole |= plain.lane(lane.device, getattr(lane, "stream", None), start, end)
        assert numbers(lane) == whole
        idle = [getattr(lane, name) for name in SUMS if name.startswith("idle")]
        assert sum(idle) == lane.idle_ns == lane.window_ns - lane.busy_ns


@EXAMPLES
@given(recording=RECORDINGS, cuts=st.tuples(TIMES, TIMES, TIMES))
def test_the_numbers_of_two_windows_add_up_to_those_of_both(recording, cuts):
    begin, middle, end = sorted(cuts)

    first = recording.overlap(start=begin, end=middle)
    second = recording.overlap(start=middle, end=end)
    both = recording.overlap(start=begin, end=end)

    for one, other, whole in zip(
        (*first.devices, *first.streams),
        (*second.devices, *second.streams),
        (*both.devices, *both.streams),
        strict=True,
    ):
        sums = {name: getattr(one, name) + getattr(other, name) for name in SUMS}
        assert sums == numbers(whole, SUMS)


def test_an_empty_recording_has_no_devices_and_no_streams():
    assert Timeline().recording().overlap() == Overlap((), ())


def test_two_kernels_side_by_side_are_kernel_kernel_overlap():
    timeline = Timeline()
    timeline.kernel(0, 100)
    timeline.kernel(40, 120, stream=2)
    device = only_device(timeline)

    assert (device.kernel_ns, device.kernel_kernel_ns, device.sum_ns) == (120, 60, 180)
    assert (device.kernel_kernel_overlap, device.concurrency, device.busy) == (0.5, 1.5, 1.0)


def test_kernels_one_after_the_other_do_not_overlap():
    timeline = Timeline()
    timeline.kernel(0, 100)
    timeline.kernel(100, 200)
    device = only_device(timeline)

    assert (device.kernel_kernel_ns, device.concurrency, device.idle_ns) == (0, 1.0, 0)


def test_a_copy_behind_a_kernel_is_hidden():
    timeline = Timeline()
    timeline.kernel(0, 100)
    timeline.copy(20, 60, stream=2)
    device = only_device(timeline)

    assert (device.copy_ns, device.kernel_copy_ns, device.exposed_copy_ns) == (40, 40, 0)
    assert device.kernel_copy_overlap == 1.0


def test_the_part_of_a_copy_that_no_kernel_hides_is_exposed():
    timeline = Timeline()
    timeline.kernel(0, 100)
    timeline.copy(70, 190, stream=2)
    device = only_device(timeline)

    assert (device.kernel_copy_ns, device.exposed_copy_ns) == (30, 90)
    assert device.kernel_copy_overlap == 0.25


def test_a_memset_makes_busy_and_is_no_copy():
    timeline = Timeline()
    timeline.activity("memset", 0, 30)
    device = only_device(timeline)

    assert (device.busy_ns, device.copy_ns, device.kernel_ns) == (30, 0, 0)


def test_a_range_on_a_stream_is_no_work():
    timeline = Timeline()
    timeline.kernel(10, 20)
    timeline.activity("range", 0, 100)
    device = only_device(timeline)

    assert (device.count, device.start, device.end) == (1, 10, 20)


def test_an_activity_without_length_counts_and_takes_no_time():
    timeline = Timeline()
    timeline.kernel(50, 50)
    device = only_device(timeline)

    assert (device.count, device.window_ns, device.busy, device.concurrency) == (1, 0, 0.0, 0.0)


def test_an_end_before_its_begin_takes_no_time():
    timeline = Timeline()
    timeline.kernel(0, 10)
    timeline.kernel(30, 20)
    device = only_device(timeline)

    assert (device.count, device.busy_ns, device.sum_ns, device.end) == (2, 10, 10, 30)


def test_times_of_endless_nonsense_stay_defined():
    timeline = Timeline()
    for _ in range(20):
        timeline.kernel(1 - 2**62, 2**62 - 1)
    device = only_device(timeline)

    assert (device.window_ns, device.busy_ns, device.idle_ns) == (2**61, 2**61, 0)
    assert device.sum_ns == 2**63 - 1


def test_one_device_alone_can_be_asked_for():
    timeline = Timeline()
    timeline.kernel(0, 10)
    timeline.kernel(5, 10, device=1, stream=2)
    found = timeline.recording().overlap(device=1)

    assert [(lane.device, lane.start) for lane in found.devices] == [(1, 5)]
    assert [lane.stream for lane in found.streams] == [2]


def test_an_unknown_device_is_an_error_that_names_those_there_are():
    timeline = Timeline()
    timeline.kernel(0, 10)

    with pytest.raises(ValueError, match="the recording has no device 3; its devices are 0"):
        timeline.recording().overlap(device=3)


def test_a_window_that_ends_before_it_starts_is_refused():
    with pytest.raises(ValueError, match="got 10 to 9 ns"):
        Timeline().recording().overlap(start=10, end=9)


NO_ACTIVITIES = {
    **dict.fromkeys(("time", "end"), np.zeros(0, np.int64)),
    "work": np.zeros(0, np.uint8),
    "device": np.zeros(0, np.int16),
    **dict.fromkeys(("stream", "correlation"), np.zeros(0, np.uint32)),
}


def test_a_column_of_another_type_is_refused_by_name():
    with pytest.raises(TypeError, match="column 'work' is no contiguous array of one dimension"):
        _core.overlap(NO_ACTIVITIES | {"work": np.zeros(0, np.int64)}, {}, {})


def test_columns_of_different_lengths_are_refused_by_name():
    with pytest.raises(ValueError, match="column 'device' has 2 rows, expected 0"):
        _core.overlap(NO_ACTIVITIES | {"device": np.zeros(2, np.int16)}, {}, {})
