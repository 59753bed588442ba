"""R07: an operation writes a new array where it could overwrite its input."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpuviz.advice.finding import Finding, named
from gpuviz.advice.memory_changes import Change, DeviceBlocks
from gpuviz.analysis.columns import plain
from gpuviz.analysis.launches import texts
from gpuviz.quantities import format_bytes
from gpuviz.recording.tables import DICTIONARIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

# CuPy names the kernels of its universal functions after them and the types of their arguments:
# `cupy_square__float32_float32` reads one array and writes another of the same type.
_UFUNC = re.compile(r"cupy_(?P<function>\w+?)__(?P<types>\w+)$")
_COPIES = ("copy", "fill")
# Of Python; other types are those of arrays.
_SCALARS = ("int", "float", "complex")
_MODES = DICTIONARIES["launch_blocks", "mode"]
_READ, _WRITE = _MODES.index("read"), _MODES.index("write")


@dataclass(frozen=True, eq=False, slots=True)
class _Pairs:
    """Inputs that could have been overwritten, and the outputs that were allocated instead.

    ``name`` has the ids of the kernels' names.
    """

    source: "NDArray[Any]"
    target: "NDArray[Any]"
    name: "NDArray[Any]"


def find(device: DeviceBlocks) -> "Iterator[Finding]":
    """Find the lines that could write into an array which they read last.

    Trigger: an elementwise function of CuPy reads block a once, writes block b first, has an input
    of the type of its output, both blocks have the same number of requested bytes, nothing uses a
    afterwards, and a is freed in the recording. If b is in the peak, the saving is the decrease of
    the peak if a held the result on this line, wherever it occurs. Elements could still be read in
    another order than they are written (a transposed input), which the recording does not tell.
    """
    import numpy as np

    pairs = _pairs(device)
    lines = device.site[pairs.target].astype(np.int64) << 32 | device.site[pairs.source]
    at_peak = device.at_peak[pairs.source] & device.at_peak[pairs.target]
    for line in np.unique(lines[at_peak]).tolist():
        rows = np.flatnonzero(lines == line)
        source, target = pairs.source[rows], pairs.target[rows]
        blocks = np.concatenate([source, target])
        begin = device.begin[blocks]
        end = np.concatenate(
            [np.maximum(device.end[source], device.end[target]), device.begin[target]]
        )
        change = Change(blocks, begin, end)
        saved = device.saving(change)
        if saved:
            shown = rows[at_peak[rows]]
            yield _finding(device, pairs, shown, change, saved)


def _pairs(device: DeviceBlocks) -> _Pairs:
    """Return the pairs of blocks of a device that meet the trigger."""
    import numpy as np

    used, tables = device.used, device.recording.tables
    names = plain(tables["activities"]["name"])
    touched = np.flatnonzero(used.activity >= 0)
    name = names[used.activity[touched]]
    distinct = np.unique(name)
    inputs = np.array([_inputs(text) for text in texts(tables, distinct)], np.int64)
    inputs = inputs[np.searchsorted(distinct, name)]
    touched, inputs = touched[inputs > 0], inputs[inputs > 0]
    call, block, mode = used.call[touched], used.block[touched], used.mode[touched]
    _, group, count = np.unique(
        np.stack([call, block]), axis=1, return_inverse=True, return_counts=True
    )
    # An array that is two inputs may be read in two orders.
    _, of_call, reads = np.unique(
        np.where(mode == _READ, call, -1), return_inverse=True, return_counts=True
    )
    once = (count[group.ravel()] == 1) & ((mode != _READ) | (reads[of_call.ravel()] == inputs))
    blocks = used.blocks
    freed = blocks.end >= 0
    is_source = once & (mode == _READ) & (used.last[block] == call) & freed[block]
    is_target = once & (mode == _WRITE) & (used.first[block] == call)
    target_call, row = np.unique(call[is_target], return_index=True)
    if not len(target_call):
        return _Pairs(target_call, target_call, target_call)
    target = block[is_target][row]
    rows = np.flatnonzero(is_source)
    match = np.minimum(np.searchsorted(target_call, call[rows]), len(target_call) - 1)
    source, target = block[rows], target[match]
    place = np.full(len(blocks), -1)
    place[device.number] = np.arange(len(device.number))
    fits = (target_call[match] == call[rows]) & (place[source] >= 0)
    fits &= blocks.requested[source] == blocks.requested[target]
    fits &= blocks.stream[source] == blocks.stream[target]
    fits &= ~device.is_shared[place[source]] & ~device.is_initial[place[target]]
    # Of several inputs, one can be overwritten.
    _, first = np.unique(call[rows[fits]], return_index=True)
    chosen = np.flatnonzero(fits)[first]
    activity = used.activity[touched[rows[chosen]]]
    return _Pairs(place[source[chosen]], place[target[chosen]], names[activity])


def _function(kernel: str) -> str:
    """Return the name of the universal function of a kernel."""
    match = _UFUNC.match(kernel)
    return match["function"] if match else ""


def _inputs(kernel: str) -> int:
    """Return how many arrays a kernel reads if it may write into one of them, else 0."""
    match = _UFUNC.match(kernel)
    if match is None or match["function"] in _COPIES:
        return 0
    *inputs, output = match["types"].split("_")
    return sum(each not in _SCALARS for each in inputs) if output in inputs else 0


def _finding(
    device: DeviceBlocks, pairs: _Pairs, rows: "NDArray[Any]", change: Change, saved: int
) -> Finding:
    import numpy as np

    source, target = pairs.source[rows], pairs.target[rows]
    to, of = device.line_of(target), device.line_of(source)
    function = _function(texts(device.recording.tables, pairs.name[rows[:1]])[0])
    size = format_bytes(int(device.size[target].sum()))
    return Finding(
        rule="R07",
        title=f"{named(to.site, to.source)} writes {size} to a new array instead of its input.",
        reason=f"`{function}` reads the array from {named(of.site, of.source)}, of the same size "
        "and type, for the last time; both are allocated at the peak.",
        change=f"Let `{function}` overwrite its input, with `out=` or an operator such as `+=`, if "
        "both have the same shape.",
        certainty="likely",
        device=device.device,
        saved_bytes=saved,
        lines=(to, of),
        evidence=device.evidence(np.concatenate([source, target])),
        lifetimes=change,
    )
