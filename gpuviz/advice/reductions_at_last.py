"""Arrays that a loop keeps and that are reduced one after the other when it has ended."""

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.advice.peak_replay import Change
from gpuviz.advice.reduction_rounds import Rounds, Uses
from gpuviz.advice.training import BACKWARD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from gpuviz.advice.device_blocks import DeviceBlocks

LEAST_BYTES = 1 << 20
LEAST_ARRAYS = 4
_MOST_LINES = 8


def reduced_at_last(device: "DeviceBlocks") -> "Iterator[Change]":
    """Yield what reducing each array in the loop that made it would change.

    All arrays of a line that are there at the peak are used once more after the last of them was
    made, one after the other, by the same kernels with the same numbers. Each such round keeps at
    most an eighth of its array's bytes and reads nothing else that was written since the array was
    made, and the host reads nothing before the first of them: so each could have been done in the
    loop. What follows in a round with small arrays only, such as the results of earlier rounds,
    does not count, nor do arrays that a backward pass makes or frees, and the loop itself may use a
    few of the arrays until it ends. The arguments of PyTorch's kernels have unset bytes, so that
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
        change = _change(uses, blocks)
        if change is not None:
            repeated = _lists(device, np.flatnonzero(can & (device.site == site)))
            others = [each for each in repeated if not np.isin(each, blocks).any()]
            yield _joined([change, *(_change(uses, each, is_repeated=True) for each in others)])


def _change(uses: Uses, blocks: "NDArray[Any]", *, is_repeated: bool = False) -> Change | None:
    """Return what reducing each of a line's arrays in its loop changes; None if it is not known."""
    if len(blocks) <= LEAST_ARRAYS:
        return None
    rounds = Rounds(uses, blocks)
    if len(rounds.blocks) < LEAST_ARRAYS or not rounds.could_be_sooner(is_repeated=is_repeated):
        return None
    return rounds.change()


def _joined(changes: "list[Change | None]") -> Change:
    known = [each for each in changes if each is not None]
    return Change(
        *(
            np.concatenate([getattr(each, name) for each in known])
            for name in ("blocks", "begin", "end")
        )
    )


def _lists(device: "DeviceBlocks", blocks: "NDArray[Any]") -> "list[NDArray[Any]]":
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
