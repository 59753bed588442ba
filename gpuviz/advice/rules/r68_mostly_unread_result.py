"""R68: most of what a matrix product or an elementwise function computes is never read."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.part_reads import OF_TORCH, continues, goes_on_writing, read_bytes
from gpuviz.advice.finding import Finding, as_subject, named
from gpuviz.advice.host_lines import line_of, text_of
from gpuviz.advice.needless.sorted_extremes import (
    LEAST_LONG_ROW,
    SortedExtremes,
    arrays_of_sorts,
    sorted_extremes,
)
from gpuviz.advice.reductions.reduction_times import times_of_host_reads
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.replay.schedule import ScheduleChange
from gpuviz.advice.rule import Rule
from gpuviz.analysis.launches import stacks_of
from gpuviz.analysis.touches import PRODUCT
from gpuviz.data.columns import plain
from gpuviz.data.strings import are_named
from gpuviz.quantities import format_bytes, format_counted, format_duration, format_share

RULES = (
    Rule(
        "R68",
        "a result of which most is never read",
        "matrix products or elementwise functions of a line write arrays of 1 MiB or more, which "
        "are freed in the recording; all that uses them afterwards are reads of known size, "
        "together of at most a quarter of their bytes, none of which a line makes at several "
        "places in turn; such arrays are at least half of the bytes that the line makes; or a line "
        "sorts, and takes the first or the last element along that axis, as in "
        "`cp.argsort(d, axis=1)[:, 0]`; with PyTorch, of more than 4096 elements, also up to 1024 "
        "of the first or the last ones, as in `z.sort(1)[1][:, :5]`",
        "the rows, columns or elements that are needed, selected before the operation; `argmin` "
        "or `topk` instead of a sort",
    ),
)

_LEAST_BYTES = 1 << 20
# The bytes of an array for each byte that is read, at least.
_LEAST_FACTOR = 4
# Of the bytes of a line's arrays, those of which most is unread.
_LEAST_SHARE = 0.5
# What a program reads to show or check a result.
_GLANCE_BYTES = 64
_ALIGNMENT = 512
# Functions of functions of which most is not needed, such as a product that is converted.
_MOST_STEPS = 4
# Of the time of the kernels that sort, what `topk` takes. On an H200, with PyTorch 2.11, it was
# 0.08 to 0.36 for float32, for 1 to 1024 elements of rows of 8192 to 64 Mi.
_SELECTION = 0.25
# Lines with the most bytes.
_MOST_LINES = 8


@dataclass(frozen=True, eq=False, slots=True)
class _Results:
    """Arrays of which most is never read, in columns.

    Attributes:
        blocks: Indices of the device's blocks.
        read: How many bytes of each are read, at most.
        call: The row of ``api_calls`` that last read each.
        work: The numbers in the schedule of the kernels that write them.
        written: For each of these, the place in `blocks` of what it writes.
    """

    blocks: np.ndarray
    read: np.ndarray
    call: np.ndarray
    work: np.ndarray
    written: np.ndarray


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find the lines that compute arrays of which most is never read.

    Trigger: matrix products or elementwise functions with an input write arrays from their
    beginnings, before anything else uses these. Each element of such a result depends on some rows
    and columns, or on one element, of the operands, so that the others need not be computed. All
    later uses are reads of which the bytes are known at most (see
    `gpuviz.advice.arrays.part_reads.read_bytes`), at most a quarter of the array. A line that reads
    one array at several addresses rather goes through it, and a recording may end before it is
    through; one that reads a few bytes only looks at a result. Of what an elementwise function
    reads for such a result, as little is needed.

    Saving: the peak with arrays that have the size of what is read, and the recording's `Schedule`,
    replayed with durations of the kernels in proportion. If the host reads something in between,
    that may decide which part is needed: ``possible``.

    Sorts for few elements are found too, by the text of their lines: see
    `gpuviz.advice.needless.sorted_extremes.sorted_extremes`. Their saving is without the kernels
    that sort: the others, such as the copy that these need, take as long as a reduction. For
    `topk`, a quarter of their time stays, and the arrays are as large as what it finds.
    """
    for extremes in sorted_extremes(device.schedule, device.device):
        yield _of_sorts(device, extremes)
    results = _results(device)
    if not len(results.blocks):
        return
    sites = device.site[results.blocks]
    unread = np.bincount(sites, device.size[results.blocks], int(device.site.max()) + 1)
    made = np.bincount(device.site, device.size, len(unread))
    for site in np.argsort(-unread, kind="stable")[:_MOST_LINES].tolist():
        if unread[site] and unread[site] >= _LEAST_SHARE * made[site]:
            yield _finding(device, results, sites == site)


