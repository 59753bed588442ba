"""R45: arrays that nothing uses any more are still allocated at the peak."""

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.advice.finding import Finding, named
from gpuviz.advice.memory_changes import Change, DeviceBlocks, changes_by_line
from gpuviz.advice.rule import Rule
from gpuviz.quantities import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

RULES = (
    Rule(
        "R45",
        "arrays that nothing uses any more at the peak",
        "they are last used by a line that ends before the peak, and freed after it",
        "`del` after that line; several arrays of one line: drop the references, such as a list",
    ),
)


def find(device: DeviceBlocks) -> "Iterator[Finding]":
    """Find the lines whose arrays are dead at the peak.

    Trigger: blocks that one line allocated are allocated at the peak, their last use is before it,
    and they are freed after it. The saving is the decrease of the peak if every block of that line
    were freed right after its last use. Blocks that the recording does not free are not counted: a
    later cell may use them. Neither are those that nothing reads, which R01 finds, nor those
    without a call stack: nobody could tell which variable to delete.
    """
    end = np.where(device.is_freed & device.is_used, device.last, device.end)
    dead = device.at_peak & (end <= device.peak_place) & ~device.is_unread & (device.stack != 0)
    for blocks, change, saved in changes_by_line(device, dead, device.begin, end):
        yield _finding(device, blocks, change, saved)


def _finding(device: DeviceBlocks, blocks: "NDArray[Any]", change: Change, saved: int) -> Finding:
    line = device.line_of(blocks)
    last_use = named(*device.last_use(blocks))
    is_one = len(blocks) == 1
    return Finding(
        rule="R45",
        title=f"{format_bytes(int(device.size[blocks].sum()))} from "
        f"{named(line.site, line.source)} is still allocated at the peak, "
        "where nothing uses it any more.",
        reason=f"Nothing uses {'the array' if is_one else f'these {len(blocks)} arrays'} after "
        f"{last_use}. The peak is reached by {named(*device.peak_line)}.",
        change=f"Delete it (`del`) after {last_use}."
        if is_one
        else f"Keep no reference to them after {last_use}: variables, or a list that collects the "
        "arrays of a loop.",
        certainty="likely",
        device=device.device,
        saved_bytes=saved,
        lines=(line,),
        evidence=device.evidence(blocks),
        lifetimes=change,
    )
