"""R73: arrays of a failed attempt are kept while the program tries again within ``except``."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.finding import Finding, named
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.rule import Rule
from gpuviz.advice.source.close_statements import CloseStatements, Statement, statements_around
from gpuviz.advice.source.own_names import assigned, shared_names, stores_elsewhere
from gpuviz.data.call_stacks import Frame
from gpuviz.data.codes import ACTIONS
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.implied_columns import OWN
from gpuviz.quantities import format_bytes, format_counted

RULES = (
    Rule(
        "R73",
        "arrays of a failed attempt, kept by its exception",
        "the peak is reached by a line of an `except` block, before that ends; arrays that a "
        "function made which the `try` block had called, and which ended with the exception, are "
        "still allocated, and nothing uses them any more; what fails is a request for memory, or "
        "the last line of the `try` block; also arrays that only variables of the function itself "
        "refer to, if it calls itself in the `except` block and returns the result",
        "leave the `except` block before the next attempt",
    ),
)

_ALLOCATED, _OOM = ACTIONS.index("alloc"), ACTIONS.index("oom")
# Statements that raise nothing.
_HARMLESS = re.compile(r"(?:break|continue|pass|return)(?:\s+[\w.]+)?$")
_REPEATS = re.compile(r"\bfor\b")


@dataclass(frozen=True, slots=True)
class _Attempt:
    """What a line of a ``try`` block had called when an exception ended it.

    Attributes:
        frames: Those of the last thing that it did, outermost first.
        depth: The place among them of the function with the ``try`` block.
        end: When that was, in ns.
        tried: The statements of the ``try`` block.
        shared: The names whose values may stay when it has failed; see `shared_names`.
        is_called: Whether the exception ended a function that the ``try`` block had called.
        is_again: Whether the function calls itself in the ``except`` block, to return the result.
    """

    frames: list[Frame]
    depth: int
    end: int
    tried: tuple[Statement, ...]
    shared: set[str]
    is_called: bool
    is_again: bool

    def is_in_function(self, frames: list[Frame]) -> bool:
        """Return whether frames are of the function's own call, or of what it calls."""
        depth = self.depth
        is_longer = frames[:depth] == self.frames[:depth] and len(frames) > depth
        return is_longer and _function(frames[depth]) == _function(self.frames[depth])

    def has(self, device: DeviceBlocks, frames: list[Frame]) -> bool:
        """Return whether frames are of the function that the exception has ended.

        Or of the ``try`` block, if its function calls itself, and only its variables refer to what
        the frames make.
        """
        if not self.is_again:
            return self.is_of_called(frames)
        if not self.is_in_function(frames) or self.handles(device, frames):
            return False
        own = _statement_at(self.tried, frames[self.depth].line)
        inner = (each for each in frames[self.depth + 1 :] if each.installed == OWN)
        if own is None or any(_stores_elsewhere(device, each) for each in inner):
            return False
        names = assigned(own)
        if self.is_of_called(frames):
            return not stores_elsewhere(own) and not names & self.shared
        return bool(names) and not names & self.shared

    def is_of_called(self, frames: list[Frame]) -> bool:
        """Return whether frames are of a function that the ``try`` block called."""
        own, called = frames[: self.depth + 1], frames[self.depth + 1 : self.depth + 2]
        ended = self.frames[self.depth + 1 : self.depth + 2]
        is_same = list(map(_function, called)) == list(map(_function, ended))
        return self.is_called and is_same and own == self.frames[: self.depth + 1]

    def ends(self, device: DeviceBlocks, frames: list[Frame]) -> bool:
        """Return whether what is freed in some frames is freed when the ``except`` block ends.

        What a function has that returns is freed in the line that has called it. The recording may
        end before.
        """
        is_end = len(frames) == self.depth + 1 and self.handles(device, frames)
        return is_end or (self.is_again and frames in (self.frames[: self.depth], []))

    def handles(self, device: DeviceBlocks, frames: list[Frame]) -> bool:
        """Return whether the function is in the ``except`` block."""
        if not self.is_in_function(frames):
            return False
        return statements_around(device.recording, frames[self.depth]).tried == self.tried


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find arrays of failed attempts that the exception keeps, because it is being handled.

    Trigger: a line in an ``except`` block of a function reaches the peak. Until that block ends,
    the exception has its traceback, and that the variables of the functions that have ended. What
    the ``try`` block had done last was within a call of a function, in a statement that no loop
    repeats. Either a request of it failed, or the statements that follow in the ``try`` block raise
    nothing: so the exception ended the function. The arrays count that it made, directly or by what
    it calls, that nothing uses after the failure, and that the ``except`` block frees when it ends.
    What the function with the ``try`` block has itself is in its own variables. It counts, too, if
    that function calls itself in the ``except`` block to return what this returns: then nothing can
    use the variables of the failed attempt any more, and they stay until all others have returned.
    Variables that the ``except`` block reads do not count, and neither does what the attempt has
    also stored elsewhere, such as in a list: that may be a part of the result.

    Saving: the decrease of the peak if these were freed when the attempt has failed.
    """
    found = [(each, _kept(device, each)) for each in _attempts(device)]
    kept = [(attempt, blocks) for attempt, blocks in found if len(blocks)]
    if kept:
        yield _finding(device, kept)


def _attempts(device: DeviceBlocks) -> Iterator[_Attempt]:
    """Yield the attempts whose exceptions are being handled at the peak, outermost first."""
    later = _outermost_first(device, device.lines.peak_stack)
    around = [
        (depth, statements_around(device.recording, frame)) for depth, frame in enumerate(later)
    ]
    handlers = [(depth, close) for depth, close in around if close.tried]
    if not handlers:
        return
    times, stacks, have_failed = _history(device)
    for depth, close in handlers:
        tried, shared = close.tried, shared_names(close.tried, _handled(close))
        handling = _Attempt(later, depth, 0, tried, shared, is_called=False, is_again=False)
        within = [
            each
            for each in distinct(stacks).tolist()
            if handling.handles(device, _outermost_first(device, each))
        ]
        for row in np.flatnonzero(~np.isin(stacks, within))[-1:].tolist():
            frames = _outermost_first(device, int(stacks[row]))
            if not handling.is_in_function(frames):
                continue
            has_failed = bool(have_failed[row])
            is_called = len(frames) > depth + 1
            is_called &= _ends_with(tried, frames[depth].line, has_failed=has_failed)
            is_again = _returns_itself(later, depth)
            if is_called or is_again:
                yield _Attempt(frames, depth, int(times[row]), tried, shared, is_called, is_again)


def _handled(close: CloseStatements) -> tuple[Statement, ...]:
    """Return the statements from the end of the ``try`` block to the line that handles it."""
    return close.statements[close.statements.index(close.tried[-1]) + 1 : close.own + 1]


def _returns_itself(frames: list[Frame], depth: int) -> bool:
    """Return whether a function returns what it calls, and that is the function itself."""
    own, called = frames[depth], map(_function, frames[depth + 1 :])
    return own.source.startswith("return ") and _function(own) in called


def _history(device: DeviceBlocks) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return when the thread of the peak requested memory or called CUDA before it, in order.

    Also the call stacks, and whether the request failed.
    """
    tables = device.recording.tables
    events, calls = tables["memory_events"], tables["api_calls"]
    peak = int(device.used.blocks.alloc[device.number[device.of_peak[0]]])
    actions = codes(events["action"], ACTIONS)
    rows = np.flatnonzero(np.isin(actions[:peak], (_ALLOCATED, _OOM)))
    of_calls = np.flatnonzero(plain(calls["time"]) < plain(events["time"])[peak])
    times, stacks, threads = (
        np.concatenate([plain(events[name])[rows], plain(calls[name])[of_calls]])
        for name in ("time", "stack", "thread")
    )
    have_failed = np.append(actions[rows] == _OOM, np.zeros(len(of_calls), bool))
    own = np.flatnonzero((threads == plain(events["thread"])[peak]) & (stacks != 0))
    own = own[np.argsort(times[own], kind="stable")]
    return times[own], stacks[own], have_failed[own]


