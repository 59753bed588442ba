"""R67: views of parts keep whole arrays allocated."""

from collections.abc import Iterator

import numpy as np

from gpuviz.advice.arrays.deletions import is_deleted_in_round
from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.used_parts import UsedParts, used_parts
from gpuviz.advice.finding import Finding, named
from gpuviz.advice.reductions.reduction_times import times_of_host_reads
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.rule import Rule
from gpuviz.analysis.pools import is_torchs
from gpuviz.data.columns import plain
from gpuviz.quantities import format_bytes, format_count

RULES = (
    Rule(
        "R67",
        "views that keep whole arrays",
        "at least three arrays of a line, or fewer that are a quarter of the peak, are allocated "
        "at the peak after the last work that may use them as a whole, and later work reads one "
        "part of each, together at most a quarter of their bytes; how much a copy, an elementwise "
        "function of CuPy or a `concatenate` reads is known, and any other work may use the whole "
        "array; the saving frees each array when the next one of the line has been made, or at "
        "once if the loop deletes its variable, and keeps a copy of the part, in each round of a "
        "loop",
        "`x[...].copy()`, for PyTorch `x[...].clone()`: a view keeps its whole array allocated",
    ),
)

_LEAST_ARRAYS = 3
# Of fewer arrays: the part of the peak that they are, at least.
_LEAST_SHARE = 1 / 4


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find arrays at the peak of which only small parts are used later.

    Trigger: see `gpuviz.advice.arrays.used_parts.used_parts`. Fewer than three arrays count if they
    are a quarter of the peak.

    Saving: the decrease of the peak if each array were freed after its last use as a whole, but not
    until its line has made the next one, for which a variable of a loop may wait unless the loop
    deletes it, and an array of the size of its part lived from that use on. All rounds of a loop
    count. If the host reads something meanwhile, it may decide which part is needed: ``possible``.
    """
    for parts in used_parts(device):
        kept = parts.blocks[parts.is_kept]
        size = int(device.size[kept].sum())
        if len(kept) >= _LEAST_ARRAYS or size >= device.peak.bytes * _LEAST_SHARE:
            yield _finding(device, parts)


def _change(device: DeviceBlocks, parts: UsedParts) -> Change:
    blocks = parts.blocks
    begin, end = device.begin[blocks], device.end[blocks]
    # The last one of a round is freed before the next round makes the first.
    is_last = np.append(begin[1:] >= end[:-1], True)
    following = np.where(is_last, begin, np.append(begin[1:], 0))
    if is_deleted_in_round(device, int(device.stack[blocks[0]])):
        following = begin
    copied = np.clip(device.after_lines(parts.whole), begin, end)
    # An array is there while its part is copied, and in a loop while the next one is made.
    freed = np.minimum(np.maximum(copied, following) + 1, end)
    return Change(
        np.append(blocks, blocks),
        np.append(begin, copied),
        np.append(freed, end),
        np.append(device.size[blocks], parts.bytes),
    )


def _finding(device: DeviceBlocks, parts: UsedParts) -> Finding:
    blocks, whole, last = (each[parts.is_kept] for each in (parts.blocks, parts.whole, parts.last))
    is_one = len(blocks) == 1
    line = device.lines.line_of(blocks)
    held, used = format_bytes(int(device.size[blocks].sum())), format_bytes(parts.used_bytes)
    these = "the array" if is_one else f"these {format_count(len(blocks))} arrays"
    after, later = (_latest_use(device, blocks, calls) for calls in (whole, last))
    copy = "clone" if _are_of_torch(device, blocks) else "copy"
    return Finding(
        rule="R67",
        title=f"{held} from {named(line.site, line.source)} is kept at the peak for "
        f"{'a part' if is_one else 'parts'} of at most {used}.",
        reason=f"Nothing uses {these} as a whole after {after}. The last use of "
        f"{'a part' if is_one else 'their parts'} is {later}. A view, such as a slice, keeps its "
        "whole array allocated.",
        change=f"Keep a copy of {'the part' if is_one else 'each part'} instead of a view: "
        f"`x[...].{copy}()`, as soon as it is known which part is needed. Then the whole "
        f"{'array' if is_one else 'arrays'} can be freed; delete (`del`) a variable that keeps "
        f"{'it' if is_one else 'the last one'}.",
        certainty="possible" if _is_host_informed(device, whole, last) else "likely",
        device=device.device,
        lines=(line,),
        evidence=device.lines.evidence(blocks),
        lifetimes=_change(device, parts),
    )


def _latest_use(device: DeviceBlocks, blocks: np.ndarray, calls: np.ndarray) -> str:
    latest = int(np.argmax(device.call_times[calls]))
    return device.lines.named_use(int(blocks[latest]), int(calls[latest]))


def _are_of_torch(device: DeviceBlocks, blocks: np.ndarray) -> bool:
    pools = plain(device.recording.tables["memory_events"]["pool"])
    return bool(is_torchs(pools[device.used.blocks.alloc[device.number[blocks]]]).all())


def _is_host_informed(device: DeviceBlocks, whole: np.ndarray, last: np.ndarray) -> bool:
    """Return whether the host reads something before the first part, after its whole array."""
    reads, times = times_of_host_reads(device), device.call_times
    begin, end = times[whole], times[last].min()
    return bool((np.searchsorted(reads, begin) < np.searchsorted(reads, end)).any())
