"""R88: small matrices that are factorized one by one."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.finding import Finding
from gpuviz.advice.host.calls_left_out import without_calls
from gpuviz.advice.host_lines import line_numbers, line_of, text_of
from gpuviz.advice.kernels.resident_blocks import resident_blocks
from gpuviz.advice.replay.schedule import ScheduleChange
from gpuviz.advice.replay.trace import KERNEL
from gpuviz.advice.rule import Rule
from gpuviz.analysis.launches import stacks_of, text_numbers
from gpuviz.data.call_stacks import Frame
from gpuviz.data.columns import distinct, plain
from gpuviz.data.tables import DICTIONARIES
from gpuviz.quantities import format_counted, format_duration

RULES = (
    Rule(
        "R88",
        "matrices one by one",
        "a line calls `solve`, `inv` or `cholesky` of `cupy.linalg` or `torch.linalg` at least "
        "eight times, for matrices of one size all of which exist before the first call, and the "
        "kernels of the calls would together take at most half of their time if as many ran at "
        "once as the GPU's multiprocessors have room for; the saving is that time and the launches "
        "of all calls but the first",
        "one call for a stack of matrices",
    ),
)

_MODES = DICTIONARIES["launch_blocks", "mode"]
_UNKNOWN, _READ = (_MODES.index(each) for each in ("unknown", "read"))
_LEAST_CALLS = 8
_MOST_FILLED = 0.5
# Functions that CuPy computes by one call of cuBLAS or cuSOLVER for a stack of matrices; it takes
# the matrices of others one by one itself, or differently.
_CUPY = frozenset(("solve", "inv", "cholesky"))
_OF_CUPY = "/cupy/linalg/"
# PyTorch's functions have no frame in Python.
_TORCH = re.compile(r"\btorch\.(?:linalg\.)?(solve|inv|inverse|cholesky|solve_ex|inv_ex)\(")
_MOST_LINES = 8


@dataclass(frozen=True, eq=False, slots=True)
class _Calls:
    """Calls of a routine for one matrix each.

    Attributes:
        name: The function, with its module.
        work: Their activities, indices of the schedule, in the order of their launches.
        number: The number of the call of each, from 0 on, ascending.
        stack: A call stack of the line.
    """

    name: str
    work: np.ndarray
    number: np.ndarray
    stack: int


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find lines that solve systems, invert or factorize matrices in a loop, each by itself.

    Trigger: a line calls such a function at least eight times in a row. What a call reads, and what
    it did not make itself, has been written before the first of them, and the call only reads it:
    so none needs the result of another. All of them allocate as many bytes, as for matrices of one
    size. The kernels of a call leave most of the GPU idle: see
    `gpuviz.advice.kernels.resident_blocks.resident_blocks`.

    Saving: the recording's `Schedule`, replayed without the launches of all calls of a row but the
    first, whose kernels take the time of all, divided by how many run at once, or their own time if
    that is longer. The host may need a result before the next call, to decide something:
    ``possible``.
    """
    schedule = device.schedule
    of_lines, found = list(_calls(device)), []
    if not of_lines:
        return
    at_once = resident_blocks(schedule) / np.maximum(schedule.blocks, 1)
    for calls in of_lines:
        duration, removed = schedule.duration.copy(), []
        before_ns = after_ns = count = 0
        for run in _runs(device, calls):
            chosen = calls.work[(calls.number >= run[0]) & (calls.number < run[1])]
            first = calls.work[calls.number == run[0]]
            together = schedule.duration[first] * (run[1] - run[0]) / np.maximum(at_once[first], 1)
            before_ns += int(schedule.duration[chosen].sum())
            duration[first] = np.maximum(duration[first], together.astype(np.int64))
            after_ns += int(duration[first].sum())
            removed.append(np.setdiff1d(chosen, first))
            count += run[1] - run[0]
        if removed and after_ns <= _MOST_FILLED * before_ns:
            found.append((before_ns, count, calls, duration, np.concatenate(removed)))
    found.sort(key=lambda each: -each[0])
    for before_ns, count, calls, duration, work in found[:_MOST_LINES]:
        duration[work] = 0
        yield _finding(device, calls, _without(device, calls, work, duration), before_ns, count)


def _without(
    device: DeviceBlocks, calls: _Calls, work: np.ndarray, duration: np.ndarray
) -> ScheduleChange:
    """Return the change to other durations, without some work and what the host does for it."""
    schedule, tables = device.schedule, device.recording.tables
    stacks = plain(tables["api_calls"]["stack"])
    of_routine = np.flatnonzero(np.isin(stacks, stacks[schedule.call[calls.work]]))
    # What has no work of its own belongs to the launch before it.
    kept = np.setdiff1d(calls.work, work)
    launched = np.concatenate((schedule.call[kept], schedule.call[work]))
    is_removed = np.arange(len(launched)) >= len(kept)
    order = np.argsort(schedule.called[launched], kind="stable")
    before = np.searchsorted(
        schedule.called[launched[order]], schedule.called[of_routine], side="right"
    )
    gone = np.zeros(len(stacks), bool)
    gone[of_routine] = np.append(False, is_removed[order])[before]
    return without_calls(device, duration, gone)


