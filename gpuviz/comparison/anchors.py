"""Moments of two recordings that correspond to each other."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gpuviz.conclusions.store import known_iterations
from gpuviz.data.columns import codes, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.strings import texts
from gpuviz.data.tables import DICTIONARIES

By = Literal["ranges", "cells", "iterations", "beginning"]
Times = tuple[int, int]
_Intervals = dict[str, list[Times]]

_KINDS = DICTIONARIES["ranges", "kind"]
# More would not be told apart on a screen.
_MOST = 1000


@dataclass(frozen=True, slots=True)
class Anchors:
    """Moments that correspond to each other, in order of both times, which all differ.

    Attributes:
        by: What they begin and end; ``beginning`` if the recordings have nothing in common by which
            they could be aligned.
        times: Pairs of ns since the start of the recordings, before and after.
    """

    by: By
    times: tuple[Times, ...]


def anchors(before: RecordingData, after: RecordingData) -> Anchors:
    """Return the moments that correspond to each other in two recordings.

    They are the begins and ends of ranges of the same name (of several, the first corresponds to
    the first), else of notebook cells in their order, else of iterations in theirs, else the
    beginnings of the recordings. Those that would lead back in time are left out.
    """
    for by, of in _SOURCES.items():
        times = _in_order(_pairs(of(before), of(after)))
        if times:
            return Anchors(by, times)
    return Anchors("beginning", ((0, 0),))


def _pairs(before: _Intervals, after: _Intervals) -> list[Times]:
    """Return the begins and ends of intervals with the same name and number."""
    return [
        moment
        for name in before.keys() & after.keys()
        for ours, theirs in zip(before[name], after[name], strict=False)
        for moment in zip(ours, theirs, strict=True)
    ]


def _ranges(recording: RecordingData) -> _Intervals:
    return _by_name(_of_kinds(recording, "range", "nvtx"))


def _cells(recording: RecordingData) -> _Intervals:
    # Their numbers count all runs of the notebook.
    return _by_name(("", times) for _, times in _of_kinds(recording, "cell"))


def _iterations(recording: RecordingData) -> _Intervals:
    if not recording.devices:
        return {}
    table = known_iterations(recording, recording.devices[0])
    starts, ends = table["start"].to_pylist(), table["end"].to_pylist()
    return _by_name(("", times) for times in zip(starts, ends, strict=True))


def _by_name(intervals: Iterable[tuple[str, Times]]) -> _Intervals:
    found: _Intervals = {}
    for name, times in sorted(intervals, key=lambda each: each[1]):
        found.setdefault(name, []).append(times)
    return found


def _of_kinds(recording: RecordingData, *kinds: str) -> Iterator[tuple[str, Times]]:
    """Yield names and times of the ranges of some kinds that have ended."""
    table = recording.tables["ranges"]
    begin, end = plain(table["time"]), plain(table["end"])
    chosen = np.isin(codes(table["kind"], _KINDS), [_KINDS.index(each) for each in kinds])
    rows = np.flatnonzero(chosen & (end >= begin))
    names = texts(recording.tables, plain(table["name"])[rows])
    times = zip(begin[rows].tolist(), end[rows].tolist(), strict=True)
    yield from zip(names, times, strict=True)


def _in_order(times: list[Times]) -> tuple[Times, ...]:
    """Return as many pairs as possible that increase on both sides, at most `_MOST`."""
    ends: list[int] = []  # the lowest end of an increasing sequence of each length
    chosen: list[int] = []  # the pairs at these ends
    previous: list[int] = []
    # Of pairs with the same time before, only one can be in a sequence.
    ordered = sorted(set(times), key=lambda pair: (pair[0], -pair[1]))
    for number, (_, after) in enumerate(ordered):
        place = bisect_left(ends, after)
        previous.append(chosen[place - 1] if place else -1)
        ends[place : place + 1] = [after]
        chosen[place : place + 1] = [number]
    found = []
    number = chosen[-1] if chosen else -1
    while number >= 0:
        found.append(ordered[number])
        number = previous[number]
    found.reverse()
    step = max(-(-len(found) // _MOST), 1)
    return tuple(dict.fromkeys([*found[::step], *found[-1:]]))


_SOURCES: dict[By, Callable[[RecordingData], _Intervals]] = {
    "ranges": _ranges,
    "cells": _cells,
    "iterations": _iterations,
}
