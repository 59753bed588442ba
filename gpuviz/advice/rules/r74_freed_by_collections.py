"""R74: arrays in reference cycles wait for the garbage collector."""

from collections.abc import Iterator

import numpy as np

from gpuviz.advice.arrays.collected import CollectedLine, collected_lines
from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.finding import Finding, named
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.rule import Rule
from gpuviz.advice.source.libraries import is_of
from gpuviz.quantities import format_bytes, format_count

RULES = (
    Rule(
        "R74",
        "arrays that only the garbage collector frees",
        "garbage collections, at least three of them, free arrays of a line while the program goes "
        "on making others, each up to the newest that is no longer used; several of the line "
        "are at the peak, and nothing uses them any more",
        "break the reference cycle: `ctx.save_for_backward` instead of an output on `ctx`, "
        "`weakref`, `del`",
    ),
)

_APPLIED = "torch/autograd/function.py"
_OF_FUNCTION = (
    "In `forward` of the `torch.autograd.Function`, pass its outputs to `ctx.save_for_backward` "
    "instead of storing them as attributes of `ctx`, and read `ctx.saved_tensors` in `backward`: "
    "an output refers to `ctx`. Otherwise break the cycle where an object, a closure, a hook or a "
    "stored exception refers to itself."
)
_OF_TORCH = (
    "Break the cycle: an object or a closure that refers to itself, a hook that refers to its "
    "tensor or module, an exception kept in a variable, or an output stored on the `ctx` of a "
    "`torch.autograd.Function`."
)
_OF_OTHERS = (
    "Break the cycle: an object or a closure that refers to itself, a callback that refers to its "
    "owner, or an exception kept in a variable."
)
_MEANS = (
    " Use `weakref` for the way back, or `del` the reference after the last use. Until then, "
    "`gc.collect()` in each round bounds the memory, and takes time."
)


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find arrays that reference cycles keep after their last use.

    Trigger: the arrays of a line wait for garbage collections (`DeviceBlocks.is_collected`), and at
    the peak, at least two of them wait. What the program frees by reference counts, and what an
    object keeps until the program drops it, does not count.

    Saving: the decrease of the peak if each of these arrays were freed after its last use. If each
    collection left the newest of the line that nothing uses, a variable may keep these: then, an
    array is freed no earlier than as many others of its line have been allocated.
    """
    if not device.is_collected.any():
        return
    lines = collected_lines(device)
    blocks = np.concatenate([each.blocks for each in lines])
    begin, ends = device.begin[blocks], np.concatenate([_ends(device, each) for each in lines])
    waits = np.sort(blocks[device.at_peak[blocks] & (ends <= device.peak_place)])
    if len(waits) > 1:
        yield _finding(device, waits, Change(blocks, begin, ends))


def _ends(device: DeviceBlocks, line: CollectedLine) -> np.ndarray:
    """Return the places where the blocks of a line would be freed without the cycles."""
    blocks = line.blocks
    begin, end = device.begin[blocks], device.end[blocks]
    ends = device.after_lines(device.used.last[device.number[blocks]])
    if line.newest:
        made = np.sort(device.begin[line.made])
        later = np.searchsorted(made, begin, side="right") + line.newest - 1
        after = np.append(made + 1, device.end.max())[np.minimum(later, len(made))]
        ends = np.maximum(ends, after)
    clipped: np.ndarray = np.clip(ends, begin, end)
    return clipped


def _finding(device: DeviceBlocks, waits: np.ndarray, change: Change) -> Finding:
    lines = device.lines.lines_of(waits)
    arrays = format_count(len(waits))
    makers = named(lines[0].site, lines[0].source)
    others = " and other lines" if len(lines) > 1 else ""
    return Finding(
        rule="R74",
        title=f"{format_bytes(int(device.size[waits].sum()))} from {makers}{others} is still "
        "allocated at the peak, and waits for the garbage collector.",
        reason=f"Nothing uses these {arrays} arrays after "
        f"{named(*device.lines.last_use(waits))}. Reference cycles keep them: only Python's "
        "garbage collector frees the arrays of that line, and it counts objects, not the memory "
        "of the GPU.",
        change=_advice(device, waits),
        certainty="likely",
        device=device.device,
        lines=lines,
        evidence=device.lines.evidence(waits),
        lifetimes=change,
    )


def _advice(device: DeviceBlocks, waits: np.ndarray) -> str:
    stacks = np.unique(device.stack[waits]).tolist()
    frames = device.recording.call_stacks.frames
    if any(each.filename.endswith(_APPLIED) for stack in stacks for each in frames(stack)):
        return _OF_FUNCTION + _MEANS
    return (_OF_TORCH if is_of(device.recording, "torch") else _OF_OTHERS) + _MEANS