def _ends_with(tried: tuple[Statement, ...], line: int, *, has_failed: bool) -> bool:
    """Return whether an exception in a line of a ``try`` block ends what it has called.

    Args:
        tried: The statements of the block.
        line: The number of the line.
        has_failed: Whether that is known. Otherwise the next statements must raise nothing.
    """
    own = _statement_at(tried, line)
    if own is None or own.indentation != tried[0].indentation or own.keyword not in ("", "try"):
        return False
    others = tried[tried.index(own) + 1 :]
    is_last = has_failed or all(_HARMLESS.match(each.text) for each in others)
    return is_last and not _REPEATS.search(own.text)


def _statement_at(statements: tuple[Statement, ...], line: int) -> Statement | None:
    return next((each for each in reversed(statements) if each.number <= line), None)


def _kept(device: DeviceBlocks, attempt: _Attempt) -> np.ndarray:
    """Return the blocks at the peak that the exception of an attempt keeps."""
    events = device.recording.tables["memory_events"]
    used = np.append(device.call_times, -1)[device.used.last[device.number]]
    is_kept = device.at_peak & (used <= attempt.end)
    is_kept &= device.used.blocks.begin[device.number] <= attempt.end
    is_kept &= ~device.is_used_at_any_time & ~device.is_shared
    freed = np.append(plain(events["stack"]), 0)[device.used.blocks.free[device.number]]
    for stacks, counts in ((device.stack, attempt.has), (freed, attempt.ends)):
        known = distinct(stacks[is_kept]).tolist()
        chosen = [each for each in known if counts(device, _outermost_first(device, each))]
        is_kept &= np.isin(stacks, chosen)
    return np.setdiff1d(np.flatnonzero(is_kept), _held_elsewhere(device, attempt))


