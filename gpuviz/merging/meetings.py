"""What collectives say about the clocks of two hosts.

A rank cannot finish a collective that needs the data of another before that one has begun. So the
end on one host is after the begin on the other, which bounds the difference of their clocks.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.analysis.collective_kernels import collective_kernels
from gpuviz.data.columns import codes, plain
from gpuviz.data.tables import DICTIONARIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from gpuviz.data.recording_data import RecordingData

    Key = tuple[int, int, int]

_FUNCTIONS = DICTIONARIES["collectives", "function"]
_OF_ALL = [
    _FUNCTIONS.index(name) for name in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
]
_FROM_ROOT = [_FUNCTIONS.index(name) for name in ("broadcast", "scatter")]
_TO_ROOT = [_FUNCTIONS.index(name) for name in ("reduce", "gather")]
_MATCHED = [*_OF_ALL, *_FROM_ROOT, *_TO_ROOT]
# The time that CUPTI gives for a begin or an end is off by less than half of this.
_UNCERTAINTY_NS = 10_000


@dataclass(frozen=True, slots=True)
class Meetings:
    """Bounds of what to add to a host's clock to get that of another, one for each collective.

    Attributes:
        begin: When it began on the host, which ``most`` holds for, in ns.
        end: When it ended on the host, which ``least`` holds for, in ns.
        least: The lower bounds in ns; infinite for none.
        most: The upper bounds in ns.
    """

    begin: "NDArray[Any]"
    end: "NDArray[Any]"
    least: "NDArray[Any]"
    most: "NDArray[Any]"


@dataclass(frozen=True, slots=True)
class _Call:
    """The part of a rank in a collective; times are of its host's monotonic clock."""

    rank: int
    root: int
    begin: int
    end: int


def meetings(own: "Sequence[RecordingData]", others: "Sequence[RecordingData]") -> Meetings:
    """Return what the collectives of two hosts say about their clocks.

    Args:
        own: The recordings of a host.
        others: Those of the other.
    """
    rows = []
    of_others = _calls(others)
    for key, calls in _calls(own).items():
        row = _bounds(key, calls, of_others.get(key, []))
        if row is not None:
            rows.append(row)
    begin, end, least, most = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Meetings(
        np.array(begin, np.int64),
        np.array(end, np.int64),
        np.array(least, np.float64),
        np.array(most, np.float64),
    )


def _bounds(
    key: "Key", own: "list[_Call]", others: "list[_Call]"
) -> tuple[int, int, float, float] | None:
    function = key[1]
    ends = [
        (each.end, other.begin) for each in own for other in others if _needs(function, each, other)
    ]
    begins = [
        (each.begin, other.end) for each in own for other in others if _needs(function, other, each)
    ]
    if not (ends or begins):
        return None
    end, least = max(ends, key=lambda pair: pair[1] - pair[0], default=(0, 0))
    begin, most = min(begins, key=lambda pair: pair[1] - pair[0], default=(0, 0))
    return (
        begin if begins else end,
        end if ends else begin,
        least - end - _UNCERTAINTY_NS if ends else -float("inf"),
        most - begin + _UNCERTAINTY_NS if begins else float("inf"),
    )


def _needs(function: int, one: _Call, other: _Call) -> bool:
    """Return whether a rank can finish only after another has begun."""
    if function in _FROM_ROOT:
        return other.rank == other.root
    return function in _OF_ALL or one.rank == one.root


def _calls(recordings: "Iterable[RecordingData]") -> "dict[Key, list[_Call]]":
    """Return the calls of each collective, without those that a rank has more than once."""
    found: dict[Key, list[_Call]] = {}
    repeated = set()
    for recording in recordings:
        for key, call in _calls_of(recording):
            calls = found.setdefault(key, [])
            if any(each.rank == call.rank for each in calls):
                repeated.add(key)
            calls.append(call)
    return {key: calls for key, calls in found.items() if key not in repeated}


def _calls_of(recording: "RecordingData") -> "list[tuple[Key, _Call]]":
    table = recording.tables["collectives"]
    if not table.num_rows:
        return []
    function = codes(table["function"], _FUNCTIONS)
    kernel = collective_kernels(recording.tables)
    rows = np.flatnonzero(np.isin(function, _MATCHED) & (kernel >= 0))
    activities = recording.tables["activities"]
    start = recording.manifest.start_monotonic_ns
    columns = [
        *(plain(table[name])[rows].tolist() for name in ("communicator", "sequence")),
        *(plain(table[name])[rows].tolist() for name in ("rank", "peer")),
        *((plain(activities[name])[kernel[rows]] + start).tolist() for name in ("time", "end")),
    ]
    return [
        ((communicator, code, sequence), _Call(rank, root, begin, end))
        for code, communicator, sequence, rank, root, begin, end in zip(
            function[rows].tolist(), *columns, strict=True
        )
    ]
