"""R49: an array that is joined with a small one again and again."""

import re
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.elementwise import WRITE
from gpuviz.advice.arrays.joins import Joins, copies_of_parts, joins, joins_of_torch
from gpuviz.advice.finding import Finding, named
from gpuviz.advice.host.calls_left_out import without_calls
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.replay.schedule import ScheduleChange
from gpuviz.advice.reserved.driver_allocations import calls_for_allocations
from gpuviz.advice.rule import Rule
from gpuviz.data.columns import plain
from gpuviz.data.strings import are_named
from gpuviz.quantities import format_bytes, format_count, format_counted, format_duration

RULES = (
    Rule(
        "R49",
        "an array that grows by concatenation",
        "at least four times in a row, a line joins its own previous result, which nothing uses "
        "afterwards, with more, or joins the parts of that result and more anew, with CuPy or "
        "PyTorch, and no convolution uses it meanwhile; the saving of time is that of the copies "
        "of what was joined before, their launches, and the driver's calls that make segments for "
        "all results but the last",
        "allocate the final size once, or join a list of parts after the loop",
    ),
)

# Kernels of convolutions, and those that change the layout of images for them.
_CONVOLUTION = re.compile(r"conv(?!er)|implicit_gemm|nchw|nhwc|winograd", re.IGNORECASE)
# Fewer joins are the parts of one result.
_LEAST_JOINS = 4


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find arrays that grow by concatenation in a loop.

    Trigger: a line joins its own previous result, which nothing uses afterwards, with more, at
    least four times in a row; see `gpuviz.advice.arrays.joins`. The n-th join copies what the ones
    before it copied, so that all together copy the square. It is also met by a line that joins a
    list to which a loop appends: at least four times in a row, its result has the parts of the
    previous one, and more. A line may grow several arrays in turn, such as the caches of a model's
    layers, and anew in each round. What works between the joins may use the results: it then gets
    slices. A convolution is none of it, as in a DenseNet: it would copy a slice of the channels,
    which is not contiguous (measured on an H200: 213 ms with slices instead of 197).

    Savings: the decrease of the peak if one array of the final size existed from the first join on,
    and the recording's `Schedule`, replayed without the copies of the previous results and their
    launches, and without the driver's calls that make segments for all results but the last.
    """
    yield from _joined_anew(device)
    for joined in (joins(device), joins_of_torch(device)):
        links = grown(device, joined)
        for site in np.unique(device.site[links.target]).tolist():
            of_site = links.of(np.flatnonzero(device.site[links.target] == site))
            if _longest(of_site) >= _LEAST_JOINS and not _are_convolved(device, of_site):
                yield _finding(device, of_site)


def _joined_anew(device: DeviceBlocks) -> Iterator[Finding]:
    """Yield the lines that copy the same parts into larger and larger arrays."""
    part, target, activity, _ = copies_of_parts(device)
    sites = device.site[target]
    for site in np.unique(sites).tolist():
        rows = np.flatnonzero(sites == site)
        if len(np.unique(target[rows])) < _LEAST_JOINS:
            continue
        of_target: dict[int, set[int]] = {}
        for row in rows.tolist():
            of_target.setdefault(int(target[row]), set()).add(int(part[row]))
        made = sorted(of_target, key=device.begin.__getitem__)
        run = longest = 0
        for before, after in pairwise(made):
            run = run + 1 if of_target[before] < of_target[after] else 0
            longest = max(longest, run)
        if longest < _LEAST_JOINS:
            continue
        joined: set[int] = set()
        repeated = []
        for each in made:
            own = rows[target[rows] == each]
            repeated += own[[int(part[row]) in joined for row in own.tolist()]].tolist()
            joined |= of_target[each]
        yield _of_list(device, made[-1], np.array(repeated), part, activity)


def _of_list(
    device: DeviceBlocks,
    last: int,
    again: np.ndarray,
    part: np.ndarray,
    activity: np.ndarray,
) -> Finding:
    schedule = device.schedule
    work = schedule.number[activity[again]]
    duration = schedule.duration.copy()
    spent = format_duration(int(duration[work].sum()))
    duration[work] = 0
    calls = schedule.call[work]
    faster = _without_calls(device, duration, calls[calls >= 0])
    line, size = device.lines.line_of(np.array([last])), format_bytes(int(device.size[last]))
    copied = format_bytes(int(device.requested[part[again]].sum()))
    return Finding(
        rule="R49",
        title=f"{named(line.site, line.source)} joins parts that it has joined before, which "
        f"copies {copied} again.",
        reason=f"Each result has the parts of the previous one, and more. The "
        f"{format_counted(len(again), 'copy', 'copies')} of parts that were joined before take "
        f"{spent}.",
        change="Join the list once, after the loop. If each round needs the result, allocate "
        f"{size} before the loop and write only the new part into a slice of it.",
        certainty="likely",
        device=device.device,
        saved_ns=schedule.saved_alone(faster),
        lines=(line,),
        evidence=schedule.evidence(work),
        schedule=faster,
    )


def grown(device: DeviceBlocks, joined: Joins) -> Joins:
    """Return the joins whose part is the previous result of the same line.

    Only of parts that are joined themselves, or whose result is joined again: others are made on
    that line.
    """
    same = device.site[joined.part] == device.site[joined.target]
    same &= device.requested[joined.target] > device.requested[joined.part]
    same &= ~device.is_kept[joined.part]
    rows = np.flatnonzero(same)
    # The largest part of a target is the previous result.
    rows = rows[np.lexsort((-device.requested[joined.part[rows]], joined.target[rows]))]
    _, first = np.unique(joined.target[rows], return_index=True)
    links = joined.of(rows[first])
    again = np.isin(links.part, links.target) | np.isin(links.target, links.part)
    return links.of(np.flatnonzero(again))


def _longest(links: Joins) -> int:
    """Return how many times in a row a line joins its previous result at most."""
    previous = dict(zip(links.target.tolist(), links.part.tolist(), strict=True))
    counts: dict[int, int] = {}
    for target in previous:
        waiting = [target]
        while previous.get(waiting[-1]) is not None and waiting[-1] not in counts:
            waiting.append(previous[waiting[-1]])
        count = counts.get(waiting[-1], 0)
        for each in reversed(waiting[:-1]):
            count += 1
            counts[each] = count
    return max(counts.values(), default=0)


def _finding(device: DeviceBlocks, links: Joins) -> Finding:
    schedule = device.schedule
    last = links.target[~np.isin(links.target, links.part)]
    change = _change(device, links, last)
    work = schedule.number[links.activity]
    duration = schedule.duration.copy()
    share = device.requested[links.part] / device.requested[links.target]
    duration[work] = (duration[work] * np.where(links.is_shared, 1 - share, 0)).astype(np.int64)
    results = np.setdiff1d(np.append(links.part, links.target), last)
    made = calls_for_allocations(schedule, device.used.blocks.alloc[device.number[results]])
    copies = schedule.call[work[~links.is_shared]]
    faster = _without_calls(device, duration, np.append(made, copies[copies >= 0]))
    line = device.lines.line_of(links.target)
    copied = int(device.requested[links.part].sum())
    spent = int((schedule.duration[work] - duration[work]).sum())
    size, count = format_bytes(int(device.size[last].max())), len(last)
    what, them = ("an array", "it") if count == 1 else (f"{format_count(count)} arrays", "them")
    otherwise = (
        "What uses the results meanwhile gets a slice with the parts that are there."
        if _are_used_meanwhile(device, links)
        else "Or collect the parts in a list and join them once after the loop, which saves the "
        "time only."
    )
    up_to, each = ("", "") if count == 1 else ("up to ", " for each array")
    return Finding(
        rule="R49",
        title=f"{named(line.site, line.source)} grows {what} by joining {them} "
        f"{format_count(len(links.part))} times, which copies {format_bytes(copied)} again.",
        reason=f"Each join copies the previous result, {format_duration(spent)} in total, and "
        f"needs both at once. The result has {up_to}{size} at last.",
        change=f"Allocate {size}{each} once before the loop and write each part into a slice of "
        f"it. {otherwise}",
        certainty="likely",
        device=device.device,
        saved_ns=schedule.saved_alone(faster),
        lines=(line,),
        evidence=schedule.evidence(work),
        lifetimes=change,
        schedule=faster,
    )


def _are_used_meanwhile(device: DeviceBlocks, links: Joins) -> bool:
    """Return whether anything but the joins reads the previous results."""
    return len(_readers(device, links)) > 0


def _are_convolved(device: DeviceBlocks, links: Joins) -> bool:
    """Return whether convolutions read the previous results."""
    tables = device.recording.tables
    readers = _readers(device, links)
    names = plain(tables["activities"]["name"])[readers[readers >= 0]]
    return bool(are_named(tables, names, _CONVOLUTION.search).any())


def _readers(device: DeviceBlocks, links: Joins) -> np.ndarray:
    """Return the work beside the joins that reads the previous results, rows of ``activities``."""
    is_part = np.zeros(len(device.used.blocks), bool)
    is_part[device.number[np.intersect1d(links.part, links.target)]] = True
    used = is_part[device.used.block] & (device.used.mode != WRITE)
    activities = device.used.activity[used]
    readers: np.ndarray = activities[~np.isin(activities, links.activity)]
    return readers


def _without_calls(device: DeviceBlocks, duration: np.ndarray, calls: np.ndarray) -> ScheduleChange:
    """Return the schedule with these durations in ns and without these of the host's calls."""
    gone = np.zeros(len(device.schedule.called), bool)
    gone[calls] = True
    return without_calls(device, duration, gone)


def _change(device: DeviceBlocks, links: Joins, last: np.ndarray) -> Change:
    """Return the lifetimes with one array of the final size for each sequence of joins."""
    blocks = np.union1d(links.part, links.target)
    previous = dict(zip(links.target.tolist(), links.part.tolist(), strict=True))
    begin = device.begin[blocks].copy()
    end = np.where(np.isin(blocks, last), device.end[blocks], device.begin[blocks])
    for final in last.tolist():
        first = final
        while first in previous:
            first = previous[first]
        begin[np.searchsorted(blocks, final)] = device.begin[first]
    return Change(blocks, begin, end, group=np.zeros(len(blocks), np.int64))
