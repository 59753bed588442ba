"""Growth of a level over the iterations of a program, told from warm-up, plateaus and noise."""

import math
from dataclasses import dataclass

import numpy as np

# Levels after the warm-up that a growth needs; without a growing number of blocks.
FEWEST = 4
_FEWEST_OF_ONE_BLOCK = 8
# Of the iterations, those at the start that may only warm up.
_WARM_UP = 0.25
# Of the whole growth, the most that a level may fall again.
_MOST_FALL = 1 / 3
# Of the growth in the first third, the least in the last one; a cache that fills up slows down.
_LEAST_PACE = 0.5
# The normal distribution's quantile of a two-sided interval of 95 %.
_QUANTILE = 1.959964


@dataclass(frozen=True, slots=True)
class Growth:
    """How much a level grows from one iteration to the next.

    Attributes:
        slope: Bytes an iteration.
        low: The lower end of the slope's 95 % confidence interval.
        high: Its upper end.
        is_exact: Whether every iteration after the warm-up adds the same number of blocks and of
            bytes.
    """

    slope: float
    low: float
    high: float
    is_exact: bool


def growth(sizes: np.ndarray, counts: np.ndarray, numbers: np.ndarray) -> Growth | None:
    """Return the growth of a line's live memory, or None if it is not certain to grow.

    The first quarter of the levels, and at least one, is warm-up. Of the others, at least four, the
    lowest level of the last third must be above the highest of the first third, in bytes and in
    blocks; no fall may exceed a third of the growth; and the last third must grow at least half as
    fast as the first, which a cache that fills up does not. If the number of blocks stays the same,
    as when one array is replaced by larger ones, each of at least eight levels must be above the
    one before. The slope is the median of the slopes between all pairs of levels (Theil 1950, Sen
    1968), and its interval follows from the distribution of Kendall's rank statistic; it must be
    above 0.

    Args:
        sizes: Live bytes at the end of each iteration.
        counts: Live blocks at the end of each iteration.
        numbers: The number of each iteration, ascending, from which some may be left out.
    """
    first = max(math.ceil(_WARM_UP * len(sizes)), 1)
    sizes, counts, numbers = sizes[first:], counts[first:], numbers[first:]
    if len(sizes) < FEWEST or not (_rises(sizes) and _rises_in_blocks(sizes, counts)):
        return None
    apart = np.diff(numbers)
    steps, more = np.diff(sizes) / apart, np.diff(counts) / apart
    if more[0] > 0 and (steps == steps[0]).all() and (more == more[0]).all():
        return Growth(float(steps[0]), float(steps[0]), float(steps[0]), is_exact=True)
    slope, low, high = theil_sen(sizes, numbers)
    return Growth(slope, low, high, is_exact=False) if low > 0 else None


def theil_sen(levels: np.ndarray, places: np.ndarray) -> tuple[float, float, float]:
    """Return the slope of levels at ascending places, and its 95 % confidence interval."""
    count = len(levels)
    before, after = np.triu_indices(count, 1)
    slopes = np.sort((levels[after] - levels[before]) / (places[after] - places[before]))
    deviation = math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    out = _QUANTILE * deviation
    low = math.floor((len(slopes) - out) / 2)
    high = math.ceil((len(slopes) + out) / 2)
    ends = max(low, 0), min(high, len(slopes) - 1)
    return float(np.median(slopes)), float(slopes[ends[0]]), float(slopes[ends[1]])


def _rises(levels: np.ndarray) -> bool:
    third = len(levels) // 3
    early, late = levels[: third + 1], levels[-third - 1 :]
    whole = int(levels[-1] - levels[0])
    fall = int((np.maximum.accumulate(levels) - levels).max())
    pace_late, pace_early = int(late[-1] - late[0]), int(early[-1] - early[0])
    return (
        whole > 0
        and late[-third or -1 :].min() > early[: third or 1].max()
        and fall <= _MOST_FALL * whole
        and pace_late >= _LEAST_PACE * pace_early
        and pace_late > 0
    )


def _rises_in_blocks(sizes: np.ndarray, counts: np.ndarray) -> bool:
    if counts[-1] > counts[0]:
        return _rises(counts)
    return len(sizes) >= _FEWEST_OF_ONE_BLOCK and bool((np.diff(sizes) > 0).all())
