"""R01: arrays that nothing uses are allocated at the peak."""

from typing import TYPE_CHECKING, Any

from gpuviz.advice.finding import Finding, named
from gpuviz.advice.memory_changes import Change, DeviceBlocks
from gpuviz.advice.own_lines import is_own
from gpuviz.advice.schedule import KINDS
from gpuviz.analysis.columns import codes
from gpuviz.quantities import format_bytes, format_counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


def find(device: DeviceBlocks) -> "Iterator[Finding]":
    """Find the lines that allocate arrays which nothing uses.

    Trigger: the program itself allocates the blocks on one line, frees all of them in the
    recording, and nothing uses any of them, apart from memsets, which create arrays of zeros. The
    saving is the decrease of the peak without them. A line that also allocates blocks which are
    used may need to know the others' size in advance, so it is not counted.
    """
    import numpy as np

    is_needed = ~device.is_freed | device.is_initial | device.is_shared | _is_read(device)
    is_needed |= ~is_own(device.recording, device.stack)
    unused = device.at_peak & ~np.isin(device.site, device.site[is_needed])
    for site in np.unique(device.site[unused]).tolist():
        blocks = np.flatnonzero(device.site == site)
        change = Change(blocks, device.begin[blocks], device.begin[blocks])
        saved = device.saving(change)
        if saved:
            yield _finding(device, np.flatnonzero(unused & (device.site == site)), change, saved)


def _is_read(device: DeviceBlocks) -> "NDArray[Any]":
    """Return whether something other than a memset uses each block, or may use it."""
    import numpy as np

    used = device.used
    kinds = codes(device.recording.tables["activities"]["kind"], KINDS)
    is_memset = (used.activity >= 0) & (kinds[used.activity] == KINDS.index("memset"))
    by_others = np.zeros(len(used.blocks), bool)
    by_others[used.block[~is_memset]] = True
    found: NDArray[Any] = by_others[device.number] | ~device.is_seen
    return found


def _finding(device: DeviceBlocks, blocks: "NDArray[Any]", change: Change, saved: int) -> Finding:
    line = device.line_of(blocks)
    number = format_counted(len(change.blocks), "array")
    only_fills = " Only memsets write there." if device.is_used[change.blocks].any() else ""
    return Finding(
        rule="R01",
        title=f"{format_bytes(int(device.size[blocks].sum()))} from "
        f"{named(line.site, line.source)} is allocated at the peak, but nothing uses it.",
        reason=f"No kernel or copy receives an address in the {number} of this line.{only_fills}",
        change=f"Remove {named(line.site, line.source)}.",
        certainty="likely",
        device=device.device,
        saved_bytes=saved,
        lines=(line,),
        evidence=device.evidence(blocks),
        lifetimes=change,
    )
