"""R21: many small copies, in a row or one for each launch, which one copy could replace."""

from collections.abc import Iterator

import numpy as np

from gpuviz.advice.evidence import Evidence
from gpuviz.advice.finding import Finding
from gpuviz.advice.host.host_gaps import host_gaps
from gpuviz.advice.host_lines import line_of, text_of
from gpuviz.advice.replay.schedule import Schedule, ScheduleChange
from gpuviz.advice.replay.trace import COPY
from gpuviz.advice.rule import Rule
from gpuviz.advice.rules.r18_scalars_read_in_a_loop import scalars
from gpuviz.advice.source.libraries import conversion_to_host
from gpuviz.advice.waits.runs import Runs, merged, runs_of
from gpuviz.analysis.launches import stacks_of
from gpuviz.analysis.preparation import is_of_loads
from gpuviz.data.columns import codes, plain
from gpuviz.data.tables import DICTIONARIES
from gpuviz.quantities import format_bytes, format_count, format_duration

RULES = (
    Rule(
        "R21",
        "many small copies in a row",
        "at least eight copies below 64 KiB of one line follow each other without other work of "
        "the GPU, do not come with code that the line loads, and are not reads that R18 reports; "
        "or at least 100 such copies to the GPU of one line, with launches between them, take a "
        "tenth of the time, and the host reads next to nothing from the GPU meanwhile",
        "copy the whole array once",
    ),
)

_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
_DIRECTIONS = {
    _COPY_KINDS.index("host_to_device"): "to the GPU",
    _COPY_KINDS.index("device_to_host"): "to the host",
}
# A copy of this size takes a few µs, less than its call and its start.
_LARGEST = 64 << 10
_MOST_ROWS = 1000
# Of a loop that uploads something for each launch.
_LEAST_UPLOADS = 100
# Reads of the host for each upload, which may depend on them.
_MOST_READS = 0.02
_LEAST_SHARE = 0.1
# What Python needs for a part of an array of CuPy (4 to 6 µs on an H200's host).
_PART_NS = 5_000
_TO_DEVICE, _TO_HOST = _DIRECTIONS
# Each line costs a replay of the schedule.
_MOST_LINES = 8


def find(schedule: Schedule) -> Iterator[Finding]:
    """Find small copies that follow each other without other work of the GPU between them.

    Trigger: at least eight copies in one direction of less than 64 KiB each, by one line and
    thread, less than 250 µs apart on the host; at least 1 % of the recording is saved.

    Saving: the recording's `Schedule`, replayed with one copy for each row: the others take only
    what they take longer than the shortest one, their calls and those between them take no time.
    The program may compute the values one after the other: ``possible``.

    Copies to the GPU with launches between them are a finding, too: at least 100 of one line, which
    save a tenth of the program's time, and meanwhile at most one copy to the host for 50 of them,
    as the host may compute the values from what it reads. That saving is without the copies and
    their calls, and without the Python before these but what a part of an array takes instead.
    """
    recording = schedule.recording
    if not recording.tables["api_calls"].num_rows:
        return
    activities = recording.tables["activities"]
    sizes = plain(activities["bytes"])[schedule.rows]
    directions = codes(activities["copy_kind"], _COPY_KINDS)[schedule.rows]
    is_tiny = (schedule.kind == COPY) & (sizes < _LARGEST)
    is_tiny &= np.isin(directions, list(_DIRECTIONS))
    # Code that is loaded brings constants with it.
    is_tiny &= (schedule.call < 0) | ~is_of_loads(recording)[schedule.call]
    for device in recording.devices:
        for runs in runs_of(schedule, device, is_tiny, directions):
            yield from _finding(schedule, runs)
            is_tiny[np.append(runs.first, runs.followers)] = False
    yield from _one_by_one(schedule, is_tiny & (directions == _TO_DEVICE), directions == _TO_HOST)


