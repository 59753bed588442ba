"""An alignment of two hosts' clocks, narrowed by the collectives that both took part in."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.merging.clocks import AS_GOOD_NS, MOST_DRIFT, UNKNOWN, Alignment

if TYPE_CHECKING:
    from gpuviz.merging.meetings import Meetings

_MOST_KNOTS = 10_000
# Fewer collectives may all be damaged, or of another run.
_FEWEST_TO_REFUTE = 3


def refined(found: Alignment, first: int, last: int, met: "Meetings") -> Alignment:
    """Return an alignment with a smaller error, if collectives allow one.

    The difference of the clocks is taken to change evenly, as between two readings of the wall
    clocks. Collectives that contradict the alignment are rejected, unless most do: then the wall
    clocks of the hosts differ, and the collectives alone count.

    Args:
        found: The alignment by wall clocks.
        first: The first time to align, on the host's own clock, in ns.
        last: The last such time.
        met: The bounds by collectives, on the same clocks.
    """
    if not len(met.begin):
        return found
    base = _line(found, first, last)
    error = float(base.error) if base.error != UNKNOWN else np.inf
    least = met.least - (base.aligned(met.end) - met.end)
    most = met.most - (base.aligned(met.begin) - met.begin)
    agreeing = (least <= error) & (most >= -error)
    if 2 * agreeing.sum() < len(agreeing):
        # The readings say nothing about how fast the wall clocks drift apart.
        error, agreeing = np.inf, np.ones(len(agreeing), bool)
    is_refuted = error == np.inf and base.error != UNKNOWN
    rate = min(2 * error / max(last - first, 1), MOST_DRIFT)
    kept = agreeing & _overlapping(least, most, agreeing, rate * (last - first))
    if 2 * kept.sum() < len(kept) or (is_refuted and kept.sum() < _FEWEST_TO_REFUTE):
        return replace(found, rejected=len(kept))
    times = _knots(first, last, met, kept)
    low = np.maximum(_reaching(met.end[kept], least[kept], times, rate), -error)
    high = np.minimum(-_reaching(met.begin[kept], -most[kept], times, rate), error)
    if np.any(low > high):
        return replace(found, rejected=len(kept))
    if not np.all(np.isfinite(high - low)):
        # Bounds of one side do not align clocks that were not read.
        return found
    # Between two times the difference may deviate from what is interpolated.
    bent = rate * float(np.diff(times).max(initial=0)) / 2
    further, half = _middle(low, high, bent)
    # Rounding.
    bound = int(half) + 3
    if not is_refuted and found.error != UNKNOWN and bound >= found.error:
        return replace(found, rejected=int((~kept).sum()))
    shifts = base.aligned(times) - times + np.rint(further).astype(np.int64)
    return Alignment(
        shift=int(shifts[0]),
        error=bound,
        origin=first,
        times=tuple((times - first).tolist()),
        further=tuple((shifts - shifts[0]).tolist()),
        collectives=int(kept.sum()),
        rejected=int((~kept).sum()),
        refuted=int(np.abs(further).max()) if is_refuted else 0,
    )


def _line(found: Alignment, first: int, last: int) -> Alignment:
    """Return an alignment whose difference changes evenly from the first time to the last."""
    if not found.times:
        return found
    knots = np.array(found.times, np.float64)
    shifts = np.array(found.further, np.float64)
    slope, level = np.polyfit(knots, shifts, 1)
    away = float(np.abs(level + slope * knots - shifts).max())
    ends = (0, last - first)
    further = tuple(round(level + slope * end) for end in ends)
    error = found.error if found.error == UNKNOWN else found.error + round(away) + 1
    return Alignment(found.shift, error, first, ends, further)


def _overlapping(
    least: np.ndarray, most: np.ndarray, chosen: np.ndarray, slack: float
) -> np.ndarray:
    """Return which intervals contain the value that most of those chosen contain."""
    low, high = least - slack / 2, most + slack / 2
    edges = np.concatenate([low[chosen], high[chosen]])
    change = np.repeat([1, -1], int(chosen.sum()))
    # Where one begins at the end of another, both contain the value.
    order = np.lexsort((-change, edges))
    best = edges[order[np.argmax(np.cumsum(change[order]))]]
    found: np.ndarray = (low <= best) & (best <= high)
    return found


def _knots(first: int, last: int, met: "Meetings", kept: np.ndarray) -> np.ndarray:
    """Return the times to align at: the ends and those of collectives, if they are not too many."""
    inner = np.concatenate([met.begin[kept], met.end[kept]])
    step = -(-len(inner) // _MOST_KNOTS)
    inner = np.sort(inner)[::step]
    inside = inner[(inner > first) & (inner < last)]
    found: np.ndarray = np.unique(np.concatenate([[first, last], inside]).astype(np.int64))
    return found


def _reaching(known: np.ndarray, least: np.ndarray, times: np.ndarray, rate: float) -> np.ndarray:
    """Return the largest lower bound at each time; one loses ``rate`` for each ns of distance."""
    order = np.argsort(known, kind="stable")
    known, least = known[order], least[order]
    origin = times[0]
    since, at = (known - origin).astype(np.float64), (times - origin).astype(np.float64)
    nothing = np.array([-np.inf])
    before = np.append(nothing, np.maximum.accumulate(least + rate * since))
    after = np.append(np.maximum.accumulate((least - rate * since)[::-1])[::-1], nothing)
    place = np.searchsorted(known, times, side="right")
    found: np.ndarray = np.maximum(before[place] - rate * at, after[place] + rate * at)
    return found


def _middle(low: np.ndarray, high: np.ndarray, bent: float) -> tuple[Any, float]:
    """Return the middle between bounds and how far they are from it, constant if about as good."""
    changing = float((high - low).max()) / 2 + bent
    constant = float(high.max() - low.min()) / 2 + bent
    if constant <= 2 * changing + AS_GOOD_NS:
        return np.full(len(low), (high.max() + low.min()) / 2), constant
    return (low + high) / 2, changing
