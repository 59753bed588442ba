"""R02: arrays are allocated before the peak, but nothing uses them until after it."""

from collections.abc import Iterator

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.line_changes import changes_by_line
from gpuviz.advice.finding import Finding, named
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.rule import Rule
from gpuviz.quantities import format_bytes, format_counted

RULES = (
    Rule(
        "R02",
        "arrays that nothing uses yet at the peak",
        "the line that uses them first begins after the peak",
        "allocate them right before that line",
    ),
)
_MOST_USES = 4


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find the lines that allocate arrays too early.

    Trigger: blocks that one line allocated are allocated at the peak, and the line that first uses
    each of them begins after it. The saving is the decrease of the peak if every block of that line
    were allocated right before the line of its first use. Blocks from before the recording are not
    counted: they may have been used there.
    """
    begin = np.where(device.is_used, device.first, device.begin)
    idle = device.at_peak & (begin >= device.peak_place) & (begin > device.begin)
    for blocks, change in changes_by_line(device, idle, begin, device.end):
        yield _finding(device, blocks, change)


def _change(device: DeviceBlocks, blocks: np.ndarray) -> str:
    """Return where to allocate some blocks of a line, of which each may have its own first use."""
    rows = device.used.first[device.number[blocks]]
    uses: dict[tuple[int, int], str] = {}
    sizes: dict[str, int] = {}
    sites = device.site[blocks].tolist()
    for block, site, row in zip(blocks.tolist(), sites, rows.tolist(), strict=True):
        if (site, row) not in uses:
            uses[site, row] = device.lines.named_use(block, row)
        use = uses[site, row]
        sizes[use] = sizes.get(use, 0) + int(device.size[block])
    if len(sizes) == 1:
        return f"Allocate {'it' if len(blocks) == 1 else 'them'} right before {next(iter(sizes))}."
    shown = [f"{format_bytes(size)} before {use}" for use, size in sizes.items()]
    more = len(shown) - _MOST_USES
    rest = f", and the others before {format_counted(more, 'more line')}" if more > 0 else ""
    listed = ", ".join(shown[:_MOST_USES])
    return f"Allocate each array right before its own first use: {listed}{rest}."


def _finding(device: DeviceBlocks, blocks: np.ndarray, change: Change) -> Finding:
    line = device.lines.line_of(blocks)
    first_use = named(*device.lines.first_use(blocks))
    is_one = len(blocks) == 1
    return Finding(
        rule="R02",
        title=f"{format_bytes(int(device.size[blocks].sum()))} from "
        f"{named(line.site, line.source)} is allocated at the peak, before anything uses it.",
        reason=f"The first use of {'the array' if is_one else f'these {len(blocks)} arrays'} is "
        f"{first_use}. The peak is reached by {named(*device.lines.peak_line)}.",
        change=_change(device, blocks),
        certainty="likely",
        device=device.device,
        lines=(line,),
        evidence=device.lines.evidence(blocks),
        lifetimes=change,
    )