def _results(device: DeviceBlocks) -> _Results:
    """Return the arrays of which most is never read."""
    used = device.used
    can = device.is_freed & ~device.is_initial & ~device.is_shared & device.is_seen
    can &= (device.requested >= _LEAST_BYTES) & (device.stack != 0) & ~device.is_used_at_any_time
    if device.training is not None:
        can &= ~device.training.is_held
    place = device.place[used.block]
    rows = np.flatnonzero((place >= 0) & np.append(can, False)[place])
    writes = _writes(device, rows)
    read = np.where(writes, 0, read_bytes(device, rows))
    count = len(device.size)
    place, call = place[rows], used.call[rows]
    can &= np.bincount(place, writes, count) > 0
    can[_read_in_turn(device, rows[~writes])] = False
    by_function = ~_by_product(device, rows)
    needed = np.ones(device.recording.tables["api_calls"].num_rows)
    found = np.zeros(count, bool)
    for _ in range(_MOST_STEPS):
        # Of what an elementwise function reads, the elements that are needed of its result.
        of_result = ~writes & by_function & (needed[call] < 1)
        part = np.ceil(needed[call] * device.requested[place]).astype(np.int64)
        read = np.where(of_result, part, read)
        is_known = np.bincount(place, ~writes & (read == 0), count) == 0
        sums = np.bincount(place, read, count).astype(np.int64)
        before, found = found, can & is_known & (sums > _GLANCE_BYTES)
        found &= sums * _LEAST_FACTOR <= device.requested
        if (found == before).all():
            break
        written = np.flatnonzero(writes & found[place])
        needed[call[written]] = (sums / np.maximum(device.requested, 1))[place[written]]
    blocks, last = np.flatnonzero(found), np.full(count, -1)
    reads = np.flatnonzero(~writes & found[place])
    last[place[reads]] = call[reads]
    written = np.flatnonzero(writes & found[place])
    work = device.schedule.number[used.activity[rows[written]]]
    work, first = np.unique(work, return_index=True)
    return _Results(
        blocks, sums[blocks], last[blocks], work, np.searchsorted(blocks, place[written[first]])
    )


def _writes(device: DeviceBlocks, rows: np.ndarray) -> np.ndarray:
    """Return which of some touches are by what computes a block first, for its own elements.

    Large matrix products are computed by several kernels of one call.
    """
    used, tables = device.used, device.recording.tables
    activity, call, first = used.activity[rows], used.call[rows], used.first[used.block[rows]]
    names = plain(tables["activities"]["name"])
    by_product = _by_product(device, rows)
    by_torch = are_named(tables, names, OF_TORCH.search)[activity] & (activity >= 0)
    stacks = stacks_of(tables, call)
    is_same = by_product & (stacks == stacks_of(tables, first)) & (stacks != 0)
    is_same |= goes_on_writing(device, rows)
    launches = device.elementwise
    whole = launches.call[launches.is_whole & (launches.reads > 0) & ~launches.is_update]
    is_first = call == first
    # A kernel with no other array makes up its elements, as a generator does.
    arrays = np.bincount(used.call, minlength=tables["api_calls"].num_rows)
    by_function = is_first & (np.isin(call, whole) | (by_torch & (arrays[call] > 1)))
    begins = np.zeros(len(used.blocks), bool)
    begins[used.block[rows[(is_first & by_product) | by_function]]] = True
    found: np.ndarray = (is_same | by_function) & begins[used.block[rows]] & used.at_begin[rows]
    return found


def _by_product(device: DeviceBlocks, rows: np.ndarray) -> np.ndarray:
    """Return which touches are by kernels that multiply matrices."""
    tables, activity = device.recording.tables, device.used.activity[rows]
    named = are_named(tables, plain(tables["activities"]["name"]), PRODUCT.search)
    by_product: np.ndarray = named[activity] & (activity >= 0)
    return by_product


def _read_in_turn(device: DeviceBlocks, rows: np.ndarray) -> np.ndarray:
    """Return the blocks of which a line reads several parts, given which touches read."""
    used = device.used
    rows = rows[~continues(device, rows)]
    block, address = used.block[rows], used.address[rows]
    stacks = stacks_of(device.recording.tables, used.call[rows])
    order = np.lexsort((address, stacks, block))
    block, stacks, address = block[order], stacks[order], address[order]
    again = (block[1:] == block[:-1]) & (stacks[1:] == stacks[:-1])
    again &= address[1:] != address[:-1]
    found: np.ndarray = device.place[block[1:][again]]
    return found


