"""Reads of values by which the program chooses the places that its next work uses."""

import numpy as np

from gpuviz.advice.replay.schedule import Schedule
from gpuviz.analysis.grouping import numbered
from gpuviz.data.columns import plain

# The first launches after a read; later ones may be of another loop.
_MOST_LAUNCHES = 32
_LEAST_ROUNDS, _MOST_ROUNDS = 8, 1000
_LEAST_PLACES = 4
# Of the steps from round to round: a loop over parts of an array goes on by the same amount.
_MOST_REGULAR = 0.5


def chooses_places(schedule: Schedule, calls: np.ndarray) -> bool:
    """Return whether the work after some reads uses other places of its arrays in each round.

    As in ``image[y : y + 9]`` or ``images[y]``, where ``y`` has been read. What a loop over parts
    uses lies at equal distances, so that half of the steps from round to round are the same.

    Args:
        schedule: The recording's schedule.
        calls: The calls that read, rows of ``api_calls``.
    """
    used = schedule.touches
    if used is None or len(calls) < _LEAST_ROUNDS:
        return False
    reads = np.sort(schedule.returned[calls])
    until = reads[_MOST_ROUNDS] if len(reads) > _MOST_ROUNDS else np.iinfo(np.int64).max
    called = schedule.called[used.call]
    touches = np.flatnonzero((called >= reads[0]) & (called <= until) & (used.activity >= 0))
    is_own = schedule.thread[used.call[touches]] == schedule.thread[calls[0]]
    touches = touches[is_own]
    touches = touches[np.argsort(called[touches], kind="stable")]
    round_of = np.searchsorted(reads, called[touches]) - 1
    touches, round_of = touches[round_of >= 0], round_of[round_of >= 0]
    if not len(touches):
        return False
    launch = np.cumsum(np.append(0, np.diff(used.call[touches]) != 0))
    first = np.searchsorted(round_of, round_of)
    place = launch - launch[first]
    argument = np.arange(len(touches)) - np.searchsorted(launch, launch)
    names = plain(schedule.recording.tables["activities"]["name"])[used.activity[touches]]
    blocks = used.block[touches]
    # Arrays that one line makes in each round lie anywhere.
    ends = used.blocks.end[blocks]
    lasts = (used.blocks.begin[blocks] < reads[0]) & ((ends < 0) | (ends > reads[-1]))
    offset = used.address[touches] - np.where(lasts, 0, used.blocks.address[blocks])
    near = place < _MOST_LAUNCHES
    kind, _ = numbered(place[near] * 64 + np.minimum(argument[near], 63), names[near])
    order = np.argsort(kind, kind="stable")
    bounds = np.flatnonzero(np.diff(kind[order])) + 1
    return any(_is_irregular(each) for each in np.split(offset[near][order], bounds))


def _is_irregular(offsets: np.ndarray) -> bool:
    if len(offsets) < _LEAST_ROUNDS or len(np.unique(offsets)) < _LEAST_PLACES:
        return False
    _, counts = np.unique(np.diff(offsets.astype(np.int64)), return_counts=True)
    return bool(counts.max() < _MOST_REGULAR * counts.sum())
