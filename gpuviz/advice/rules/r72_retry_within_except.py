"""R72: arrays of a failed attempt are kept while the program tries again within ``except``."""

from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.advice.close_statements import close_statements
from gpuviz.advice.finding import Finding, named
from gpuviz.advice.peak_replay import Change
from gpuviz.advice.rule import Rule
from gpuviz.data.codes import ACTIONS
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.implied_columns import OWN
from gpuviz.quantities import format_bytes, format_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from gpuviz.advice.device_blocks import DeviceBlocks
    from gpuviz.data.call_stacks import Frame

RULES = (
    Rule(
        "R72",
        "arrays of a failed attempt, kept by its exception",
        "a request for memory fails in functions that a `try` block calls; the peak is reached by "
        "a line of its `except` block, before that ends; arrays that these functions made and "
        "nothing uses any more are still allocated there",
        "leave the `except` block before the next attempt",
    ),
)

_OOM = ACTIONS.index("oom")
# The latest failures are looked at.
_MOST_FAILURES = 32


def find(device: "DeviceBlocks") -> "Iterator[Finding]":
    """Find arrays of failed attempts that the exception keeps, because it is being handled.

    Trigger: a request fails, and later a line in an ``except`` block of a function reaches the
    peak, while the request was made by what a line of the ``try`` block had called. Until that
    block ends, the exception has its traceback, and that the variables of the functions that have
    ended. Of what the innermost of them that the ``try`` block calls made, directly or by what it
    calls, the arrays count that nothing uses after the failure, and that the ``except`` block frees
    when it ends. What the function with the ``try`` block has itself is in its own variables.

    Saving: the decrease of the peak if these were freed when the request has failed.
    """
    if not len(device.of_peak):
        return
    events = device.recording.tables["memory_events"]
    peak = int(device.used.blocks.alloc[device.number[device.of_peak[0]]])
    is_failure = codes(events["action"], ACTIONS) == _OOM
    is_failure &= plain(events["device"]) == device.device
    is_failure &= plain(events["thread"]) == plain(events["thread"])[peak]
    handlers, kept = list["Frame"](), list["tuple[int, NDArray[Any]]"]()
    for failure in np.flatnonzero(is_failure[:peak])[-_MOST_FAILURES:].tolist():
        failed = _outermost_first(device, int(plain(events["stack"])[failure]))
        depth = _depth_of_handler(device, failed)
        if depth >= 0 and len(blocks := _kept(device, failure, failed, depth)):
            handlers.append(_outermost_first(device, device.lines.peak_stack)[depth])
            kept.append((failure, blocks))
    if kept:
        yield _finding(device, kept, handlers[0])


def _outermost_first(device: "DeviceBlocks", stack: int) -> "list[Frame]":
    return device.recording.call_stacks.frames(stack)[::-1]


def _depth_of_handler(device: "DeviceBlocks", failed: "list[Frame]") -> int:
    """Return the place among some frames of the function whose handler reaches the peak; else -1.

    Args:
        device: All blocks.
        failed: The frames of a failed request, outermost first.
    """
    later = _outermost_first(device, device.lines.peak_stack)
    depth = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(failed, later, strict=False))))
    is_within = depth < min(len(failed) - 1, len(later))
    return depth if is_within and _handles(device, failed[depth], later[depth]) else -1


def _kept(
    device: "DeviceBlocks", failure: int, failed: "list[Frame]", depth: int
) -> "NDArray[Any]":
    """Return the blocks at the peak that the exception of a failed request keeps.

    Args:
        device: All blocks.
        failure: A row of ``memory_events``.
        failed: Its frames, outermost first.
        depth: The place among them of the function that handles the exception.
    """
    events = device.recording.tables["memory_events"]
    called = _function(failed[depth + 1])

    def is_of_attempt(frames: "list[Frame]") -> bool:
        is_called = list(map(_function, frames[depth + 1 : depth + 2])) == [called]
        return is_called and frames[: depth + 1] == failed[: depth + 1]

    def is_end_of_handler(frames: "list[Frame]") -> bool:
        is_in_function = len(frames) == depth + 1 and frames[:depth] == failed[:depth]
        return is_in_function and _handles(device, failed[depth], frames[depth])

    used = np.append(device.call_times, -1)[device.used.last[device.number]]
    is_kept = device.at_peak & (used < int(plain(events["time"])[failure]))
    is_kept &= device.used.blocks.alloc[device.number] < failure
    is_kept &= ~device.is_used_at_any_time & ~device.is_shared
    freed = np.append(plain(events["stack"]), 0)[device.used.blocks.free[device.number]]
    for stacks, counts in ((device.stack, is_of_attempt), (freed, is_end_of_handler)):
        known = distinct(stacks[is_kept]).tolist()
        is_kept &= np.isin(
            stacks, [each for each in known if counts(_outermost_first(device, each))]
        )
    return np.flatnonzero(is_kept)


def _function(frame: "Frame") -> "tuple[str, str, int]":
    return frame.name, frame.filename, frame.cell


def _handles(device: "DeviceBlocks", tried: "Frame", later: "Frame") -> bool:
    """Return whether a line is in the ``except`` block of a ``try`` block with another one."""
    if _function(tried) != _function(later) or later.installed != OWN:
        return False
    frames = device.recording.tables["frames"]
    for row in np.flatnonzero(plain(frames["line"]) == later.line).tolist():
        frame = {name: frames[name][row].as_py() for name in frames.column_names}
        if (frame["name"], frame["filename"], frame["cell"]) == _function(later):
            return close_statements(frame).handles(tried.line)
    return False


def _finding(
    device: "DeviceBlocks", kept: "list[tuple[int, NDArray[Any]]]", handler: "Frame"
) -> Finding:
    events = device.recording.tables["memory_events"]
    times = plain(events["time"])
    blocks = np.concatenate([each for _, each in kept])
    ends = np.concatenate(
        [np.full(len(each), device.after_times(times[[failure]])[0]) for failure, each in kept]
    )
    blocks, first = np.unique(blocks, return_index=True)
    begin, end = device.begin[blocks], device.end[blocks]
    failed = device.recording.call_stacks.call_site(int(plain(events["stack"])[kept[0][0]]))
    attempts, its = "an attempt that failed", "its"
    if len(kept) > 1:
        attempts, its = "attempts that failed", "their"
    return Finding(
        rule="R72",
        title=f"{format_bytes(int(device.size[blocks].sum()))} of {attempts} is still allocated "
        f"while {its} `except` block runs {named(handler.site, handler.source)}.",
        reason=f"The request of {named(*failed)} failed. Until the `except` block ends, the "
        "exception keeps its traceback, and the traceback the variables of the functions that the "
        f"exception ended: {format_count(len(blocks))} arrays that nothing uses any more.",
        change="Leave the `except` block first: only note there that the attempt failed, and try "
        "again after the block, such as in the next round of a loop.",
        certainty="likely",
        device=device.device,
        lines=device.lines.lines_of(blocks),
        evidence=device.lines.evidence(blocks),
        lifetimes=Change(blocks, begin, np.clip(ends[first], begin, end)),
    )
