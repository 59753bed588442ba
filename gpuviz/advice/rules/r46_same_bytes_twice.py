"""R46: parts and the array that they were joined to are allocated at the same time."""

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.advice.device_blocks import DeviceBlocks
from gpuviz.advice.finding import Finding, named
from gpuviz.advice.joins import Joins, joins
from gpuviz.advice.peak_replay import Change
from gpuviz.advice.rule import Rule
from gpuviz.advice.rules.r49_grown_by_concatenation import grown
from gpuviz.quantities import format_bytes, format_counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

RULES = (
    Rule(
        "R46",
        "parts and the array they were joined to",
        "`concatenate` or `stack` writes an array with exactly the bytes of the arrays that one "
        "line allocated, or that are copied there one by one, which nothing uses afterwards",
        "allocate the whole array first, write the parts into slices",
    ),
)

# One part is a copy.
_LEAST_PARTS = 2


def find(device: DeviceBlocks) -> "Iterator[Finding]":
    """Find the lines that join arrays, which are not used afterwards, to one of their size.

    Trigger: arrays are copied to block b, by one kernel or by a copy for each of them, and nothing
    uses them after that; see `gpuviz.advice.joins`. Those that one line allocated, or all of those
    that are copied one by one, have together exactly as many requested bytes as b. An array that is
    joined again and again is R49. The saving is the decrease of the peak if b had been allocated
    with the first of them, and they had been parts of it.
    """
    joined = joins(device)
    growing = grown(device, joined).target
    for target in np.unique(joined.target).tolist():
        if target in growing:
            continue
        rows = joined.of(np.flatnonzero(joined.target == target))
        for parts in _complete(device, rows):
            blocks = np.append(parts, target)
            begin = np.append(device.begin[parts], device.begin[parts].min())
            end = np.append(device.begin[parts], device.end[target])
            change = Change(blocks, begin, end, group=np.zeros(len(blocks), np.int64))
            yield _finding(device, target, parts, change)


def _complete(device: DeviceBlocks, rows: Joins) -> "Iterator[NDArray[Any]]":
    """Yield sets of at least two parts of a block that have exactly its bytes."""
    target = int(rows.target[0])
    # What is written into slices of an array that is there already is not joined.
    rows = rows.of(np.flatnonzero(device.begin[rows.part] < device.begin[target]))
    copied = np.unique(rows.part[~rows.is_shared])
    of_kernel = rows.part[rows.is_shared]
    sites = device.site[of_kernel]
    sets = [copied, *(of_kernel[sites == site] for site in np.unique(sites))]
    size = device.requested[target]
    for parts in sets:
        if len(parts) >= _LEAST_PARTS and device.requested[parts].sum() == size:
            yield parts


def _finding(device: DeviceBlocks, target: int, parts: "NDArray[Any]", change: Change) -> Finding:
    to, of = device.lines.line_of(np.array([target])), device.lines.line_of(parts)
    return Finding(
        rule="R46",
        title=f"{named(to.site, to.source)} holds the same "
        f"{format_bytes(int(device.size[target]))} twice.",
        reason=f"It joins {format_counted(len(parts), 'array')} from "
        f"{named(of.site, of.source)}, which nothing uses afterwards.",
        change="Allocate the whole array first, and write each part into a slice of it.",
        certainty="likely",
        device=device.device,
        lines=(to, of),
        evidence=device.lines.evidence(change.blocks),
        lifetimes=change,
    )