def _calls(device: DeviceBlocks) -> Iterator[_Calls]:
    """Yield the calls of each line that may take a stack of matrices instead."""
    recording, schedule = device.recording, device.schedule
    stacks = stacks_of(recording.tables, schedule.call)
    frames_of = recording.call_stacks.frames
    names = {each: _routine(frames_of(each)) for each in distinct(stacks).tolist()}
    routines = [each for each, name in names.items() if name]
    if not routines:
        return
    is_routine = np.isin(stacks, routines) & (schedule.device == device.device)
    work = np.flatnonzero(is_routine & (schedule.call >= 0))
    work = work[np.argsort(schedule.called[schedule.call[work]], kind="stable")]
    lines = line_numbers(recording, stacks[work])
    texts = plain(recording.tables["activities"]["name"])[schedule.rows[work]]
    kernels = text_numbers(recording.tables, texts)
    for line in np.unique(lines).tolist():
        of_line = work[lines == line]
        step = stacks[of_line] * (int(kernels.max()) + 1) + kernels[lines == line]
        # Each call begins with the same work.
        number = np.cumsum(step == step[0]) - 1
        if number[-1] + 1 >= _LEAST_CALLS:
            stack = int(stacks[of_line[0]])
            yield _Calls(names[stack], of_line, number, stack)


def _routine(frames: Sequence[Frame]) -> str:
    """Return the function of a library that a line calls, if it takes stacks of matrices too."""
    inside = list(takewhile(lambda frame: frame.is_installed, frames))
    if inside and _OF_CUPY in inside[-1].filename:
        return f"cupy.linalg.{inside[-1].name}" if inside[-1].name in _CUPY else ""
    called = _TORCH.search(frames[0].source) if frames and not inside else None
    return f"torch.linalg.{called[1].replace('inverse', 'inv')}" if called else ""


def _runs(device: DeviceBlocks, calls: _Calls) -> list[tuple[int, int]]:
    """Return the ranges of calls of which none needs another, at least eight each."""
    used, schedule = device.used, device.schedule
    times = plain(device.recording.tables["api_calls"]["time"])
    order = np.argsort(times, kind="stable")
    moment = np.empty(len(times), np.int64)
    moment[order] = np.arange(len(times))
    writes = np.flatnonzero(used.mode != _READ)
    written = np.sort((used.block[writes].astype(np.int64) << 32) | moment[used.call[writes]])
    call_of = np.full(len(times), -1)
    call_of[schedule.call[calls.work]] = calls.number
    touches = np.flatnonzero(call_of[used.call] >= 0)
    number, block = call_of[used.call[touches]], used.block[touches].astype(np.int64)
    is_own = call_of[used.first[block]] == number
    size = _bytes_of_calls(device, number, block, is_own, int(calls.number[-1]) + 1)
    # What nothing else uses is a work area of the library.
    is_shared = np.zeros(len(used.blocks), bool)
    is_shared[np.delete(used.block, touches)] = True
    is_own |= ~is_shared[block] & (used.mode[touches] != _READ)
    count = len(size)
    begins = np.full(count, len(times))
    np.minimum.at(begins, calls.number, moment[schedule.call[calls.work]])
    # When the latest of what each call reads was written; -1 if before all calls.
    ready = np.full(count, -1)
    mode = used.mode[touches]
    inputs = ~is_own & (mode == _READ)
    of, place = number[inputs], block[inputs]
    latest = np.searchsorted(written, (place << 32) | begins[of]) - 1
    known = (latest >= 0) & (written[latest] >> 32 == place)
    np.maximum.at(ready, of[known], (written[latest] & 0xFFFFFFFF)[known])
    is_blocked = np.zeros(count, bool)
    is_blocked[number[~is_own & (mode == _UNKNOWN)]] = True
    # A call of which nothing is known may read anything.
    is_blocked[np.bincount(of, minlength=count) == 0] = True
    runs, start = [], 0
    for each in range(1, count + 1):
        ends = each == count or is_blocked[each] or is_blocked[start]
        # Matrices of other sizes cannot be in one stack.
        if ends or ready[each] > begins[start] or size[each] != size[start]:
            runs.append((start, each))
            start = each
    return [run for run in runs if run[1] - run[0] >= _LEAST_CALLS]


def _bytes_of_calls(
    device: DeviceBlocks,
    number: np.ndarray,
    block: np.ndarray,
    is_own: np.ndarray,
    count: int,
) -> np.ndarray:
    """Return the bytes of the arrays that each call alone uses, counted once for each use.

    Args:
        device: The device's blocks.
        number: The call of each touch.
        block: The block of each.
        is_own: Whether the call is the first to use it.
        count: The number of calls.
    """
    blocks = device.used.blocks
    latest = np.full(len(blocks), -1)
    np.maximum.at(latest, block, number)
    alone = is_own & (latest[block] == number)
    return np.bincount(number[alone], blocks.requested[block[alone]], count)


def _finding(
    device: DeviceBlocks, calls: _Calls, change: ScheduleChange, before_ns: int, count: int
) -> Finding:
    schedule, counted = device.schedule, format_counted(count, "time", "times")
    line = line_of(device.recording, calls.stack, format_duration(before_ns))
    kernels = calls.work[schedule.kind[calls.work] == KERNEL]
    blocks = int(schedule.blocks[kernels].max(initial=0))
    of_gpu = schedule.multiprocessors.get(device.device, 0)
    sides = ", and right-hand sides of shape `(n, m, k)`" if "solve" in calls.name else ""
    return Finding(
        rule="R88",
        title=f"{text_of(line)} calls `{calls.name}` {counted} for one matrix each.",
        reason=f"All of the matrices exist before the first call. The kernels of the calls take "
        f"{format_duration(before_ns)}, in {format_counted(len(calls.work), 'launch', 'launches')} "
        f"of at most {format_counted(blocks, 'thread block')}; the GPU has "
        f"{format_counted(of_gpu, 'multiprocessor')}.",
        change=f"Call `{calls.name}` once, outside of the loop, with a stack of the matrices: it "
        f"takes arrays of shape `(n, m, m)`{sides}, and computes all `n` results at once.",
        certainty="possible",
        device=device.device,
        saved_ns=schedule.saved_alone(change),
        schedule=change,
        lines=(line,),
        evidence=schedule.evidence(calls.work),
    )
