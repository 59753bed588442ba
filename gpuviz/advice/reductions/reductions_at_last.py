"""Arrays that a loop keeps and that are reduced one after the other when it has ended."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.training_blocks import BACKWARD
from gpuviz.advice.reductions.accumulations import Accumulation
from gpuviz.advice.reductions.reduction_rounds import Rounds
from gpuviz.advice.reductions.reduction_uses import Uses
from gpuviz.advice.replay.peak_replay import Change

LEAST_BYTES = 1 << 20
LEAST_ARRAYS = 4
_MOST_LINES = 8


@dataclass(frozen=True, eq=False, slots=True)
class Reduced:
    """Arrays that a loop keeps until they are reduced, and what reducing each in it changes.

    Attributes:
        blocks: The arrays.
        change: The lifetimes, also of what the reductions make.
        is_accumulated: Whether each reduction updates what the one before has left.
    """

    blocks: np.ndarray
    change: Change
    is_accumulated: bool


def reduced_at_last(device: DeviceBlocks) -> Iterator[Reduced]:
    """Yield what reducing each array in the loop that made it would change.

    All arrays of a line that are there at the peak are used once more after the last of them was
    made, one after the other, by the same kernels with the same numbers. Each such round keeps at
    most an eighth of its array's bytes and reads nothing else that was written since the array was
    made, and the host reads nothing before the first of them: so each could have been done in the
    loop. Or each updates what the one before has left, such as a sum; see `Accumulation`. What
    follows in a round with small arrays only, such as the results of earlier rounds, does not
    count, nor do arrays that a backward pass makes or frees, and the loop itself may use a few of
    the arrays until it ends. The arguments of PyTorch's kernels have unset bytes, so that
    their numbers are not compared. Where a program repeats all that, the same is asked of the
    arrays that the line makes again.
    """
    can = device.is_freed & ~device.is_initial & ~device.is_shared
    can &= (device.stack != 0) & (device.size >= LEAST_BYTES)
    if device.training is not None:
        can &= (device.training.phase != BACKWARD) & (device.training.freed_in != BACKWARD)
    at_peak = np.flatnonzero(can & device.at_peak)
    sums = np.bincount(device.site[at_peak], device.size[at_peak])
    uses: Uses | None = None
    for site in np.argsort(-sums, kind="stable")[:_MOST_LINES].tolist():
        blocks = at_peak[device.site[at_peak] == site]
        if len(blocks) <= LEAST_ARRAYS:
            continue
        uses = uses or Uses(device)
        rounds = _rounds(uses, blocks)
        if rounds is not None:
            repeated = _lists(device, np.flatnonzero(can & (device.site == site)))
            others = [each for each in repeated if not np.isin(each, blocks).any()]
            yield _joined([rounds, *(_rounds(uses, each, is_repeated=True) for each in others)])


def _rounds(uses: Uses, blocks: np.ndarray, *, is_repeated: bool = False) -> Rounds | None:
    """Return the rounds that reduce a line's arrays and could be in its loop; None without them."""
    if len(blocks) <= LEAST_ARRAYS:
        return None
    for kind in (Rounds, Accumulation, partial(Accumulation, has_begun=True)):
        rounds = kind(uses, blocks)
        if len(rounds.blocks) >= LEAST_ARRAYS and rounds.could_be_sooner(is_repeated=is_repeated):
            return rounds
    return None


def _joined(found: list[Rounds | None]) -> Reduced:
    rounds = [each for each in found if each is not None]
    changes = [each.change() for each in rounds]
    change = Change(
        *(
            np.concatenate([getattr(each, name) for each in changes])
            for name in ("blocks", "begin", "end")
        )
    )
    blocks = np.concatenate([each.reduced for each in rounds])
    return Reduced(blocks, change, isinstance(rounds[0], Accumulation))


def _lists(device: DeviceBlocks, blocks: np.ndarray) -> list[np.ndarray]:
    """Return the blocks that are there each time when those of a line hold most bytes.

    Between two such times, they hold a third less for a while.
    """
    begin, end, size = (each[blocks] for each in (device.begin, device.end, device.size))
    places = np.concatenate([begin, end])
    order = np.argsort(places, kind="stable")
    levels = np.cumsum(np.concatenate([size, -size])[order]).tolist()
    found, highest, lowest, is_rising = [], 0, 0, True
    for place, level in enumerate(levels):
        if is_rising and level > levels[highest]:
            highest = place
        elif is_rising and 3 * level <= 2 * levels[highest]:
            found.append(highest)
            lowest, is_rising = level, False
        elif not is_rising:
            lowest = min(lowest, level)
            if 2 * level > 3 * lowest:
                highest, is_rising = place, True
    times = places[order][found]
    first, until = (np.searchsorted(times, each) for each in (begin, end))
    counts = until - first
    members = np.repeat(blocks, counts)
    number = np.repeat(first, counts) + np.arange(len(members))
    number -= np.repeat(np.cumsum(counts) - counts, counts)
    by_list = np.argsort(number, kind="stable")
    return np.split(members[by_list], np.searchsorted(number[by_list], np.arange(1, len(found))))
