"""R43: the GPU is idle while the host computes between two calls."""

from collections.abc import Iterator

import numpy as np

from gpuviz.advice.evidence import Evidence, Line
from gpuviz.advice.finding import Finding
from gpuviz.advice.host.host_gaps import HostGaps, host_gaps
from gpuviz.advice.host.host_places import HostPlace
from gpuviz.advice.host.places_between_calls import places_between_calls
from gpuviz.advice.host.sampled_places import sampled_places
from gpuviz.advice.host.waiting_threads import with_waiting
from gpuviz.advice.replay.schedule import Schedule, ScheduleChange
from gpuviz.advice.rule import Rule
from gpuviz.analysis.derived_tables import derived
from gpuviz.analysis.host_work import is_sampled
from gpuviz.analysis.intervals import Intervals
from gpuviz.analysis.steady_state import steady_of
from gpuviz.data.columns import plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.quantities import format_counted, format_duration, format_share

RULES = (
    Rule(
        "R43",
        "a GPU starved by the host",
        "at least three times, and in 10 % of the rounds of that step of the program, two calls of "
        "a thread are 250 µs or more apart while the GPU is idle; time between cells, and before "
        "the first launch of a kernel or while its library starts, does not count; samples of the "
        "host name the line that ran, and without them the calls and allocations around the gap "
        "narrow the lines down; lines that run in the same gaps are one finding, with the call "
        "that all of them are in; while a thread of a library has nothing to launch, the line is "
        "that of the thread that hands it work; a wait in which another thread launches work does "
        "not count, nor does the Python code of a library that launches work, such as PyTorch, if "
        "it takes less than 2 ms each time or is in less than a tenth of the runs of its line, nor "
        "time in less than a tenth of the runs of a line that then launches work itself; "
        "time in a library function that is as long as a copy to pinned memory of the array that "
        "it then uploads is called such a copy",
        "do the work on the GPU, or while it works",
    ),
)

# Of one gap it is not known whether it is part of the computation, or of its preparation.
_LEAST_TIMES = 3
_MOST_PLACES = 8
_MOST_ROWS = 1000
_MOST_LINES = 8


def find(schedule: Schedule) -> Iterator[Finding]:
    """Find places of the program where the host computes while the GPU has nothing to do.

    Trigger: at least three times, two calls of a thread are at least 250 µs apart, more than a
    launch costs, and the device is idle meanwhile with the cause ``host`` (see
    `gpuviz.analysis.overlap.LaneOverlap`), in total for at least 1 % of the recording, and so in a
    tenth of the rounds of that step: pauses of Python and of other threads are rarer. The places
    are the lines that were sampled for at least 250 µs of a gap, or for the longest part of it,
    each with the time of its own samples; gaps without samples do not count. Lines that work in the
    same gaps are one place, with those in the innermost call that contains them but not the
    launches around the gaps; see `gpuviz.advice.host.work_groups`. A wait in which another thread
    launches work, such as a backward pass, does not count. In recordings without any, the place is
    where the call stacks of the calls before and after differ, or those of the allocations between
    them: of the parts of a gap, the longest. Time between notebook cells does not count, nor do
    gaps before the first launch of a kernel, which is compiled or loaded then, as is its library.
    The first gap of a place does not count if it is twice as long as any later one, for the same
    reason.

    Saving: the recording's `Schedule`, replayed without this time, also of threads that waited
    meanwhile: see `gpuviz.advice.host.waiting_threads`. The work has to be done
    somewhere, so that it is ``possible``.
    """
    recording = schedule.recording
    if not recording.tables["api_calls"].num_rows:
        return
    for device in recording.devices:
        gaps = host_gaps(recording, device)
        if is_sampled(recording):
            places = sampled_places(recording, gaps, device)
        else:
            places = places_between_calls(recording, gaps)
        for place in sorted(places, key=lambda place: -place.idle_ns)[:_MOST_PLACES]:
            enough = place.idle_ns >= schedule.relevant_ns
            if enough and len(place.calls) >= _LEAST_TIMES:
                yield _finding(recording, schedule, gaps, place, device)


def _finding(
    recording: RecordingData,
    schedule: Schedule,
    gaps: HostGaps,
    place: HostPlace,
    device: int,
) -> Finding:
    shorter = np.zeros(len(gaps.length), np.int64)
    shorter[place.calls] = place.host_ns
    host_ns = int(place.host_ns.sum())
    change = ScheduleChange(shorter_gap=with_waiting(recording, gaps, shorter), at_most_ns=host_ns)
    times = plain(recording.tables["api_calls"]["time"])[place.calls]
    is_of_warm_up = int(times.max()) <= steady_of(recording, device).from_ns
    whole = schedule.covered_ns if is_of_warm_up else schedule.working_ns
    idle = format_duration(place.idle_ns)
    rows = _idle_rows(recording, device, times - gaps.length[place.calls], times)
    return Finding(
        rule="R43",
        title=(
            f"The GPU is idle for {idle}, "
            f"{format_share(min(place.idle_ns / max(whole, 1), 1))} of the time, while the "
            f"host {place.text}."
        ),
        reason=(
            f"{format_counted(len(place.calls), 'time', 'times')} the host spends "
            f"{format_duration(host_ns // len(place.calls))} on average between two CUDA calls "
            f"there, {format_duration(host_ns)} in total, and has launched nothing that the GPU "
            "could do meanwhile."
        ),
        change=f"{place.advice} The saving is that of work that takes no time.",
        certainty="possible",
        device=device,
        saved_ns=schedule.saved_alone(change),
        schedule=change,
        lines=_lines(place, idle),
        evidence=Evidence(
            "idle_gaps", rows, (int((times - gaps.length[place.calls]).min()), int(times.max()))
        ),
    )


def _lines(place: HostPlace, idle: str) -> tuple[Line, ...]:
    if place.lines:
        call = (Line(place.first.site, place.first.source, idle, place.stacks[0]),)
        is_one = len(place.lines) == 1
        return call if is_one else (call if place.is_call else ()) + place.lines[:_MOST_LINES]
    ends = (place.first,) if place.first == place.last else (place.first, place.last)
    return tuple(
        Line(each.site, each.source, idle, stack)
        for each, stack in zip(ends, place.stacks, strict=False)
    )


def _idle_rows(
    recording: RecordingData, device: int, begin: np.ndarray, end: np.ndarray
) -> tuple[int, ...]:
    """Return the longest idle gaps of a device within some times."""
    table = derived(recording)["idle_gaps"]
    of_device = (plain(table["device"]) == device) & (plain(table["stream"]) == 0)
    rows = np.flatnonzero(of_device)
    inside = Intervals(begin, end).within(plain(table["time"])[rows], plain(table["end"])[rows])
    longest = rows[np.argsort(-inside, kind="stable")[:_MOST_ROWS]]
    longest = longest[np.sort(-inside, kind="stable")[:_MOST_ROWS] < 0]
    return tuple(np.sort(longest).tolist())
