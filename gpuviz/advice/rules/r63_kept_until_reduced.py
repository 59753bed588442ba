"""R63: arrays of many rounds are kept until each is reduced to something small."""

import re
from collections.abc import Iterator

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.training_blocks import BACKWARD
from gpuviz.advice.finding import Finding, named
from gpuviz.advice.host_lines import line_numbers
from gpuviz.advice.reductions.joined_then_reduced import joined_then_reduced
from gpuviz.advice.reductions.parts_reduced_at_last import Parts, parts_reduced_at_last
from gpuviz.advice.reductions.reduced_early import reduced_early
from gpuviz.advice.reductions.reduction_rounds import LEAST_FACTOR
from gpuviz.advice.reductions.reduction_times import times_of_host_reads, written_before
from gpuviz.advice.reductions.reductions_at_last import LEAST_ARRAYS, LEAST_BYTES, reduced_at_last
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.rule import Rule
from gpuviz.analysis.grouping import numbered
from gpuviz.analysis.launches import phases_of, stacks_of
from gpuviz.data.columns import codes, plain
from gpuviz.data.strings import are_named
from gpuviz.data.tables import DICTIONARIES
from gpuviz.quantities import format_bytes, format_count

RULES = (
    Rule(
        "R63",
        "arrays that wait to be reduced",
        "at least four arrays of 1 MiB or more are all made before a line reads each of them for "
        "the last time and makes only arrays at most an eighth as large, from nothing else that "
        "was written meanwhile; no other line uses any of the arrays of their line that this one "
        "has read, and the host reads nothing meanwhile; or all arrays that a line keeps in a loop "
        "are used one after the other when it has ended, by the same kernels with the same "
        "numbers, as far as those are known, which leave as little, or which update one result "
        "with each in their order, as in a sum; or they are joined to one array, of which "
        "elementwise kernels and then sums, means, products or extremes leave at most an eighth; "
        "or a line in a loop writes the parts of one array "
        "of CuPy, each once, and nothing reads it but one sum, mean, product or extreme of all of "
        "it, which is at most an eighth as large; the saving frees each array after the line that "
        "used it before, when the next one of them is allocated, or keeps one part",
        "reduce each array when it is made, such as in the loop or the hook, and keep the result",
    ),
)

