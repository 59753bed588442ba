"""R33: a small operand of a wider type doubles the size of a result."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.advice.elementwise import READ, WRITES
from gpuviz.advice.finding import Finding, named
from gpuviz.advice.memory_changes import Change, DeviceBlocks
from gpuviz.advice.own_lines import is_own
from gpuviz.advice.rule import Rule
from gpuviz.analysis.launches import stacks_of
from gpuviz.quantities import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from gpuviz.advice.elementwise import Function

RULES = (
    Rule(
        "R33",
        "a result in a wider type",
        "an elementwise function combines an array of float16, float32 or complex64 with a small "
        "array of a wider type, and its result is allocated at the peak",
        "convert the operand, if that is precise enough",
    ),
)

# Types, and the types of their results with a wider operand.
_WIDER = {"float16": "float32", "float32": "float64", "complex64": "complex128"}
_TWICE = 2
# An operand of at most this share of the result's bytes is cheap to convert.
_SMALL = 1 / 16
_COPIES = ("copy", "fill")
# Operations on the result, and on what they make of it, and so on.
_MOST_STEPS = 8


@dataclass(frozen=True, eq=False, slots=True)
class _Widened:
    """Results that would have half of their size.

    Attributes:
        launch: Indices of the device's elementwise launches.
        target: The block that each writes, an index of the device's blocks.
        source: A block that each reads, of as many elements and the narrower type.
    """

    launch: "NDArray[Any]"
    target: "NDArray[Any]"
    source: "NDArray[Any]"


def find(device: DeviceBlocks) -> "Iterator[Finding]":
    """Find the lines whose results are wider than their inputs because of a small operand.

    Trigger: the program itself calls an elementwise function of CuPy which writes a new block. An
    input has as many elements in a type of half the size (float16, float32 or complex64), and all
    inputs of another type are blocks of at most 1/16 of the result's bytes. Nothing else writes the
    result, except in place with smaller operands (``x += 1``), and the line does this each time.
    The saving is the decrease of the peak if these results had half of their size, and so had those
    of further elementwise functions that only lack the narrower type because of them.

    Whether the narrower type is precise enough is the program's decision: ``possible``.
    """
    launches = device.elementwise
    meets, source = _meets(device)
    sites = device.site[device.place[launches.target]]
    key = sites.astype(np.int64) * len(launches.functions) + launches.function
    widened = np.setdiff1d(key[meets], key[~meets])
    for each in widened.tolist():
        chosen = np.flatnonzero(key == each)
        at_peak = device.at_peak[device.place[launches.target[chosen]]]
        if not at_peak.any():
            continue
        change = _change(device, chosen)
        shown, place = chosen[at_peak], device.place
        found = _Widened(shown, place[launches.target[shown]], place[source[shown]])
        yield _finding(device, found, change)


def _meets(device: DeviceBlocks) -> "tuple[NDArray[Any], NDArray[Any]]":
    """Return which elementwise launches meet the trigger, and a narrower input of each."""
    launches, blocks = device.elementwise, device.used.blocks
    stacks = stacks_of(device.recording.tables, launches.call)
    accepted = launches.where(lambda each: bool(_narrower(each))) & _writes_alone(device)
    accepted &= is_own(device.recording, stacks)
    launch, source = launches.launch, launches.source
    result = blocks.requested[launches.target[launch]]
    is_half = blocks.requested[source] * _TWICE == result
    is_small = blocks.requested[source] <= _SMALL * result
    is_other = ~is_half & ~is_small
    count = len(launches)
    halves = np.bincount(launch[is_half], minlength=count)
    others = np.bincount(launch[is_other], minlength=count)
    narrow = np.full(count, -1)
    narrow[launch[is_half][::-1]] = source[is_half][::-1]
    return accepted & (halves > 0) & (others == 0) & (device.place[narrow] >= 0), narrow


def _narrower(function: "Function") -> str:
    """Return the type that a function widens; empty if it does not widen any."""
    if function.name in _COPIES:
        return ""
    narrow = [each for each in function.arrays if _WIDER.get(each) == function.output]
    return narrow[0] if narrow and len(set(function.arrays)) > 1 else ""


def _writes_alone(device: DeviceBlocks) -> "NDArray[Any]":
    """Return which elementwise launches write a block of the device first, and nothing does later.

    Kernels whose accesses are unknown are not counted as writes, and neither are elementwise
    functions that overwrite what they read with smaller operands.
    """
    used, launches = device.used, device.elementwise
    count, requested = len(used.blocks), used.blocks.requested
    writes = np.bincount(used.block[np.isin(used.mode, WRITES)], minlength=count)
    calls, at = np.unique(launches.call[launches.is_update], return_index=True)
    target = launches.target[launches.is_update][at]
    read = np.flatnonzero((used.mode == READ) & np.isin(used.call, calls))
    into = np.searchsorted(calls, used.call[read])
    is_large = requested[used.block[read]] * _TWICE > requested[target[into]]
    is_large &= used.block[read] != target[into]
    is_wide = np.bincount(into[is_large], minlength=len(calls)) > 0
    writes -= np.bincount(target[~is_wide], minlength=count)
    place = device.place[launches.target]
    alone: NDArray[Any] = (writes[launches.target] == 1) & (place >= 0)
    alone &= (used.first[launches.target] == launches.call) & ~device.is_initial[place]
    alone &= ~launches.is_update
    return alone


def _change(device: DeviceBlocks, chosen: "NDArray[Any]") -> Change:
    """Return the sizes if the results of some launches had half of their size."""
    launches, requested = device.elementwise, device.used.blocks.requested
    narrow = np.zeros(len(requested), bool)
    narrow[launches.target[chosen]] = True
    wide = launches.functions[int(launches.function[chosen[0]])].output
    follows = launches.where(lambda each: each.output == wide and each.name not in _COPIES)
    follows &= _writes_alone(device)
    launch, source = launches.launch, launches.source
    result = requested[launches.target[launch]]
    needs = (requested[source] > _SMALL * result) & (requested[source] * _TWICE != result)
    for _ in range(_MOST_STEPS):
        reads = np.bincount(launch[narrow[source]], minlength=len(launches))
        others = np.bincount(launch[needs & ~narrow[source]], minlength=len(launches))
        found = launches.target[follows & (reads > 0) & (others == 0)]
        if narrow[found].all():
            break
        narrow[found] = True
    blocks = np.flatnonzero(narrow[device.number])
    return Change(blocks, device.begin[blocks], device.end[blocks], device.size[blocks] // _TWICE)


def _finding(device: DeviceBlocks, found: _Widened, change: Change) -> Finding:
    launches = device.elementwise
    function = launches.functions[int(launches.function[found.launch[0]])]
    narrow = _narrower(function)
    other = next(each for each in function.arrays if each != narrow)
    to, of = device.line_of(found.target), device.line_of(found.source)
    size = format_bytes(int(device.size[found.target].sum()))
    return Finding(
        rule="R33",
        title=f"{named(to.site, to.source)} makes {size} of {function.output} from {narrow}.",
        reason=f"`{function.name}` combines the {narrow} array from "
        f"{named(of.site, of.source)} with a small operand of type {other}, which doubles the size "
        "of the result; it is allocated at the peak.",
        change=f"Convert the {other} operand to {narrow} (`astype`), if that is precise enough.",
        certainty="possible",
        device=device.device,
        lines=(to, of),
        evidence=device.evidence(found.target),
        lifetimes=change,
    )
