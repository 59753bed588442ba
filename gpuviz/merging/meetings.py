"""What collectives say about the clocks of two hosts.

A rank cannot finish a collective that needs the data of another before that one has begun. So the
end on one host is after the begin on the other, which bounds the difference of their clocks.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from gpuviz.analysis.collective_kernels import collective_kernels
from gpuviz.data.columns import codes, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import DICTIONARIES

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

    begin: np.ndarray
    end: np.ndarray
    least: np.ndarray
    most: np.ndarray


@dataclass(frozen=True, slots=True)
class Collectives:
    """The collectives that processes of one host took part in, each once.

    Times are of the host's monotonic clock, in ns. Those of the ranks that are the root are unknown
    where ``has_root`` is false.

    Attributes:
        key: Communicator, function and sequence: what a collective has in common on all hosts.
        begin: The last begin of any rank.
        end: The first end of any rank.
        has_root: Whether a rank of these processes is the root.
        root_begin: The last begin of a rank that is the root.
        root_end: The first end of a rank that is the root.
    """

    key: tuple[np.ndarray, np.ndarray, np.ndarray]
    begin: np.ndarray
    end: np.ndarray
    has_root: np.ndarray
    root_begin: np.ndarray
    root_end: np.ndarray


def collectives(recordings: Iterable[RecordingData]) -> Collectives:
    """Return the collectives of a host, without those that a rank has more than once."""
    calls = [np.concatenate(each) for each in zip(*map(_calls, recordings), strict=True)]
    order = np.lexsort(calls[3::-1])
    *key, rank, root, begin, end = (each[order] for each in calls)
    is_first = _differs(key)
    is_twice = ~_differs([*key, rank])
    first = np.flatnonzero(is_first)
    if not len(first):
        return Collectives((key[0], key[1], key[2]), begin, end, is_first, begin, end)
    is_root = rank == root
    kept = ~np.logical_or.reduceat(is_twice, first)
    communicator, function, sequence = (each[first][kept] for each in key)
    return Collectives(
        (communicator, function, sequence),
        np.maximum.reduceat(begin, first)[kept],
        np.minimum.reduceat(end, first)[kept],
        np.logical_or.reduceat(is_root, first)[kept],
        np.maximum.reduceat(np.where(is_root, begin, np.iinfo(np.int64).min), first)[kept],
        np.minimum.reduceat(np.where(is_root, end, np.iinfo(np.int64).max), first)[kept],
    )


def meetings(own: Collectives, others: Collectives) -> Meetings:
    """Return what the collectives of two hosts say about their clocks.

    Args:
        own: Those of a host.
        others: Those of the other.
    """
    mine, theirs = _common(own.key, others.key)
    function = own.key[1][mine]
    from_root, to_root = np.isin(function, _FROM_ROOT), np.isin(function, _TO_ROOT)
    own_has_root, other_has_root = own.has_root[mine], others.has_root[theirs]
    # From a root, all need its data; to a root, only that needs data of others; else all of all.
    ends = np.where(from_root, other_has_root, ~to_root | own_has_root)
    begins = np.where(from_root, own_has_root, ~to_root | other_has_root)
    end = np.where(to_root, own.root_end[mine], own.end[mine])
    least = np.where(from_root, others.root_begin[theirs], others.begin[theirs]) - end
    begin = np.where(from_root, own.root_begin[mine], own.begin[mine])
    most = np.where(to_root, others.root_end[theirs], others.end[theirs]) - begin
    met = ends | begins
    return Meetings(
        np.where(begins, begin, end)[met],
        np.where(ends, end, begin)[met],
        np.where(ends, least - _UNCERTAINTY_NS, -np.inf)[met],
        np.where(begins, most + _UNCERTAINTY_NS, np.inf)[met],
    )


def _differs(columns: list[np.ndarray]) -> np.ndarray:
    """Return which rows differ from the one before."""
    found = np.ones(len(columns[0]), bool)
    found[1:] = np.logical_or.reduce([each[1:] != each[:-1] for each in columns])
    return found


def _common(
    one: tuple[np.ndarray, ...], other: tuple[np.ndarray, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of keys that both have; each has a key once."""
    both = [np.concatenate(each) for each in zip(one, other, strict=True)]
    order = np.lexsort(both)
    is_same = ~_differs([each[order] for each in both])[1:]
    return order[:-1][is_same], order[1:][is_same] - len(one[0])


def _calls(recording: RecordingData) -> tuple[np.ndarray, ...]:
    """Return communicator, function, sequence, rank, root, begin and end of each call."""
    table, activities = recording.tables["collectives"], recording.tables["activities"]
    function = codes(table["function"], _FUNCTIONS)
    kernel = collective_kernels(recording.tables)
    rows = np.flatnonzero(np.isin(function, _MATCHED) & (kernel >= 0))
    communicator, sequence, rank, root = (
        plain(table[name])[rows] for name in ("communicator", "sequence", "rank", "peer")
    )
    start = np.int64(recording.manifest.start_monotonic_ns)
    begin, end = (plain(activities[name])[kernel[rows]] + start for name in ("time", "end"))
    return communicator, function[rows], sequence, rank, root, begin, end
