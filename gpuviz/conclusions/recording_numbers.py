"""Which numbers the page of a recording shows, and of what time."""

from collections.abc import Iterator

import pyarrow as pa

from gpuviz.advice.replay.compensation import compensated, recording_cost
from gpuviz.analysis.derived_tables import derived
from gpuviz.analysis.device_summary import DeviceSummary, summarize
from gpuviz.analysis.host_memory import host_memory
from gpuviz.analysis.iterations import median_iteration
from gpuviz.analysis.launches import durations
from gpuviz.analysis.overlap import DeviceOverlap, whole_overlap
from gpuviz.analysis.processes import part_of_device
from gpuviz.analysis.steady_state import steady_of
from gpuviz.conclusions import numbers
from gpuviz.conclusions.facts import around
from gpuviz.conclusions.headline_number import Number
from gpuviz.conclusions.store import known_iterations
from gpuviz.conclusions.wording import left_out
from gpuviz.data.columns import plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.quantities import format_duration


def figures(recording: RecordingData, device: int) -> Iterator[Number]:
    """Yield the few numbers at the head of a page, which lead to what they are about."""
    if recording.tables["memory_events"].num_rows:
        yield from _memory_figures(recording, summarize(recording, device))
    yield from time_figures(recording, device)
    iterations = known_iterations(recording, device)
    if iterations.num_rows:
        yield _iterations(recording, device, iterations)
    elif (cost := recording_cost(recording)) is not None:
        yield numbers.as_if_not_recorded(cost)
    yield numbers.dropped(recording.dropped)


def _iterations(recording: RecordingData, device: int, iterations: pa.Table) -> Number:
    """Return how often an iteration ran for how long, as if not recorded if that is known."""
    middle = median_iteration(iterations)
    count, window = iterations.num_rows, (middle["start"], middle["end"])
    recorded_ns = middle["duration_ns"]
    unrecorded = compensated(recording)
    others = known_iterations(unrecorded, device)
    if unrecorded is recording or not others.num_rows:
        return numbers.iterations(count, recorded_ns, window)
    duration_ns = median_iteration(others)["duration_ns"]
    return numbers.iterations(count, duration_ns, window, recorded_ns)


def _memory_figures(recording: RecordingData, summary: DeviceSummary) -> Iterator[Number]:
    yield numbers.peak(summary, around(recording, summary.allocated_peak_ns))
    if summary.reserved_peak:
        yield numbers.reserved(summary, around(recording, summary.reserved_peak_ns))
    if summary.out_of_memory:
        yield numbers.failed_allocations(summary.out_of_memory, "findings")


def time_figures(recording: RecordingData, device: int) -> Iterator[Number]:
    """Yield the numbers of a device's work, as if not recorded if that is known."""
    unrecorded = compensated(recording)
    for lane in _lanes(unrecorded, device):
        steady = steady_of(unrecorded, device)
        yield numbers.busy(steady.busy, left_out(steady), tab="kernels")
        late = sum(steady.causes_ns[cause] for cause in ("host", "synchronization", "allocation"))
        yield numbers.idle(steady.idle_ns, late, _longest_gap(recording, device))
        if lane.copy_ns:
            yield numbers.hidden_copies(lane.kernel_copy_overlap, None, "copies")
        if has_calls(recording):
            yield numbers.blocked(host_blocked_ns(unrecorded, device), tab="waits")


def _lanes(recording: RecordingData, device: int) -> list[DeviceOverlap]:
    return [each for each in whole_overlap(recording).devices if each.device == device]


def _longest_gap(recording: RecordingData, device: int) -> tuple[int, int] | None:
    """Return the window of the longest idle time of a device with one cause; None without one."""
    gaps = derived(recording)["idle_gaps"]
    is_ours = (plain(gaps["device"]) == device) & (plain(gaps["stream"]) == 0)
    starts, ends = plain(gaps["time"])[is_ours], plain(gaps["end"])[is_ours]
    if not len(starts):
        return None
    row = int((ends - starts).argmax())
    return int(starts[row]), int(ends[row])


def headline(recording: RecordingData, summary: DeviceSummary) -> list[Number]:
    """Return the headline numbers of a device, formatted."""
    return [*numbers.memory(summary), *_pinned(recording), *_activity(recording, summary.device)]


def _pinned(recording: RecordingData) -> tuple[Number, ...]:
    """Return the peak of pinned memory; nothing if none was recorded."""
    pinned = host_memory(recording)
    if not pinned.is_recorded:
        return ()
    return (numbers.pinned_peak(pinned.peak()),)


def _activity(recording: RecordingData, device: int) -> Iterator[Number]:
    """Yield the times of the device and its host; nothing if no activity was recorded."""
    unrecorded = compensated(recording)
    lanes = _lanes(unrecorded, device)
    if not lanes:
        return
    (lane,) = lanes
    period = "from its first to its last activity" if recording.bounds is None else "shown here"
    if unrecorded is not recording:
        period = f"{period}, as if not recorded"
    steady = steady_of(unrecorded, device)
    yield numbers.busy(
        steady.busy,
        f"{format_duration(steady.busy_ns)} of the {format_duration(steady.duration_ns)} "
        f"{left_out(steady) or period}",
    )
    yield numbers.kernels(lane)
    yield numbers.host_copies(lane)
    if lane.device_copy_ns:
        yield numbers.device_copies(lane.device_copy_ns)
    if not has_calls(recording):
        yield numbers.not_recorded("Host blocked", "CUDA calls were not recorded")
        return
    blocked_ns = host_blocked_ns(unrecorded, device)
    yield numbers.blocked(blocked_ns, "in waits and copies, summed over threads")


def host_blocked_ns(recording: RecordingData, device: int) -> int:
    """Return for how long the host waited for a device, in ns; waits for none known count too."""
    waits = derived(part_of_device(recording, device))["host_waits"]
    devices = plain(waits["device"])
    return int(durations(waits)[(devices == device) | (devices < 0)].sum())


def has_calls(recording: RecordingData) -> bool:
    """Return whether the recording has CUDA calls or waits, which block the host."""
    return any(recording.tables[name].num_rows for name in ("api_calls", "synchronizations"))