def _held_elsewhere(device: DeviceBlocks, attempt: _Attempt) -> np.ndarray:
    """Return the blocks at the end that are known to be held by other variables."""
    held = device.recording.tables["held_blocks"].to_pylist()
    variables = f"{attempt.frames[attempt.depth].name.rpartition('.')[2]}()"
    others = [row["address"] for row in held if variables not in row["holder"]]
    blocks = device.used.blocks
    is_other = np.isin(blocks.address[device.number], np.array(others, np.uint64))
    return np.flatnonzero(is_other & (blocks.end[device.number] < 0))


def _outermost_first(device: DeviceBlocks, stack: int) -> list[Frame]:
    return device.recording.call_stacks.frames(stack)[::-1]


def _function(frame: Frame) -> tuple[str, str, int]:
    return frame.name, frame.filename, frame.cell


def _stores_elsewhere(device: DeviceBlocks, line: Frame) -> bool:
    """Return whether a line stores what it makes, and not in an object that it belongs to."""
    is_new = line.name.rpartition(".")[2] == "__init__"
    return not is_new and stores_elsewhere(statements_around(device.recording, line).line)


def _finding(device: DeviceBlocks, kept: list[tuple[_Attempt, np.ndarray]]) -> Finding:
    blocks = np.concatenate([each for _, each in kept])
    times = np.concatenate([np.full(len(each), attempt.end) for attempt, each in kept])
    begin, end = device.begin[blocks], device.end[blocks]
    attempt = kept[0][0]
    handler = _outermost_first(device, device.lines.peak_stack)[attempt.depth]
    attempts, its = "an attempt that failed", "its"
    if len(kept) > 1:
        attempts, its = "attempts that failed", "their"
    stacks = distinct(device.stack[kept[0][1]]).tolist()
    is_of_called = all(attempt.is_of_called(_outermost_first(device, each)) for each in stacks)
    why, change = _of_called(attempt) if is_of_called else _of_itself(attempt, handler.source)
    return Finding(
        rule="R73",
        title=f"{format_bytes(int(device.size[blocks].sum()))} of {attempts} is still allocated "
        f"while {its} `except` block runs {named(handler.site, handler.source)}.",
        reason=f"{why}: {format_counted(len(blocks), 'array')} that nothing uses any more.",
        change=change,
        certainty="likely",
        device=device.device,
        lines=device.lines.lines_of(blocks),
        evidence=device.lines.evidence(blocks),
        lifetimes=Change(blocks, begin, np.clip(device.after_times(times), begin, end)),
    )


def _of_called(attempt: _Attempt) -> tuple[str, str]:
    """Return why the arrays of a function that has ended are there, and what to change."""
    failed, called = attempt.frames[attempt.depth : attempt.depth + 2]
    function = called.name.rpartition(".")[2]
    why = (
        f"An exception ended `{function}` in {named(failed.site, failed.source)}. Until the "
        "`except` block ends, the exception keeps its traceback, and the traceback the variables "
        "of what it ended"
    )
    change = (
        "Leave the `except` block first: only note there that the attempt failed, and try again "
        "after the block, such as in the next round of a loop."
    )
    return why, change


def _of_itself(attempt: _Attempt, handler: str) -> tuple[str, str]:
    """Return why the arrays of a function that calls itself are there, and what to change."""
    function = attempt.frames[attempt.depth].name.rpartition(".")[2]
    why = (
        f"`{function}` calls itself in its `except` block to try again. Until all of these calls "
        "return, the variables of each failed attempt stay"
    )
    change = "Move the `try` block's work to a function of its own, so that its variables go when "
    if len(re.findall(rf"\b{function}\(", handler)) > 1 or _REPEATS.search(handler):
        change += (
            f"it fails. Let `{function}` call that in a loop over a list of the parts still to do: "
            "in the `except` block, only put the smaller parts into the list, and go on after the "
            "block, in the next round. Combine the results after the loop."
        )
    else:
        change += (
            f"it fails. Let `{function}` call that in a loop: only note in the `except` block that "
            "the attempt failed, and try again after the block, in the next round."
        )
    return why, change
