"""R05: arrays stay on the GPU at the peak although nothing uses them for a long time."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.finding import Finding, as_subject, named
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.rule import LEAST_BYTES, Rule
from gpuviz.advice.source.own_lines import is_own
from gpuviz.analysis.launches import stacks_of
from gpuviz.data.columns import plain
from gpuviz.quantities import format_bytes, format_duration

RULES = (
    Rule(
        "R05",
        "arrays that nothing uses for a long time at the peak",
        "the GPU uses them before and after the peak, and in between it has more time than copies "
        "of all these arrays to the host and back at 25 GB/s and 1 ms; at least 5 % of the peak "
        "and 8 MiB",
        "compute them again, or copy them to pinned memory meanwhile",
        is_trade=True,
    ),
)

# Of a copy from or to pinned memory, in bytes per second: PCIe 4 with 16 lanes.
_RATE = 25e9
# For the calls of both copies, and for what they wait for.
_SPARE_NS = 1_000_000
# Of the peak; less is not worth two copies, and neither is what no finding is shown for.
_LEAST_SHARE = 0.05


@dataclass(frozen=True, eq=False, slots=True)
class _Pauses:
    """Long times without a use of a block, in columns, by block and time.

    Attributes:
        block: Indices of the device's blocks.
        before: Rows of ``api_calls`` of the uses before them.
        after: Rows of ``api_calls`` of the uses after them.
        begin: The places after the lines of the uses before.
        end: The places before the lines of the uses after.
        length: Their lengths on the GPU, in ns.
    """

    block: np.ndarray
    before: np.ndarray
    after: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    length: np.ndarray


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find the lines whose arrays could be on the host at the peak.

    Trigger: blocks that one line allocated are allocated at the peak, between two uses by different
    lines, or by two runs of one, the first of which does more than fill them (what is only filled
    could be filled later: R03). The line of the first does not go on up to the peak. On the GPU,
    these are apart for at least the time of copies to the host and back at 25 GB/s, of all of the
    line's blocks that are at the peak, and 1 ms. The saving, at least 5 % of the peak and 8 MiB, is
    the decrease of the peak if each block of that line with such a pause were freed during all of
    them, and after its last use.

    Arrays that torch keeps itself do not count: R52 is about those of its graphs. Neither do those
    that a function of a library makes, such as the state of a random number generator. A copy to
    the host and back is the program's decision: ``possible``.
    """
    pauses = _pauses(device)
    place = device.peak_place
    at_peak = (pauses.begin <= place) & (pauses.end > place)
    sites = device.site[pauses.block]
    for site in np.unique(sites[at_peak]).tolist():
        chosen = np.flatnonzero(sites == site)
        there = chosen[at_peak[chosen]]
        size = int(device.size[pauses.block[there]].sum())
        if pauses.length[there].min() < _copies_ns(size) + _SPARE_NS:
            continue
        block, before = int(pauses.block[there[0]]), int(pauses.before[there[0]])
        if device.lines.is_in_call_of_peak(block, before):
            continue
        change = _change(device, pauses, chosen)
        if device.replay.saving(change) >= max(_LEAST_SHARE * device.peak.bytes, LEAST_BYTES):
            yield _finding(device, pauses, there, change)


def _copies_ns(size: Any) -> Any:
    """Return how long copies of some bytes to the host and back take, in ns."""
    return 2e9 * size / _RATE


def _pauses(device: DeviceBlocks) -> _Pauses:
    used, schedule, tables = device.used, device.schedule, device.recording.tables
    # By block, then in the order of the calls.
    order = np.argsort(used.block, kind="stable")
    order = order[device.place[used.block[order]] >= 0]
    first, second = order[:-1], order[1:]
    known = (used.activity[first] >= 0) & (used.activity[second] >= 0)
    known &= (used.block[first] == used.block[second]) & (used.call[first] != used.call[second])
    if device.training is not None:
        known &= ~device.training.is_held[device.place[used.block[first]]]
    first, second = first[known], second[known]
    block, before, after = device.place[used.block[first]], used.call[first], used.call[second]
    work = [schedule.number[used.activity[each]] for each in (first, second)]
    length = schedule.begin[work[1]] - schedule.end[work[0]]
    is_long = length >= _copies_ns(device.size[block]) + _SPARE_NS
    times = plain(tables["api_calls"]["time"])
    needed = device.needed.first[used.block[first]]
    is_long &= (needed >= 0) & (times[before] >= times[needed])
    unknown = times[used.opaque]
    is_long &= np.searchsorted(unknown, times[before]) == np.searchsorted(
        unknown, times[after], side="right"
    )
    is_long &= ~device.is_shared[block]
    # What a function of a library makes may be its state, such as that of a generator.
    is_long &= is_own(device.recording, device.stack[block])
    is_long &= (stacks_of(tables, before) != 0) & (stacks_of(tables, after) != 0)
    begin, end = device.after_lines(before), device.before_lines(after)
    rows = np.flatnonzero(is_long & (begin < end))
    rows = rows[np.lexsort((begin[rows], block[rows]))]
    block = block[rows]
    begin, end = (
        np.clip(each[rows], device.begin[block], device.end[block]) for each in (begin, end)
    )
    return _Pauses(block, before[rows], after[rows], begin, end, length[rows])


def _change(device: DeviceBlocks, pauses: _Pauses, chosen: np.ndarray) -> Change:
    """Return the lifetimes of blocks that are freed during their pauses and after the last use."""
    blocks, first = np.unique(pauses.block[chosen], return_index=True)
    every = np.concatenate([blocks, pauses.block[chosen]])
    begin = np.concatenate([device.begin[blocks], pauses.end[chosen]])
    order = np.lexsort((begin, every))
    # A part ends where the next pause begins, and the last one after the last use.
    end = np.insert(pauses.begin[chosen], np.append(first[1:], len(chosen)), device.last[blocks])
    return Change(every[order], begin[order], np.maximum(begin[order], end))


def _finding(device: DeviceBlocks, pauses: _Pauses, shown: np.ndarray, change: Change) -> Finding:
    blocks = pauses.block[shown]
    line = device.lines.line_of(blocks)
    before, after = (
        named(*device.lines.line_of_use(int(blocks[0]), int(calls[shown][0])))
        for calls in (pauses.before, pauses.after)
    )
    again = "again" if before == after else after
    size = int(device.size[blocks].sum())
    length = format_duration(int(pauses.length[shown].min()))
    them = "it" if len(blocks) == 1 else "them"
    return Finding(
        rule="R05",
        title=f"{format_bytes(size)} from {named(line.site, line.source)} is allocated at the "
        f"peak, but nothing uses {them} for {length}.",
        reason=f"{as_subject(before)} uses {them} before and {again} afterwards. Meanwhile the "
        f"peak is reached by {named(*device.lines.peak_line)}. A copy to pinned memory of the host "
        f"and back takes about {format_duration(int(_copies_ns(size)))} (at 25 GB/s).",
        change=f"Compute {them} again, or copy {them} to pinned memory after {before} and back "
        f"before {'it runs again' if before == after else after}.",
        certainty="possible",
        device=device.device,
        lines=(line,),
        evidence=device.lines.evidence(blocks),
        lifetimes=change,
    )