_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
_TO_HOST = _COPY_KINDS.index("device_to_host")
# Torch's reductions read one array; other addresses among their arguments mean nothing.
_OF_TORCH = re.compile(r"\bat::native::reduce_kernel<")


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find lists of arrays that only wait for a reduction of each.

    Trigger: the last known use of at least four arrays is by work of one line that makes only
    arrays that are at most an eighth as large, and reads nothing else that was written since the
    array was made: for that it would have to wait. All of the arrays are made before the first of
    them is reduced: a line that reduces each some rounds later may be late on purpose. Meanwhile
    nothing is copied to the host, whose numbers the work could get as scalars. No other line uses
    an array afterwards that was made and reduced by the same lines, as it would use the best of
    several candidates. Torch's own arrays, such as those of a graph, do not count. Reductions in
    several steps, which the host may read, are those of
    `gpuviz.advice.reductions.reductions_at_last.reduced_at_last`, and parts of one array those of
    `gpuviz.advice.reductions.parts_reduced_at_last.parts_reduced_at_last`.

    Saving: the decrease of the peak if each array were freed after the line that used it before,
    and the next one of them has been allocated, as work of libraries may not name what it uses. The
    host may decide later what to keep: ``possible``.
    """
    blocks, line = _reduced(device)
    known = np.zeros(len(device.size), bool)
    for number in np.unique(line):
        lists = _lists(device, blocks[line == number])
        found = [each for each in lists if len(each) >= LEAST_ARRAYS]
        if found:
            known[np.concatenate(found)] = True
            yield _finding(device, np.concatenate(found), reduced_early(device, found))
    for each in reduced_at_last(device):
        if not known[each.blocks].any():
            yield _finding(device, each.blocks, each.change, is_accumulated=each.is_accumulated)
    for parts in parts_reduced_at_last(device):
        yield _finding_of_parts(device, parts)
    yield from _of_joined(device, known)


def _reduced(device: DeviceBlocks) -> tuple[np.ndarray, np.ndarray]:
    """Return the blocks of which the last use makes small ones, in the order of allocations.

    Also return a number for each, equal for those that one line reduces.
    """
    used, tables = device.used, device.recording.tables
    calls, can_wait = tables["api_calls"].num_rows, _can_wait(device)
    place = device.place[used.block]
    reads = np.zeros(calls, bool)
    reads[used.call[(place >= 0) & can_wait[place]]] = True
    rows = np.flatnonzero((place >= 0) & reads[used.call])
    rows = rows[numbered(used.call[rows], place[rows])[1]]
    call, block = used.call[rows], place[rows]
    is_new = used.first[device.number[block]] == call
    # A work area is freed at once, and nothing else uses it.
    is_result = is_new & (device.is_returned[block] | (used.last[device.number[block]] != call))
    made = np.bincount(call, device.size[block] * is_result, calls)
    is_reduced = ~is_new & can_wait[block]
    is_reduced &= (made[call] > 0) & (made[call] * LEAST_FACTOR <= device.size[block])
    last = device.last_known[block]
    both = line_numbers(device.recording, stacks_of(tables, np.concatenate([call, last])))
    line, of_last = np.split(both.astype(np.int64), 2)
    place = line * (int(device.site.max(initial=0)) + 1) + device.site[block]
    is_needed_later = is_reduced & (of_last != line)
    chosen = is_reduced & (last == call) & ~np.isin(place, place[is_needed_later])
    chosen &= phases_of(tables, stacks_of(tables, call)) != BACKWARD
    # Of two arrays that are reduced together, each has to wait for the other.
    chosen &= np.bincount(call, chosen, calls)[call] == 1
    if not chosen.any():
        return block[chosen], line[chosen]
    # What else the work reads has to be there when the array is made.
    reduces, begin = np.zeros(calls, bool), np.zeros(calls, np.int64)
    reduces[call[chosen]] = True
    begin[call[chosen]] = used.blocks.begin[device.number[block[chosen]]]
    others = np.flatnonzero(reduces[call] & ~chosen & ~is_new & ~_of_torch(device)[call])
    times = plain(tables["api_calls"]["time"])[call[others]]
    touches = np.flatnonzero(~reduces[used.call])
    is_late = written_before(device, touches, block[others], times) >= begin[call[others]]
    reduces[call[others[is_late]]] = False
    rows = np.flatnonzero(chosen & reduces[call])
    rows = rows[~_is_host_informed(device, block[rows])]
    rows = rows[np.argsort(device.begin[block[rows]], kind="stable")]
    return block[rows], line[rows]


def _of_joined(device: DeviceBlocks, known: np.ndarray) -> Iterator[Finding]:
    """Yield the findings of arrays that are joined only to be reduced, one for each joining line.

    Args:
        device: All blocks.
        known: Those that have a finding.
    """
    can = _can_wait(device)
    found = [
        each
        for each in joined_then_reduced(device)
        if can[each.parts].all() and not known[each.parts].any()
    ]
    joining = np.array([device.last_known[each.parts[0]] for each in found], np.int64)
    lines = line_numbers(device.recording, stacks_of(device.recording.tables, joining))
    for line in np.unique(lines).tolist():
        own = [each for each, of in zip(found, lines.tolist(), strict=True) if of == line]
        parts = reduced_early(device, [each.parts for each in own], are_of_calls=True)
        whole = np.concatenate([each.whole for each in own])
        change = Change(
            np.append(parts.blocks, whole),
            np.append(parts.begin, device.begin[whole]),
            np.append(parts.end, device.begin[whole]),
        )
        yield _finding(device, parts.blocks, change, is_joined=True)


def _can_wait(device: DeviceBlocks) -> np.ndarray:
    can = device.is_freed & ~device.is_initial & ~device.is_shared & (device.stack != 0)
    can &= device.size >= LEAST_BYTES
    if device.training is not None:
        can &= (device.training.phase != BACKWARD) & (device.training.freed_in != BACKWARD)
    able: np.ndarray = can
    return able


def _of_torch(device: DeviceBlocks) -> np.ndarray:
    """Return which rows of ``api_calls`` launch a reduction of torch."""
    tables, used = device.recording.tables, device.used
    seen = np.flatnonzero(used.activity >= 0)
    names = plain(tables["activities"]["name"])[used.activity[seen]]
    found = np.zeros(tables["api_calls"].num_rows, bool)
    found[used.call[seen[are_named(tables, names, _OF_TORCH.search)]]] = True
    return found


def _is_host_informed(device: DeviceBlocks, blocks: np.ndarray) -> np.ndarray:
    """Return for which blocks the host reads something between allocation and last use."""
    read = times_of_host_reads(device)
    begin, last = _span(device, blocks)
    informed: np.ndarray = np.searchsorted(read, begin) < np.searchsorted(read, last)
    return informed


def _span(device: DeviceBlocks, blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return when blocks are allocated and last used, in ns."""
    times = plain(device.recording.tables["api_calls"]["time"])
    return device.used.blocks.begin[device.number[blocks]], times[device.last_known[blocks]]


