"""R34: a small array is copied to a large one, though a view would do."""

from collections.abc import Iterator

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.elementwise import READ
from gpuviz.advice.finding import Finding, named
from gpuviz.advice.kernels.kernel_times import with_fewer_bytes
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.replay.schedule import ScheduleChange
from gpuviz.advice.rule import Rule
from gpuviz.advice.source.libraries import by_library
from gpuviz.advice.source.own_lines import is_own
from gpuviz.analysis.launches import stacks_of
from gpuviz.quantities import format_bytes, format_counted

RULES = (
    Rule(
        "R34",
        "a copy that repeats a small array",
        "`copy`, `meshgrid` and the like write at least four times as many elements as they read, "
        "and only elementwise functions read the result",
        "a view: an axis of length 1, `broadcast_to`, `sparse=True`",
    ),
)

# A copy that is at least so many times as large as its source repeats it.
_LEAST_RATIO = 4
_OF_CUPY = "`cupy.broadcast_to`, or `cupy.meshgrid(..., sparse=True)`"
_OF_TORCH = "or `x.expand(...)` instead of `repeat`"


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find the lines that copy small arrays to large ones which only elementwise functions read.

    Trigger: a call of the program itself copies block a to the whole of block b, which has at least
    four times as many elements of the same type, so that elements of a are repeated. Only
    elementwise functions of CuPy read b afterwards: they accept views that repeat elements. They do
    not write b; nothing writes a while b is used. The line does this each time, and b is freed in
    the recording. The saving is the decrease of the peak without b if a stays allocated as long,
    and the time of the copies and of reading b instead of a.
    """
    launches = device.elementwise
    meets, source = _meets(device)
    place = device.place
    sites = device.site[place[launches.target]]
    copies = launches.where(lambda each: each.name == "copy") & (place[launches.target] >= 0)
    for site in np.setdiff1d(sites[meets], sites[copies & ~meets]).tolist():
        chosen = np.flatnonzero(meets & (sites == site))
        target, small = place[launches.target[chosen]], place[source[chosen]]
        if device.at_peak[target].any() and device.replay.saving(_change(device, target, small)):
            yield _finding(device, chosen, target, small)


def _meets(device: DeviceBlocks) -> tuple[np.ndarray, np.ndarray]:
    """Return which elementwise launches meet the trigger, and the block that each reads."""
    used, launches, place = device.used, device.elementwise, device.place
    blocks, target = used.blocks, launches.target
    copies = launches.where(lambda each: each.name == "copy" and each.inputs == (each.output,))
    stacks = stacks_of(device.recording.tables, launches.call)
    copies &= (
        launches.is_whole
        & ~launches.is_update
        & (launches.reads == 1)
        & is_own(device.recording, stacks)
    )
    source = np.full(len(launches), -1)
    source[launches.launch] = launches.source
    copies &= (source >= 0) & (place[target] >= 0) & (place[source] >= 0)
    copies &= blocks.requested[source] * _LEAST_RATIO <= blocks.requested[target]
    copies &= (used.first[target] == launches.call) & (blocks.end[target] >= 0)
    copies &= ~device.is_initial[place[target]] & ~device.is_shared[place[target]]
    copies &= ~device.is_shared[place[source]] & device.is_seen[place[target]]
    copies &= _are_only_read(device)[target] & ~_changes_meanwhile(device, source)
    return copies, source


def _are_only_read(device: DeviceBlocks) -> np.ndarray:
    """Return whether one call writes each block, and then only elementwise functions read it."""
    used = device.used
    reads = (used.mode == READ) & np.isin(used.call, device.elementwise.call)
    count = len(used.blocks)
    others = np.bincount(used.block[~reads], minlength=count)
    is_read = np.bincount(used.block[reads], minlength=count) > 0
    found: np.ndarray = (others == 1) & is_read
    return found


def _changes_meanwhile(device: DeviceBlocks, source: np.ndarray) -> np.ndarray:
    """Return whether something may write each launch's source while its result is used."""
    used, launches = device.used, device.elementwise
    count = len(used.block)
    first, last = np.zeros((2, len(used.blocks)), np.int64)
    first[used.block[::-1]] = np.arange(count)[::-1]
    last[used.block] = np.arange(count)
    # Touches are in the order of their calls.
    written = np.flatnonzero(used.mode != READ)
    keys = np.sort(used.block[written] * count + written, kind="stable")
    begins, ends = (source * count + each[launches.target] for each in (first, last))
    found: np.ndarray = np.searchsorted(keys, begins) < np.searchsorted(keys, ends)
    return found


def _change(device: DeviceBlocks, target: np.ndarray, small: np.ndarray) -> Change:
    """Return the lifetimes if views of small blocks replaced others."""
    end = device.end.copy()
    np.maximum.at(end, small, device.end[target])
    end[target] = device.begin[target]
    blocks = np.union1d(target, small)
    together = np.zeros(len(blocks), np.int64)
    return Change(blocks, device.begin[blocks], end[blocks], group=together)


def _finding(
    device: DeviceBlocks, chosen: np.ndarray, target: np.ndarray, small: np.ndarray
) -> Finding:
    schedule, launches = device.schedule, device.elementwise
    is_at_peak = device.at_peak[target]
    shown, sources = target[is_at_peak], np.unique(small[is_at_peak])
    calls = launches.call[chosen]
    requested = device.used.blocks.requested
    left_out = np.zeros(len(requested))
    left_out[device.number[target]] = 1 - requested[device.number[small]] / np.maximum(
        requested[device.number[target]], 1
    )
    duration = with_fewer_bytes(device, left_out)
    duration[schedule.number[launches.activity[chosen]]] = 0
    is_gone = np.zeros(device.recording.tables["api_calls"].num_rows, bool)
    is_gone[calls] = True
    faster = ScheduleChange(duration=duration, instant=is_gone)
    change = _change(device, target, small)
    to, of = device.lines.line_of(shown), device.lines.line_of(sources)
    views = by_library(device.recording, {"torch": _OF_TORCH}, _OF_CUPY)
    return Finding(
        rule="R34",
        title=f"{named(to.site, to.source)} copies {format_bytes(int(device.size[sources].sum()))} "
        f"to {format_bytes(int(device.size[shown].sum()))}, where views would do.",
        reason=f"The elements from {named(of.site, of.source)} are repeated in "
        f"{format_counted(len(shown), 'array')} at the peak. Only elementwise functions read "
        f"{'it' if len(shown) == 1 else 'them'}, which accept views that repeat elements.",
        change=f"Use such views: an axis of length 1, {views}.",
        certainty="likely",
        device=device.device,
        saved_ns=schedule.saved_ns(faster),
        lines=(to, of),
        evidence=device.lines.evidence(shown),
        lifetimes=change,
        schedule=faster,
    )
