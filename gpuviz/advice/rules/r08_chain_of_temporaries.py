"""R08: elementwise operations of one line pass arrays on that a fused kernel would not need."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.advice.elementwise import type_bytes
from gpuviz.advice.finding import Finding, named
from gpuviz.advice.host_lines import line_numbers
from gpuviz.advice.memory_changes import Change, DeviceBlocks
from gpuviz.advice.own_lines import is_own
from gpuviz.advice.schedule import ScheduleChange
from gpuviz.analysis.launches import stacks_of
from gpuviz.data.first_rows import first_rows
from gpuviz.quantities import format_bytes, format_counted, format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

# An operator of Python or a call in the text of a line.
_OPERATION = re.compile(r"[-+*/%&|^<>~(]")
_COPIES = ("copy", "fill")
# A shorter kernel does not wait for memory: an empty one takes about 2 µs on an H100.
_SHORTEST_NS = 5_000
_MOST_NAMES = 4
# With the most bytes in temporary arrays.
_MOST_LINES = 8


@dataclass(frozen=True, eq=False, slots=True)
class _Chains:
    """Elementwise launches of which at least one reads the result of another, in columns.

    Attributes:
        launch: Indices of the device's elementwise launches, in the order of their calls.
        line: A number of the line that calls each.
        chain: The launch that ends the chain of each.
        temporary: The block that each writes for the next, an index of the device's blocks; -1 of
            the last.
        passed: The bytes that each writes for the next, and reads from those before.
    """

    launch: "NDArray[Any]"
    line: "NDArray[Any]"
    chain: "NDArray[Any]"
    temporary: "NDArray[Any]"
    passed: "NDArray[Any]"

    def of(self, rows: "NDArray[Any]") -> "_Chains":
        """Return some rows."""
        columns = (self.launch, self.line, self.chain, self.temporary, self.passed)
        return _Chains(*(column[rows] for column in columns))


def find(device: DeviceBlocks) -> "Iterator[Finding]":
    """Find the lines whose elementwise operations could be one kernel.

    Trigger: elementwise functions of CuPy that one line of the program calls; one writes an array
    with as many elements as the next one writes, which reads it; nothing else uses the array, and
    the recording frees it. The text of the line has at least as many operators and calls as a chain
    has launches: otherwise each round of a loop may use the result of the round before.

    Savings: the decrease of the peak without these arrays. And the recording's `Schedule`, replayed
    with one kernel for each chain, if the line's kernels take at least 5 µs (median). It takes as
    long as the longest of them, or as the arrays that remain take at the highest rate of the line's
    kernels. The host's time for a launch is not saved, because a call of a fused function takes
    longer.
    """
    chains = _chains(device)
    lines, number = np.unique(chains.line, return_inverse=True)
    passed = np.bincount(number, chains.passed, minlength=len(lines))
    for line in np.argsort(-passed, kind="stable")[:_MOST_LINES]:
        found = chains.of(np.flatnonzero(number == line))
        _, source = _site(device, found)
        longest = int(np.unique(found.chain, return_counts=True)[1].max())
        if longest > len(_OPERATION.findall(source)):
            continue
        finding = _finding(device, found)
        if finding.saved_bytes or finding.saved_ns:
            yield finding


def _chains(device: DeviceBlocks) -> _Chains:
    used, launches, place = device.used, device.elementwise, device.place
    target = launches.target
    stacks = stacks_of(device.recording.tables, launches.call)
    line = line_numbers(device.recording, stacks)
    # A copy can be a change of type within an expression.
    able = launches.where(lambda each: each.name not in _COPIES or len(set(each.types)) > 1)
    able &= launches.is_whole & is_own(device.recording, stacks) & (place[target] >= 0)
    uses = np.bincount(used.block, minlength=len(used.blocks))[target]
    following = first_rows(launches.call + 1, used.last[target] + 1)
    passes = able & (uses == 2) & (used.first[target] == launches.call)  # noqa: PLR2004 - a write and a read
    passes &= (following >= 0) & able[following] & (following != np.arange(len(launches)))
    passes &= (line[following] == line) & (target[following] != target)
    passes &= launches.elements[following] == launches.elements
    passes &= device.is_freed[place[target]] & device.is_seen[place[target]]
    passes &= ~device.is_shared[place[target]] & ~device.is_initial[place[target]]
    end = np.where(passes, following, np.arange(len(launches)))
    while (end[end] != end).any():
        end = end[end]
    size = np.where(passes, used.blocks.requested[target], 0)
    passed = size + np.bincount(following[passes], size[passes], minlength=len(size))
    rows = np.flatnonzero(passed > 0)
    temporary = np.where(passes, place[target], -1)
    return _Chains(rows, line[rows], end[rows], temporary[rows], passed[rows])


def _site(device: DeviceBlocks, chains: _Chains) -> tuple[str, str]:
    return device.site_of_call(int(device.elementwise.call[chains.launch[0]]))


def _finding(device: DeviceBlocks, chains: _Chains) -> Finding:
    launches, schedule = device.elementwise, device.schedule
    blocks = chains.temporary[chains.temporary >= 0]
    change = Change(blocks, device.begin[blocks], device.begin[blocks])
    work = np.searchsorted(schedule.rows, launches.activity[chains.launch])
    duration = schedule.duration.copy()
    duration[work] = _fused_durations(device, chains, duration[work])
    faster = ScheduleChange(duration=duration)
    total_ns = int(schedule.duration[work].sum())
    names = list(dict.fromkeys(launches.name(launch) for launch in chains.launch.tolist()))
    shown = ", ".join(f"`{name}`" for name in names[:_MOST_NAMES])
    more = " and others" if len(names) > _MOST_NAMES else ""
    line = device.line_of(blocks)
    size = format_bytes(int(device.size[blocks].sum()))
    return Finding(
        rule="R08",
        title=f"{named(*_site(device, chains))} writes {size} to temporary arrays and reads them "
        "once.",
        reason=f"{shown}{more} take {format_duration(total_ns)} in "
        f"{format_counted(len(chains.launch), 'launch', 'launches')}. "
        f"{format_counted(len(blocks), 'array')} of them "
        f"{'is' if len(blocks) == 1 else 'are'} only read by the next one; one kernel would keep "
        "the elements in registers.",
        change="Make one kernel of the expression, with `cupy.fuse` or `cupy.ElementwiseKernel`.",
        certainty="likely",
        device=device.device,
        saved_bytes=device.saving(change),
        saved_ns=schedule.saved_ns(faster),
        lines=(line,),
        evidence=schedule.evidence(work),
        lifetimes=change,
        schedule=faster,
    )


def _fused_durations(
    device: DeviceBlocks, chains: _Chains, duration: "NDArray[Any]"
) -> "NDArray[Any]":
    """Return the share of each launch in the time of one kernel for its chain, in ns."""
    if np.median(duration) < _SHORTEST_NS:
        return duration
    launches = device.elementwise
    read = np.minimum(
        device.used.blocks.requested[launches.source],
        launches.elements[launches.launch] * int(type_bytes().max()),
    )
    moved = np.bincount(launches.launch, read, minlength=len(launches))
    moved += launches.elements * type_bytes()[launches.output]
    moved = moved[chains.launch]
    fastest = (moved / np.maximum(duration, 1)).max()
    ends, chain = np.unique(chains.chain, return_inverse=True)
    longest = np.zeros(len(ends), np.int64)
    np.maximum.at(longest, chain, duration)
    remaining = np.bincount(chain, moved - chains.passed)
    total = np.bincount(chain, duration).astype(np.int64)
    fused = np.minimum(np.maximum(longest, (remaining / fastest).astype(np.int64)), total)
    shares: NDArray[Any] = (duration * (fused / np.maximum(total, 1))[chain]).astype(np.int64)
    return shares