def _lists(device: DeviceBlocks, blocks: np.ndarray) -> list[np.ndarray]:
    """Return the lists that blocks in the order of their allocations form.

    All of a list are allocated before the first is reduced, and reduced before the next list.
    Without such an order, there are none.
    """
    begin, last = _span(device, blocks)
    starts = [0]
    first_reduced = last[0]
    for place in range(1, len(blocks)):
        if begin[place] > first_reduced:
            starts.append(place)
            first_reduced = last[place]
        first_reduced = min(first_reduced, last[place])
    edges = np.array(starts[1:], np.int64)
    if (np.maximum.accumulate(last)[edges - 1] > begin[edges]).any():
        return []
    return np.split(blocks, edges)


def _finding(
    device: DeviceBlocks,
    blocks: np.ndarray,
    change: Change,
    *,
    is_accumulated: bool = False,
    is_joined: bool = False,
) -> Finding:
    early = change.blocks[change.end <= device.peak_place]
    at_peak = blocks[device.at_peak[blocks] & np.isin(blocks, early)]
    at_peak = at_peak if len(at_peak) else blocks
    size = format_bytes(int(device.size[at_peak].sum()))
    line = named(*device.lines.last_use(at_peak))
    these = f"these {format_count(len(at_peak))} arrays"
    title = f"{size} of the peak is kept until {line} reduces each array to a small one."
    reason = (
        f"Nothing else uses {these}. The results have at most an eighth of their bytes, and "
        "whatever else that line reads was known when each array was made."
    )
    advice = (
        "Reduce each array where it is made, such as in the loop, the generator or the hook, and "
        "keep the small result (`detach()` it, if autograd recorded it)."
    )
    if is_accumulated:
        title = (
            f"{size} of the peak is kept until {line} updates its result with one array after the "
            "other."
        )
        reason = (
            f"Nothing else uses {these}, nor the result until it has all of them, and whatever "
            "else that line reads was known when each array was made."
        )
        advice = (
            "Update the result with each array where it is made, such as in the loop, the "
            "generator or the hook, and keep no list of them."
        )
    elif is_joined:
        title = f"{size} of the peak is kept until {line} joins the arrays, which are only reduced."
        reason = (
            f"Nothing else uses {these}. What is computed from the joined ones, element by "
            "element, is only reduced to at most an eighth of their bytes, and each can be "
            "reduced for itself."
        )
        advice += " Combine the results: add up sums and counts, for example."
    elif _are_copied(device, at_peak):
        title = f"{size} of the peak is kept until {line} copies each array to the host."
        reason = f"Nothing else uses {these}, and nothing changes them until then."
        advice = (
            "Copy each array to the host where it is made, such as in the loop. The host waits "
            "there for the array, unless the copy is asynchronous and to pinned memory."
        )
    return Finding(
        rule="R63",
        title=title,
        reason=reason,
        change=advice,
        certainty="possible",
        device=device.device,
        lines=device.lines.lines_of(at_peak),
        evidence=device.lines.evidence(at_peak),
        lifetimes=change,
    )


def _finding_of_parts(device: DeviceBlocks, parts: Parts) -> Finding:
    size = format_bytes(int(device.size[parts.blocks].sum()))
    first = int(parts.blocks[0])
    writes, reduces = (
        named(*device.lines.line_of_use(first, call)) for call in (parts.writes, parts.reduces)
    )
    return Finding(
        rule="R63",
        title=f"{size} of the peak is kept until {reduces} reduces what {writes} writes.",
        reason=(
            f"{writes} writes {format_count(parts.count)} parts of one array, each once. Nothing "
            "else reads it, and the result can be updated with each part when it is made."
        ),
        change=(
            "Keep no array of all parts: update one result in the loop (`total += part`, or "
            "`cupy.maximum(result, part, out=result)`; divide by their number for a mean), or "
            "reduce each part there, if each is reduced for itself. Leave NaN out if the reduction "
            "does, as `cupy.nansum`. Sums of float16 or of integers need a wider "
            "type, as the reduction has, and additions in another order round differently."
        ),
        certainty="possible",
        device=device.device,
        lines=device.lines.lines_of(parts.blocks),
        evidence=device.lines.evidence(parts.blocks),
        lifetimes=parts.change,
    )


def _are_copied(device: DeviceBlocks, blocks: np.ndarray) -> bool:
    """Return whether the last known use of all of some blocks is a copy to the host."""
    activities = device.recording.tables["activities"]
    is_to_host = codes(activities["copy_kind"], _COPY_KINDS) == _TO_HOST
    correlations = plain(activities["correlation"])[is_to_host]
    calls = plain(device.recording.tables["api_calls"]["correlation"])[device.last_known[blocks]]
    return bool(np.isin(calls, correlations).all())