def _finding(device: DeviceBlocks, results: _Results, chosen: np.ndarray) -> Finding:
    schedule = device.schedule
    blocks, read = results.blocks[chosen], results.read[chosen]
    line = device.lines.line_of(blocks)
    share = results.read / device.requested[results.blocks]
    of_work = chosen[results.written]
    work = results.work[of_work]
    duration = schedule.duration.copy()
    duration[work] = (duration[work] * share[results.written[of_work]]).astype(np.int64)
    faster = ScheduleChange(duration=duration)
    size = np.minimum(-(-read // _ALIGNMENT) * _ALIGNMENT, device.size[blocks])
    whole = int(device.requested[blocks].sum())
    latest = int(np.argmax(device.call_times[results.call[chosen]]))
    use = named(*device.lines.line_of_use(int(blocks[latest]), int(results.call[chosen][latest])))
    made = named(line.site, line.source)
    these = "the array" if len(blocks) == 1 else f"these {format_counted(len(blocks), 'array')}"
    return Finding(
        rule="R68",
        title=f"{as_subject(made)} computes {format_bytes(whole)}, of which at most "
        f"{format_bytes(int(read.sum()))} is read, {format_share(int(read.sum()) / whole)}.",
        reason=f"Nothing uses {these} but {use}, which needs a part. Each element of a matrix "
        "product or an elementwise function can be computed without the others.",
        change=f"Select what {use} needs before {made} computes it: index the rows or columns of "
        "its operands, as in `f(x[:, -1])` instead of `f(x)[:, -1]`. The diagonal of `a @ b` is "
        "`(a * b.T).sum(axis=1)`.",
        certainty="possible" if _is_host_informed(device, results, chosen) else "likely",
        device=device.device,
        saved_ns=schedule.saved_alone(faster),
        lines=(line,),
        evidence=device.lines.evidence(blocks),
        lifetimes=Change(blocks, device.begin[blocks], device.end[blocks], size),
        schedule=faster,
    )


def _of_sorts(device: DeviceBlocks, extremes: SortedExtremes) -> Finding:
    """Return the finding about sorts of which the first or the last elements are used."""
    schedule, work, taken = device.schedule, extremes.work, extremes.taken
    spent = format_duration(int(schedule.duration[work].sum()))
    stack = int(stacks_of(device.recording.tables, schedule.call[work[:1]])[0])
    line = line_of(device.recording, stack, spent)
    elements = extreme = f"{'largest' if taken.is_greatest else 'smallest'} element"
    how, times = (
        f"Use `{extremes.instead}` along the same axis instead of `{taken.called}`.",
        "once",
    )
    faster, lifetimes = schedule.without_work(work), None
    if extremes.instead == "topk":
        elements = extreme if taken.count == 1 else f"{taken.count} {extreme}s"
        options = f"{taken.count}, dim{'' if taken.is_greatest else ', largest=False'}"
        result = "values" if taken.result == "sort" else "indices"
        how = (
            f"Use `topk({options})` instead of `{taken.called}`, and the same of its `{result}`, "
            f"of which the first is of the {extreme}."
        )
        times = "a few times"
        duration = schedule.duration.copy()
        duration[work] = (duration[work] * _SELECTION).astype(np.int64)
        faster = ScheduleChange(duration=duration)
        blocks = arrays_of_sorts(device, work)
        part = -(-device.requested[blocks] * taken.count // LEAST_LONG_ROW)
        size = np.minimum(-(-part // _ALIGNMENT) * _ALIGNMENT, device.size[blocks])
        lifetimes = Change(blocks, device.begin[blocks], device.end[blocks], size)
    return Finding(
        rule="R68",
        title=f"{as_subject(text_of(line))} sorts, and uses only the {elements} along that axis.",
        reason=f"{format_counted(len(work), 'kernel')} that sort take {spent}. "
        f"`{extremes.instead}` reads the array {times} instead.",
        change=f"{how} Of equal elements, it may find another one, and it treats NaN in its own "
        "way.",
        certainty="likely",
        device=device.device,
        saved_ns=schedule.saved_alone(faster),
        lines=(line,),
        evidence=schedule.evidence(work),
        lifetimes=lifetimes,
        schedule=faster,
    )


def _is_host_informed(device: DeviceBlocks, results: _Results, chosen: np.ndarray) -> bool:
    """Return whether the host reads something after an array is made, before its part is used."""
    reads, times = times_of_host_reads(device), device.call_times
    blocks = results.blocks[chosen]
    begin = device.used.blocks.begin[device.number[blocks]]
    first, last = (np.searchsorted(reads, each) for each in (begin, times[results.call[chosen]]))
    return bool((first < last).any())