def _one_by_one(schedule: Schedule, uploads: np.ndarray, reads: np.ndarray) -> Iterator[Finding]:
    """Yield the lines that copy something small to the GPU for each launch.

    Args:
        schedule: The schedule.
        uploads: Whether each work is a small copy to the GPU, and not one of many in a row.
        reads: Whether each work is a copy to the host.
    """
    work = np.flatnonzero(uploads & (schedule.call >= 0))
    work = work[stacks_of(schedule.recording.tables, schedule.call[work]) != 0]
    _, number, count = np.unique(schedule.lines[work], return_inverse=True, return_counts=True)
    read = np.sort(schedule.begin[reads & (schedule.kind == COPY)])
    for each in np.argsort(-count, kind="stable")[:_MOST_LINES].tolist():
        of_line = work[number == each]
        if len(of_line) < _LEAST_UPLOADS:
            continue
        first, last = schedule.begin[of_line].min(), schedule.begin[of_line].max()
        between = np.searchsorted(read, last) - np.searchsorted(read, first)
        if between <= _MOST_READS * len(of_line):
            yield from _finding_of_uploads(schedule, of_line)


def _finding_of_uploads(schedule: Schedule, copies: np.ndarray) -> Iterator[Finding]:
    recording, calls = schedule.recording, schedule.call[copies]
    device = int(schedule.device[copies[0]])
    gaps = host_gaps(recording, device)
    removed = np.zeros(len(schedule.called), bool)
    removed[calls] = True
    duration = schedule.duration.copy()
    duration[copies] = 0
    change = ScheduleChange(
        duration=duration,
        without_wait=removed,
        shorter_gap=np.where(removed & gaps.is_short, np.maximum(gaps.length - _PART_NS, 0), 0),
        instant=removed,
    )
    saved_ns = schedule.saved_alone(change)
    if saved_ns < _LEAST_SHARE * schedule.working_ns:
        return
    copied = int(plain(recording.tables["activities"]["bytes"])[schedule.rows[copies]].sum())
    spent_ns = int((schedule.returned - schedule.called)[calls].sum())
    spent_ns += int(np.where(gaps.is_short[calls], gaps.length[calls], 0).sum())
    line = line_of(
        recording, int(stacks_of(recording.tables, calls[:1])[0]), format_duration(spent_ns)
    )
    yield Finding(
        rule="R21",
        title=(
            f"{text_of(line)} copies {format_bytes(copied)} to the GPU in "
            f"{format_count(len(copies))} pieces, one after the other between launches."
        ),
        reason=(
            f"These calls and what Python does before them take {format_duration(spent_ns)} of the "
            "host, which launches nothing meanwhile. It reads next to nothing from the GPU between "
            "them, so that the values may be known before."
        ),
        change=(
            "Copy all of them at once, before the loop, and pass parts of that array; or pass "
            "single numbers to the kernel as they are, without an array."
        ),
        certainty="possible",
        device=device,
        saved_ns=saved_ns,
        schedule=change,
        lines=(line,),
        evidence=schedule.evidence(copies),
    )


def _finding(schedule: Schedule, runs: Runs) -> Iterator[Finding]:
    recording = schedule.recording
    calls = schedule.call[runs.first]
    if any(np.isin(calls, each.calls).any() for each in scalars(schedule)):
        return
    change = merged(schedule, runs, int(schedule.duration[runs.followers].min()))
    saved_ns = schedule.saved_alone(change)
    if saved_ns < schedule.relevant_ns:
        return
    work = np.append(runs.first, runs.followers)
    copied = int(plain(recording.tables["activities"]["bytes"])[schedule.rows[work]].sum())
    stack = int(stacks_of(recording.tables, schedule.call[runs.first[:1]])[0])
    spent = format_duration(runs.spent_ns(schedule))
    line = line_of(recording, stack, spent)
    whole = conversion_to_host(recording)
    yield Finding(
        rule="R21",
        title=(
            f"{text_of(line)} copies {format_bytes(copied)} {_DIRECTIONS[runs.kind]} in "
            f"{format_count(len(work))} pieces."
        ),
        reason=(
            "The pieces follow each other without other work of the GPU between them, and take "
            f"{spent}: each costs a call and a start, which take longer than the copy."
        ),
        change=(
            f"Copy all of it at once: convert the whole array ({whole}) instead of its elements, "
            "or collect small arrays in one before they are copied."
        ),
        certainty="possible",
        device=runs.device,
        saved_ns=saved_ns,
        schedule=change,
        lines=(line,),
        evidence=Evidence(
            "activities",
            tuple(np.sort(schedule.rows[runs.followers[:_MOST_ROWS]]).tolist()),
            (int(schedule.begin[runs.first].min()), int(schedule.end[runs.last].max())),
        ),
    )
