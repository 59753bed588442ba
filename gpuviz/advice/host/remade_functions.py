"""Functions and kernels of CuPy that the program makes again and again, and what that costs it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuviz.advice.host.host_gaps import host_gaps
from gpuviz.advice.source.made_anew import MadeAnew, made_anew
from gpuviz.analysis.grouping import numbered
from gpuviz.analysis.intervals import Intervals
from gpuviz.analysis.launches import calls_of, stacks_of, user_frames
from gpuviz.data.call_stacks import Frame
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.strings import are_named
from gpuviz.data.tables import DICTIONARIES

_KINDS = DICTIONARIES["activities", "kind"]
# Kernels that the program names, not CuPy or a library.
_NAMED = re.compile(r"(?!cupyx?_)\w+$")
_FEWEST = 5
_FEWEST_SAMPLED = 3
# What is left: a launch by CuPy takes 10 to 30 µs of Python (measured on an H200's host).
_LAUNCH_NS = 30_000


@dataclass(frozen=True, eq=False, slots=True)
class RemadeFunction:
    """A function or kernel that a line of the program gets anew each time that it calls it.

    Attributes:
        made: What is made, and where.
        stack: A call stack of the line.
        count: How often the line launches its kernel.
        calls: The launches that it delays, rows of ``api_calls``.
        host_ns: By how much it delays each.
        stacks: The call stacks of samples in which the host makes it.
    """

    made: MadeAnew
    stack: int
    count: int
    calls: np.ndarray
    host_ns: np.ndarray
    stacks: frozenset[int]


@Once
def remade_functions(recording: RecordingData) -> tuple[RemadeFunction, ...]:
    """Return the functions and kernels of CuPy that are made before each call of a line.

    A line launches a kernel of the program at least five times after the thread made no call for
    longer than a launch takes, and its text shows that the function or kernel is made anew each
    time. In at least three of these times the host was sampled in it. They count as far as the
    samples are of it, but for what a launch takes.
    """
    if not recording.devices or not recording.tables["host_samples"].num_rows:
        return ()
    return tuple(_remade(recording))


def makes_again(recording: RecordingData, stack: int) -> bool:
    """Return whether the host makes a function or kernel again in the call stack of a sample."""
    return any(stack in each.stacks for each in remade_functions(recording))


def _remade(recording: RecordingData) -> Iterator[RemadeFunction]:
    tables = recording.tables
    gaps, calls, frames, names = _launches(recording)
    groups, first = numbered(frames, names)
    for number, at in enumerate(first.tolist()):
        of_group = calls[groups == number]
        late = of_group[1:][gaps.is_long[of_group[1:]]]
        if len(late) < _FEWEST or not frames[at]:
            continue
        place = tables["frames"]["id"].index(int(frames[at])).as_py()
        made = made_anew(tables["frames"].slice(place, 1).to_pylist()[0])
        if made is None:
            continue
        stack = int(stacks_of(tables, of_group[:1])[0])
        stacks, share = _sampled(recording, made, stack, late, gaps.length[late])
        if share > 0:
            host_ns = gaps.length[late] * share - _LAUNCH_NS
            host_ns = np.maximum(host_ns, 0).astype(np.int64)
            yield RemadeFunction(made, stack, len(of_group), late, host_ns, stacks)


def _launches(recording: RecordingData) -> tuple[Any, ...]:
    """Return the gaps between calls, and the launches that the program's lines make themselves.

    Returns:
        The gaps; the launches of kernels that the program names, as rows of ``api_calls`` in order
        of time; the line of each, and a number for its kernel.
    """
    tables = recording.tables
    activities = tables["activities"]
    names = plain(activities["name"])
    chosen = codes(activities["kind"], _KINDS) == _KINDS.index("kernel")
    chosen &= are_named(tables, names, _NAMED.match)
    calls = calls_of(tables, plain(activities["correlation"])[chosen])
    names, calls = names[chosen][calls >= 0], calls[calls >= 0]
    stacks = stacks_of(tables, calls)
    numbers, first = numbered(stacks)
    known = map(recording.call_stacks.frames, stacks[first].tolist())
    own = np.array([bool(each) and not each[0].is_installed for each in known], bool)[numbers]
    names, calls, stacks = names[own], calls[own], stacks[own]
    order = np.argsort(plain(tables["api_calls"]["time"])[calls], kind="stable")
    names, calls, stacks = names[order], calls[order], stacks[order]
    return host_gaps(recording, recording.devices[0]), calls, user_frames(tables, stacks), names


def _sampled(
    recording: RecordingData,
    made: MadeAnew,
    stack: int,
    calls: np.ndarray,
    length: np.ndarray,
) -> tuple[frozenset[int], float]:
    """Return the stacks of samples that make something, and their share of the time before calls.

    The share is 0 if there are too few of them.
    """
    samples, table = recording.tables["host_samples"], recording.tables["api_calls"]
    threads, begin, end, stacks = (
        plain(samples[name]) for name in ("thread", "time", "end", "stack")
    )
    line = recording.call_stacks.frames(stack)[0]
    known = distinct(stacks).tolist()
    frames = recording.call_stacks.frames
    making = {each for each in known if _is_made_in(frames(each), line, made)}
    is_making = np.isin(stacks, list(making))
    until, of_calls = plain(table["time"])[calls], plain(table["thread"])[calls]
    spent = np.zeros((2, len(calls)), np.int64)
    for thread in distinct(of_calls).tolist():
        own = of_calls == thread
        for row, chosen in enumerate((is_making, stacks != 0)):
            rows = np.flatnonzero(chosen & (threads == thread))
            spans = Intervals(begin[rows], end[rows])
            spent[row, own] = spans.within(until[own] - length[own], until[own])
    if np.count_nonzero(spent[0]) < _FEWEST_SAMPLED:
        return frozenset(), 0.0
    return frozenset(making), float(spent[0].sum() / max(spent[1].sum(), 1))


def _is_made_in(frames: list[Frame], line: Frame, made: MadeAnew) -> bool:
    """Return whether a sample is of the statements that make and call something.

    But not of a property that the line reads.
    """
    function = (line.filename, line.cell, line.name)
    for place, frame in enumerate(frames):
        if (frame.filename, frame.cell, frame.name) == function and made.has_line(frame.line):
            inner = [each.name for each in frames[:place] if not each.is_installed][-1:]
            return not any(each.rpartition(".")[2] in made.attributes for each in inner)
    return False
