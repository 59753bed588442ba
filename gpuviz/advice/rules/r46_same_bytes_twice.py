"""R46: parts and the array that they were joined to are allocated at the same time."""

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.advice.finding import Finding, named
from gpuviz.advice.memory_changes import Change, DeviceBlocks
from gpuviz.data.columns import plain
from gpuviz.data.strings import texts
from gpuviz.data.tables import DICTIONARIES
from gpuviz.quantities import format_bytes, format_counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

# CuPy's kernels that join arrays, of `concatenate`, `stack` and what is made of them.
_JOIN = re.compile(r"cupy_concatenate")
_MODES = DICTIONARIES["launch_blocks", "mode"]


def find(device: DeviceBlocks) -> "Iterator[Finding]":
    """Find the lines that join arrays, which are not used afterwards, to one of their size.

    Trigger: a kernel that joins arrays first uses block b; the blocks that one line allocated, and
    which nothing uses after that kernel, have together exactly as many requested bytes as b; they
    are freed in the recording. The saving is the decrease of the peak if b had been allocated with
    the first of them, and they had been parts of it.
    """
    used = device.used
    joins = _joins(device)
    for target in joins.tolist():
        call = used.first[device.number[target]]
        parts = np.flatnonzero(
            (used.last[device.number] == call)
            & device.is_freed
            & ~device.is_shared
            & (device.begin < device.begin[target])
        )
        for site in np.unique(device.site[parts]).tolist():
            of_site = parts[device.site[parts] == site]
            if len(of_site) < 2 or device.requested[of_site].sum() != device.requested[target]:  # noqa: PLR2004 - one part is a copy
                continue
            blocks = np.append(of_site, target)
            begin = np.append(device.begin[of_site], device.begin[of_site].min())
            end = np.append(device.begin[of_site], device.end[target])
            change = Change(blocks, begin, end, group=np.zeros(len(blocks), np.int64))
            saved = device.saving(change)
            if saved:
                yield _finding(device, target, of_site, change, saved)


def _joins(device: DeviceBlocks) -> "NDArray[Any]":
    """Return the blocks that are first used by a kernel that joins arrays."""
    used, tables = device.used, device.recording.tables
    names = plain(tables["activities"]["name"])
    distinct = np.unique(names)
    joining = distinct[[bool(_JOIN.match(text)) for text in texts(tables, distinct)]]
    seen = used.activity >= 0
    is_join = seen & np.isin(names[np.maximum(used.activity, 0)], joining)
    is_join &= used.first[used.block] == used.call
    joined = np.unique(used.block[is_join])
    return np.flatnonzero(np.isin(device.number, joined) & ~device.is_initial)


def _finding(
    device: DeviceBlocks, target: int, parts: "NDArray[Any]", change: Change, saved: int
) -> Finding:
    to, of = device.line_of(np.array([target])), device.line_of(parts)
    return Finding(
        rule="R46",
        title=f"{named(to.site, to.source)} holds the same "
        f"{format_bytes(int(device.size[target]))} twice.",
        reason=f"It joins {format_counted(len(parts), 'array')} from "
        f"{named(of.site, of.source)}, which nothing uses afterwards.",
        change="Allocate the whole array first, and write each part into a slice of it.",
        certainty="likely",
        device=device.device,
        saved_bytes=saved,
        lines=(to, of),
        evidence=device.evidence(change.blocks),
        lifetimes=change,
    )
