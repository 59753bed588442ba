"""R44: streams that never work at the same time, although their work would fit on the GPU."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gpuviz.advice.evidence import Evidence
from gpuviz.advice.finding import Finding
from gpuviz.advice.host_lines import longest_lines
from gpuviz.advice.replay.schedule import Schedule, ScheduleChange
from gpuviz.advice.replay.trace import COPY, KERNEL
from gpuviz.advice.rule import Rule
from gpuviz.analysis.derived_tables import derived
from gpuviz.analysis.intervals import Intervals
from gpuviz.analysis.launches import stacks_of
from gpuviz.analysis.overlap import DeviceOverlap, whole_overlap
from gpuviz.analysis.stream_names import stream_names
from gpuviz.data.columns import codes, plain
from gpuviz.data.derived import DICTIONARIES as WORDS
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import DICTIONARIES
from gpuviz.quantities import format_counted, format_duration

RULES = (
    Rule(
        "R44",
        "streams that never overlap",
        "two streams have at least 5 % of the busy time each, never work at once although a copy "
        "and a kernel, copies in two directions or small kernels could, and at least half of that "
        "time has one reason",
        "depends on the reason: pinned memory, fewer synchronizations, launching earlier",
    ),
)

_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
_STREAM_KINDS = DICTIONARIES["streams", "kind"]
_WAITS = WORDS["host_waits", "kind"]
# Of the device's busy time: what a stream does at least, and what counts as overlap at least.
_LEAST_BUSY = 0.05
_LEAST_OVERLAP = 0.01
# Of the time that could overlap: what one reason explains at least.
_LEAST_EXPLAINED = 0.5
_MOST_ROWS = 1000

_FULL, _UNKNOWN, _COPIES, _SYNCHRONIZATIONS, _HOST, _EVENTS, _DEFAULT = range(7)
_WHY = {
    _COPIES: "the host waits in copies of pageable memory before it launches the next work",
    _SYNCHRONIZATIONS: "the host synchronizes before it launches the next work",
    _HOST: "the host launches the work of one stream after that of the other has ended",
}
_CHANGE = {
    _COPIES: "Use pinned host memory (cupyx.empty_pinned), so that asynchronous copies return at "
    "once, and launch the work of all streams before you wait for any.",
    _SYNCHRONIZATIONS: "Launch the work of all streams before you wait for any.",
    _HOST: "Launch the work of all streams first, and let the host work afterwards.",
}


@dataclass(frozen=True, slots=True)
class _Switches:
    """Where the device changes streams: the last activity of one, and the next of another."""

    before: np.ndarray
    after: np.ndarray

    def chosen(self, mask: np.ndarray) -> "_Switches":
        return _Switches(self.before[mask], self.after[mask])


@dataclass(frozen=True, eq=False, slots=True)
class ApartStreams:
    """Streams of a device that never work at the same time.

    Attributes:
        device: The device's busy times.
        names: The streams as the subject of a sentence.
        switches: The pairs of activities that could have overlapped, but for the reason.
        why: The reason, one of `_WHY`.
    """

    device: DeviceOverlap
    names: str
    switches: _Switches
    why: int

    @property
    def by_copies(self) -> bool:
        """Whether the host waits in copies of pageable memory meanwhile."""
        return self.why == _COPIES


@Once
def apart_streams(schedule: Schedule) -> tuple[ApartStreams, ...]:
    """Return the streams of each device that could overlap and never do.

    They are computed once for a schedule.
    """
    return tuple(_apart_streams(schedule))


def find(schedule: Schedule) -> Iterator[Finding]:
    """Find devices on which several streams work, but never at the same time.

    Trigger: at least two streams each have 5 % of the device's busy time, less than 1 % of it has
    two activities at once, and the time that could overlap is at least 1 % of the recording: the
    shorter of two successive activities of different streams, if they are a copy and a kernel,
    copies in different directions, or kernels with no more blocks than multiprocessors together. At
    least half of it must have one reason. Kernels that fill the GPU cannot overlap, and are no
    fault; R23 and R24 find default streams and events that keep streams apart without need.

    Saving: the recording's `Schedule`, replayed without the host's waits. If the host launches too
    late for other reasons, nothing is predicted. ``possible``, because the program may need the
    order.
    """
    for streams in apart_streams(schedule):
        yield _finding(schedule, streams)


def _apart_streams(schedule: Schedule) -> Iterator[ApartStreams]:
    recording = schedule.recording
    overlap = whole_overlap(recording)
    for device in overlap.devices:
        busy = [
            each.stream
            for each in overlap.streams
            if each.device == device.device and each.busy_ns >= _LEAST_BUSY * device.busy_ns
        ]
        several = len(busy) > 1
        if not several or device.sum_ns - device.busy_ns > _LEAST_OVERLAP * device.busy_ns:
            continue
        switches = _switches(schedule, device.device, busy)
        shorter = np.minimum(schedule.duration[switches.before], schedule.duration[switches.after])
        reasons = _reasons(recording, schedule, switches)
        weights = np.bincount(reasons, weights=shorter, minlength=_DEFAULT + 1)
        weights[[_FULL, _UNKNOWN]] = 0
        could_overlap = shorter[reasons != _FULL].sum()
        why = int(np.argmax(weights))
        is_explained = weights[why] >= _LEAST_EXPLAINED * could_overlap
        if why in _WHY and could_overlap >= schedule.relevant_ns and is_explained:
            chosen = switches.chosen(reasons == why)
            yield ApartStreams(device, _names(recording, busy), chosen, why)


def _switches(schedule: Schedule, device: int, streams: Sequence[int]) -> _Switches:
    chosen = np.flatnonzero((schedule.device == device) & np.isin(schedule.stream, streams))
    order = chosen[np.argsort(schedule.begin[chosen], kind="stable")]
    before, after = order[:-1], order[1:]
    other = schedule.stream[before] != schedule.stream[after]
    return _Switches(before[other], after[other])


def _reasons(recording: RecordingData, schedule: Schedule, switches: _Switches) -> np.ndarray:
    """Return why the second activity of each pair did not begin during the first."""
    before, after = switches.before, switches.after
    reasons = np.full(len(before), _UNKNOWN)
    reasons[_waited_by_default(recording, schedule, switches)] = _DEFAULT
    reasons[_waited_for_event(recording, schedule, switches)] = _EVENTS
    launched = schedule.call[after] >= 0
    late = launched & (schedule.launch_begin()[after] >= schedule.end[before])
    reasons[late] = _HOST
    for why, waits in (
        (_SYNCHRONIZATIONS, _blocking(recording, copies=False)),
        (_COPIES, _blocking(recording, copies=True)),
    ):
        reasons[late & (_blocked(recording, schedule, switches, waits))] = why
    reasons[~_would_fit(recording, schedule, switches)] = _FULL
    return reasons


def _blocking(recording: RecordingData, *, copies: bool) -> np.ndarray:
    """Return the rows of ``host_waits`` that are copies, or synchronizations."""
    kinds = codes(derived(recording)["host_waits"]["kind"], _WAITS)
    rows: np.ndarray = np.flatnonzero((kinds >= _WAITS.index("memcpy")) == copies)
    return rows


def _blocked(
    recording: RecordingData, schedule: Schedule, switches: _Switches, waits: np.ndarray
) -> np.ndarray:
    """Return whether the launching thread waited for most of the first activity."""
    table = derived(recording)["host_waits"]
    threads, begin, end = (plain(table[name])[waits] for name in ("thread", "time", "end"))
    before = switches.before
    known = plain(recording.tables["api_calls"]["thread"])
    launching = np.append(known, 0)[schedule.call[switches.after]]  # -1: unknown
    blocked = np.zeros(len(before), np.int64)
    for thread in np.unique(threads):
        of_thread = threads == thread
        rows = np.flatnonzero(launching == thread)
        blocked[rows] = Intervals(begin[of_thread], end[of_thread]).within(
            schedule.begin[before[rows]], schedule.end[before[rows]]
        )
    most: np.ndarray = 2 * blocked >= np.maximum(schedule.duration[before], 1)
    return most


def _waited_for_event(
    recording: RecordingData, schedule: Schedule, switches: _Switches
) -> np.ndarray:
    waits = derived(recording)["stream_waits"]
    recorded, waiting, resumed = (
        plain(waits[name]) for name in ("recorded_stream", "waiting_stream", "resumed_time")
    )
    found = np.zeros(len(switches.after), bool)
    for one, other in np.unique(np.stack([recorded, waiting], axis=1), axis=0).tolist():
        times = resumed[(recorded == one) & (waiting == other)]
        of_pair = schedule.stream[switches.before] == one
        of_pair &= schedule.stream[switches.after] == other
        found |= of_pair & np.isin(schedule.begin[switches.after], times)
    return found


def _waited_by_default(
    recording: RecordingData, schedule: Schedule, switches: _Switches
) -> np.ndarray:
    streams = recording.tables["streams"]
    kinds, ids = codes(streams["kind"], _STREAM_KINDS), plain(streams["id"])
    default = ids[kinds == _STREAM_KINDS.index("default")]
    blocking = ids[kinds == _STREAM_KINDS.index("blocking")]
    before, after = schedule.stream[switches.before], schedule.stream[switches.after]
    found: np.ndarray = np.isin(before, default) & np.isin(after, blocking)
    found |= np.isin(before, blocking) & np.isin(after, default)
    return found


def _would_fit(recording: RecordingData, schedule: Schedule, switches: _Switches) -> np.ndarray:
    before, after = switches.before, switches.after
    directions = codes(recording.tables["activities"]["copy_kind"], _COPY_KINDS)[schedule.rows]
    one, other = schedule.kind[before] == COPY, schedule.kind[after] == COPY
    fits = (one & other) & (directions[before] != directions[after])
    fits |= (one != other) & np.isin(schedule.kind[np.where(one, after, before)], [KERNEL])
    fits |= schedule.fit(before, after)
    found: np.ndarray = fits
    return found


def _finding(schedule: Schedule, streams: ApartStreams) -> Finding:
    recording, device = schedule.recording, streams.device
    switches, why = streams.switches, streams.why
    before, after = switches.before, switches.after
    shorter = np.minimum(schedule.duration[before], schedule.duration[after])
    rows = schedule.rows[before[np.argsort(-shorter, kind="stable")[:_MOST_ROWS]]]
    lines = longest_lines(
        recording, stacks_of(recording.tables, schedule.call[before]), schedule.duration[before]
    )
    change = _change_of(recording, schedule, switches, why)
    return Finding(
        rule="R44",
        title=f"{streams.names} never work at the same time: {_WHY[why]}.",
        reason=(
            f"{format_counted(len(before), 'time', 'times')} one stream begins after another has "
            f"ended, although both activities would fit on the GPU; they could overlap for "
            f"{format_duration(int(shorter.sum()))} of {format_duration(device.busy_ns)}."
        ),
        change=_CHANGE[why],
        certainty="possible",
        device=device.device,
        saved_ns=schedule.saved_alone(change),
        schedule=change,
        lines=lines,
        evidence=Evidence(
            "activities",
            tuple(np.sort(rows).tolist()),
            (int(schedule.begin[before].min()), int(schedule.end[after].max())),
        ),
    )


def _names(recording: RecordingData, streams: Sequence[int]) -> str:
    known = stream_names(recording)
    names = [f"`{known.get(each) or f'stream {each}'}`" for each in streams]
    return f"The streams {', '.join(names[:-1])} and {names[-1]}"


def _change_of(
    recording: RecordingData, schedule: Schedule, switches: _Switches, why: int
) -> ScheduleChange:
    """Return the schedule without the reason; nothing if the host launches late."""
    if why == _HOST:
        return ScheduleChange()
    rows = _blocking(recording, copies=why == _COPIES)
    table = derived(recording)["host_waits"]
    begin, end, calls = (plain(table[name])[rows] for name in ("time", "end", "call"))
    works = Intervals(schedule.begin[switches.before], schedule.end[switches.before])
    removed = np.zeros(recording.tables["api_calls"].num_rows, bool)
    removed[calls[(works.within(begin, end) > 0) & (calls >= 0)]] = True
    return ScheduleChange(without_wait=removed)
