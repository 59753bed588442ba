"""R09: memory grows with every iteration, and nothing uses it again."""

from collections.abc import Iterator

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.finding import Finding, named
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.rule import Rule
from gpuviz.advice.source.libraries import by_library
from gpuviz.analysis.growing_lines import GrowingLine
from gpuviz.analysis.later_use import LEAST_AGE
from gpuviz.quantities import format_bytes, format_count

RULES = (
    Rule(
        "R09",
        "memory that grows with each iteration",
        "the live memory of a line [grows](../how-to/leaks.md) with the iterations or with the "
        "runs of a cell, and of the arrays older than three of them, none is used after the one "
        "that follows its own",
        "drop the references: a list, a cache, a closure, an exception with its traceback, outputs",
    ),
)

_UNIT = {"iteration": "iteration", "cell": "run of the cell"}
_UNITS = {"iteration": "iterations", "cell": "runs of the cell"}
_TO_HOST = {"torch": "`x.cpu()`", "numba": "`x.copy_to_host()`", "jax": "`jax.device_get(x)`"}
_OPEN = " They exist until the recording ends: if the program uses them later, keep them."
_OTHERS = " Others of the line are used later: if these may be, as of a list to go back, keep them."
_BOUNDED = (
    " If the program goes back only a few of these arrays, keep no more of them, such as in a "
    "`collections.deque(maxlen=...)`."
)
_LEFT = (
    " A request for memory failed while they existed: if the program needs them later, keep them."
)


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find lines that keep arrays of each iteration, or of each run of a cell, for nothing.

    Trigger: the live memory of a line grows with the iterations or runs (see
    `gpuviz.analysis.growth.growth`), and of the blocks that it keeps for more than three of them,
    none is used after the iteration that follows its own. Blocks that another stream uses must
    outlive that work, and are not counted; what graphs of autograd keep is R50's, and what only the
    garbage collector frees is R74's.

    The saving is the decrease of the peak if each block that the line keeps were freed right after
    its last use. Of iterations, if the recording ends before any of them is freed, what follows may
    use them: ``possible``, and so it is if the program uses other arrays of the line later.
    """
    for line in device.growing:
        if line.use != "unused":
            continue
        place = device.place[line.blocks]
        blocks = place[~device.is_shared[place] & ~device.is_collected[place]]
        change = Change(blocks, device.begin[blocks], device.last[blocks])
        if len(blocks):
            yield _finding(device, line, blocks, change)


def _finding(
    device: DeviceBlocks,
    line: GrowingLine,
    blocks: np.ndarray,
    change: Change,
) -> Finding:
    shown = device.lines.holding_line_of(blocks[-1:])
    place = named(shown.site, shown.source)
    unit = _UNIT[line.by]
    is_open = line.by == "iteration" and not device.is_freed[blocks].any()
    is_left = bool((device.used.blocks.end[device.number[blocks]] >= 0).any())
    are_others_used = _are_others_used(device, blocks)
    until = _OTHERS if are_others_used else _LEFT if is_left else _OPEN
    is_open |= are_others_used
    return Finding(
        rule="R09",
        title=f"{place} keeps {_pace(line)} more with each {unit}, and nothing uses it again.",
        reason=(
            f"After {format_count(line.periods)} {_UNITS[line.by]}, it keeps "
            f"{format_bytes(line.live_bytes)} in {format_count(len(line.blocks))} arrays. "
            f"Of the arrays older than three {_UNITS[line.by]}, none was used later than one "
            f"{unit} after its own."
            f"{until if is_open else ''}"
        ),
        change=_advice(device, blocks) + (_BOUNDED if are_others_used else ""),
        certainty="possible" if is_open else "likely",
        device=device.device,
        lines=(device.lines.holding_line_of(blocks),),
        evidence=device.lines.evidence(blocks),
        lifetimes=change,
    )


def _are_others_used(device: DeviceBlocks, blocks: np.ndarray) -> bool:
    """Return whether other arrays of a line are used after they were made, and none of these.

    The newest of these do not count: the program may not have come to use them.
    """
    is_unused = device.is_used_only_when_made
    old = blocks[np.argsort(device.begin[blocks], kind="stable")][:-LEAST_AGE]
    others = np.setdiff1d(np.flatnonzero(device.site == device.site[old[0]]), blocks)
    return bool(is_unused[old].all() and not is_unused[others].all())


def _pace(line: GrowingLine) -> str:
    grown = line.growth
    assert grown is not None  # noqa: S101 - see find
    slope = format_bytes(round(grown.slope))
    low, high = (format_bytes(round(each)) for each in (grown.low, grown.high))
    return slope if low == high else f"{slope} ({low} to {high})"


def _advice(device: DeviceBlocks, blocks: np.ndarray) -> str:
    used = blocks[device.is_used[blocks]]
    after = f" after {named(*device.lines.last_use(used[:1]))}" if len(used) else ""
    copy = by_library(device.recording, _TO_HOST, "`cupy.asnumpy`")
    return (
        f"Drop the references to these arrays{after}. Something keeps them: a list, a cache, "
        "a closure, the traceback of an exception, or the outputs of the notebook. If the host "
        f"needs the values later, keep a copy in its memory ({copy})."
    )
