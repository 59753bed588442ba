"""R21: many small copies in a row, which one copy could replace."""

from typing import TYPE_CHECKING

import numpy as np

from gpuviz.advice.finding import Evidence, Finding
from gpuviz.advice.host_lines import line_of, text_of
from gpuviz.advice.libraries import conversion_to_host
from gpuviz.advice.rule import Rule
from gpuviz.advice.rules.r18_scalars_read_in_a_loop import scalars
from gpuviz.advice.runs import Runs, merged, runs_of
from gpuviz.advice.trace import COPY
from gpuviz.analysis.launches import stacks_of
from gpuviz.analysis.preparation import is_of_loads
from gpuviz.data.columns import codes, plain
from gpuviz.data.tables import DICTIONARIES
from gpuviz.quantities import format_bytes, format_count, format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuviz.advice.schedule import Schedule

RULES = (
    Rule(
        "R21",
        "many small copies in a row",
        "at least eight copies below 64 KiB of one line follow each other without other work of "
        "the GPU, do not come with code that the line loads, and are not reads that R18 reports",
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


def find(schedule: "Schedule") -> "Iterator[Finding]":
    """Find small copies that follow each other without other work of the GPU between them.

    Trigger: at least eight copies in one direction of less than 64 KiB each, by one line and
    thread, less than 250 µs apart on the host; at least 1 % of the recording is saved.

    Saving: the recording's `Schedule`, replayed with one copy for each row: the others take only
    what they take longer than the shortest one, their calls and those between them take no time.
    The program may compute the values one after the other: ``possible``.
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


def _finding(schedule: "Schedule", runs: Runs) -> "Iterator[Finding]":
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
