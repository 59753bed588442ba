"""Lines of the program in findings."""

import numpy as np

from gpuviz.advice.evidence import Line
from gpuviz.advice.finding import named
from gpuviz.analysis.grouping import numbered
from gpuviz.analysis.launches import CallSites
from gpuviz.data.call_stacks import NO_STACK, Frame
from gpuviz.data.recording_data import RecordingData
from gpuviz.quantities import format_duration

_MOST_LINES = 5


def line_numbers(recording: RecordingData, stacks: np.ndarray) -> np.ndarray:
    """Return a number for each call stack, equal for the same line of the program."""
    return CallSites(recording, stacks).numbers("line")


def longest_lines(
    recording: RecordingData, stacks: np.ndarray, time_ns: np.ndarray
) -> tuple[Line, ...]:
    """Return the lines with the most time, with their sums, longest first."""
    if not len(stacks):
        return ()
    numbers, first = numbered(line_numbers(recording, stacks))
    sums = np.bincount(numbers, weights=time_ns).astype(np.int64)
    most = [group for group in np.argsort(-sums, kind="stable")[:_MOST_LINES] if sums[group] > 0]
    return tuple(
        line_of(recording, int(stacks[first[group]]), format_duration(int(sums[group])))
        for group in most
    )


def line_of(recording: RecordingData, stack: int, amount: str) -> Line:
    """Return the line of the program in a call stack."""
    site, source = recording.call_stacks.call_site(stack)
    return Line(site, source, amount, stack)


def text_of(line: Line | Frame) -> str:
    """Return a line for a sentence: its text if known, else where it is."""
    return named("" if line.site == NO_STACK else line.site, line.source.strip())


def between(recording: RecordingData, before: int, after: int) -> tuple[Frame, Frame] | None:
    """Return the lines of the innermost common function at which two call stacks differ.

    Equal lines mean that both calls come from one line. None if a stack is unknown, or if they
    begin in different functions.
    """
    stacks = [_own_frames(recording, stack)[::-1] for stack in (before, after)]
    if not all(stacks):
        return None
    common = None
    for first, second in zip(*stacks, strict=False):
        if (first.name, first.filename) != (second.name, second.filename):
            return common
        common = first, second
        if first.line != second.line:
            return common
    return common


def _own_frames(recording: RecordingData, stack: int) -> list[Frame]:
    stacks = recording.call_stacks
    return list(stacks.user_frames(stack)) or stacks.frames(stack)
