"""R04: a notebook keeps arrays that no cell uses any more."""

from collections.abc import Iterator

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.line_changes import changes_by_line
from gpuviz.advice.finding import Finding, named
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.rule import Rule
from gpuviz.data.columns import codes, plain
from gpuviz.data.tables import DICTIONARIES
from gpuviz.quantities import format_bytes, format_count

RULES = (
    Rule(
        "R04",
        "arrays that a notebook keeps, and no cell uses",
        "the top level of a cell allocated them, at least two cells began between their last use "
        "and the peak, and nothing uses them later; only possible if the line assigns them to a "
        "variable, which a later cell may be meant to use",
        "`del x`, a semicolon after a last expression, `%reset -f out`",
    ),
)

_RANGES = DICTIONARIES["ranges", "kind"]
# Cells that ran after the last use until the peak. After one, the next may have been written for
# the array.
_FEWEST_CELLS = 2
_MODULE = "<module>"


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find arrays of cells that are allocated at the peak, cells after their last use.

    Trigger: the top level of a notebook cell allocated the array, it is allocated at the peak, and
    at least two cells began between its last use and the peak; nothing uses it later. The notebook
    keeps it: by a variable, or, if the line assigns to none, by ``Out`` or an exception.

    The saving is the decrease of the peak if every array of that line were freed right after its
    last use. A later cell may be meant to use a variable, so that it is only ``possible``; it is
    ``likely`` if the line assigns to none.
    """
    begins = _cell_begins(device)
    names = _names(device)
    if not len(begins) or not any(each is not None for each in names.values()):
        return
    of_cell = np.array([names[stack] is not None for stack in device.stack.tolist()], bool)
    calls = device.used.last[device.number]
    times = plain(device.recording.tables["api_calls"]["time"])
    last = np.where(calls >= 0, times[calls], device.used.blocks.begin[device.number])
    until = int(np.searchsorted(begins, device.peak.time_ns, side="right"))
    passed = until - np.searchsorted(begins, last, side="right")
    idle = of_cell & device.at_peak & (device.last <= device.peak_place)
    idle &= (passed >= _FEWEST_CELLS) & ~device.is_initial & ~device.is_shared
    end = np.where(idle, device.last, device.end)
    for blocks, change in changes_by_line(device, idle, device.begin, end):
        cells = int(passed[blocks].min())
        yield _finding(device, blocks, change, (names[int(device.stack[blocks[0]])], cells))


def _cell_begins(device: DeviceBlocks) -> np.ndarray:
    ranges = device.recording.tables["ranges"]
    is_cell = codes(ranges["kind"], _RANGES) == _RANGES.index("cell")
    begins, ends = (plain(ranges[name])[is_cell] for name in ("time", "end"))
    # The cell that starts the recording may have no time in it.
    return np.sort(begins[begins != ends])


def _names(device: DeviceBlocks) -> dict[int, str | None]:
    """Return the names that the line of each stack assigns to; None if it is not of a cell."""
    frames = device.recording.tables["frames"]
    assigned = dict(zip(frames["id"].to_pylist(), frames["assigned"].to_pylist(), strict=True))
    stacks = device.recording.tables["stacks"]
    user = dict(zip(stacks["id"].to_pylist(), stacks["user_frame"].to_pylist(), strict=True))
    found = dict[int, str | None]()
    for stack in set(device.stack.tolist()):
        frame = device.recording.call_stacks.user_frame(stack)
        is_cell = frame is not None and frame.cell and frame.name == _MODULE and frame.source
        found[stack] = assigned[user[stack]] if is_cell else None
    return found


def _finding(
    device: DeviceBlocks,
    blocks: np.ndarray,
    change: Change,
    kept: tuple[str | None, int],
) -> Finding:
    name, cells = kept
    line = device.lines.line_of(blocks)
    used = blocks[device.is_used[blocks]]
    last = named(*device.lines.last_use(used)) if len(used) else ""
    size = format_bytes(int(device.size[blocks].sum()))
    return Finding(
        rule="R04",
        title=f"The notebook keeps {size} from {named(line.site, line.source)}, which its last "
        f"{format_count(cells)} cells did not use.",
        reason=(f"Its last use is {last}." if last else "Nothing uses it.")
        + f" The peak is reached by {named(*device.lines.peak_line)}.",
        change=_advice(name, last),
        certainty="possible" if name else "likely",
        device=device.device,
        lines=(line,),
        evidence=device.lines.evidence(blocks),
        lifetimes=change,
    )


def _advice(name: str | None, last: str) -> str:
    after = f" after {last}" if last else ""
    if name:
        return f"Delete it (`del {name}`){after}, if no later cell needs it."
    return (
        "No variable has this array: `Out` keeps it if the cell displayed it, or a stored "
        "exception or a container does. End the line with a semicolon, or run `%reset -f out`."
    )
