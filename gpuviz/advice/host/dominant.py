"""What dominates a recording: the line with most GPU time, that with most memory, the limit."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpuviz.advice.evidence import Line
from gpuviz.advice.finding import as_subject
from gpuviz.advice.host.host_gaps import launching_idle
from gpuviz.advice.host_lines import line_numbers, line_of, text_of
from gpuviz.advice.kernels.bandwidth import bandwidth, use_once
from gpuviz.advice.replay.compensation import compensated
from gpuviz.analysis.categories import block_categories, is_training, live_at
from gpuviz.analysis.initial_state import ALLOCATED
from gpuviz.analysis.launches import calls_of, durations, stacks_of
from gpuviz.analysis.overlap import LaneOverlap, whole_overlap
from gpuviz.analysis.peak import Peak, peak_and_state
from gpuviz.analysis.processes import processes
from gpuviz.analysis.steady_state import SteadyState, steady_state
from gpuviz.data.codes import CATEGORIES
from gpuviz.data.columns import codes, plain
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import DICTIONARIES
from gpuviz.quantities import format_bytes, format_count, format_duration, format_share

_WORKSPACE = CATEGORIES.index("workspace")
_KINDS = DICTIONARIES["activities", "kind"]
# Of the time; less does not limit a program alone.
_MOST = 0.5
# Of the time; with more, idle time hardly matters.
_MOSTLY = 0.8
# Arrays of one call stack, and their share of a line's bytes, from which on they are counted.
_FEWEST_ARRAYS = 4
_MOST_OF_ARRAYS = 0.8
# Of the memory's bandwidth; a kernel that only streams its arrays reaches twice as much.
_LEAST_USE = 0.3
_SMALLEST_USE = 0.001


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that is true of a recording whether or not a rule applies.

    Attributes:
        text: The fact, in one sentence.
        line: The line of the program that it is about.
        device: Ordinal.
    """

    text: str
    line: Line
    device: int


@Once
def dominant(recording: RecordingData) -> tuple[Fact, ...]:
    """Return the line with most GPU time and that with most bytes at the peak, of each device.

    They are no faults: where a program spends what it needs is where a change matters. Each has its
    share; the first says what limits the device, as if the program had not been recorded.
    """
    parts = [each.recording for each in processes(recording)] or [recording]
    return tuple(
        fact
        for part in parts
        for device in part.devices
        for fact in (*_of_time(compensated(part), device), *_of_memory(part, device))
    )


def _of_time(recording: RecordingData, device: int) -> Iterator[Fact]:
    activities = recording.tables["activities"]
    kinds = codes(activities["kind"], _KINDS)
    steady = steady_state(recording, device)
    if steady is None:
        return
    chosen = (plain(activities["device"]) == device) & (kinds != _KINDS.index("range"))
    rows = np.flatnonzero(chosen & (plain(activities["time"]) >= steady.from_ns))
    calls = calls_of(recording.tables, plain(activities["correlation"])[rows])
    stacks = stacks_of(recording.tables, calls)
    spent = durations(activities, recording.bounds)[rows]
    found = _largest(recording, stacks, spent)
    if found is None:
        return
    stack, most = found
    lanes = (each for each in whole_overlap(recording).devices if each.device == device)
    lane = next(lanes, None)
    of_line = rows[_is_of_line(recording, stack, stacks)]
    limit = "" if lane is None else f" {_limit(recording, lane, steady, of_line)}"
    line = line_of(recording, stack, format_duration(most))
    yield Fact(
        f"{as_subject(text_of(line))} takes {format_duration(most)} of the GPU's work, "
        f"{format_share(most / max(int(spent.sum()), 1))}.{limit}",
        line,
        device,
    )


def _of_memory(recording: RecordingData, device: int) -> Iterator[Fact]:
    peak, state = peak_and_state(recording, device)
    if state is None or not peak.bytes:
        return
    blocks = state.blocks()
    there = (blocks["device"] == device) & (blocks["state"] == ALLOCATED)
    stacks, sizes = blocks["stack"][there], blocks["size"][there].astype(np.int64)
    found = _largest(recording, stacks, sizes)
    if found is None:
        return
    stack, most = found
    line = line_of(recording, stack, format_bytes(most))
    yield Fact(
        f"{as_subject(text_of(line))} holds {format_bytes(most)} of the peak of "
        f"{format_bytes(peak.bytes)}, {format_share(most / peak.bytes)}"
        f"{_kept(recording, stack, stacks, sizes)}{_workspaces(recording, device, stack, peak)}.",
        line,
        device,
    )


def _kept(recording: RecordingData, stack: int, stacks: np.ndarray, sizes: np.ndarray) -> str:
    """Return in how many arrays a line holds memory, if most are of call stacks that recur."""
    of_line = _is_of_line(recording, stack, stacks)
    _, place, counts = np.unique(stacks[of_line], return_inverse=True, return_counts=True)
    again = sizes[of_line][counts[place.ravel()] >= _FEWEST_ARRAYS]
    if again.sum() < _MOST_OF_ARRAYS * sizes[of_line].sum():
        return ""
    return f", in {format_count(int(of_line.sum()))} arrays"


def _workspaces(recording: RecordingData, device: int, stack: int, peak: Peak) -> str:
    """Return how much of a line's memory at the peak libraries keep, such as cuBLAS's workspace.

    A library allocates it within the first line that needs it.
    """
    if not is_training(recording):
        return ""
    blocks, category = block_categories(recording)
    there = live_at(blocks, device, peak.time_ns) & (category == _WORKSPACE)
    size = int(blocks.size[there][_is_of_line(recording, stack, blocks.stack[there])].sum())
    return f", {format_bytes(size)} of it workspaces of libraries" if size else ""


def _largest(
    recording: RecordingData, stacks: np.ndarray, amounts: np.ndarray
) -> tuple[int, int] | None:
    """Return a call stack of the line with the largest sum, and the sum; None without a line."""
    known = stacks != 0
    if not amounts[known].sum():
        return None
    stacks, amounts = stacks[known], amounts[known]
    lines = line_numbers(recording, stacks)
    sums = np.bincount(lines, amounts)
    most = int(np.argmax(sums))
    return int(stacks[np.flatnonzero(lines == most)[0]]), int(sums[most])


def _is_of_line(recording: RecordingData, stack: int, stacks: np.ndarray) -> np.ndarray:
    """Return which call stacks are of the same line of the program as another."""
    lines = line_numbers(recording, np.append(stack, stacks))
    is_of_line: np.ndarray = lines[1:] == lines[0]
    return is_of_line


def _limit(
    recording: RecordingData,
    lane: LaneOverlap,
    steady: SteadyState,
    of_line: np.ndarray,
) -> str:
    """Return what limits a device, in a sentence or two.

    Args:
        recording: The recording.
        lane: The device's work.
        steady: Its steady state.
        of_line: The rows of ``activities`` of the line with most time.
    """
    busy = f"The GPU is busy for {format_share(steady.busy)} of the time"
    cause, idle_ns = _cause(recording, lane.device, steady)
    is_known, idle = idle_ns >= _MOST * steady.idle_ns, f"{format_duration(idle_ns)} of idle time"
    if steady.busy < _MOST:
        return f"{busy}: {cause} the program, with {idle}." if is_known else f"{busy}."
    work = f"{busy}: {_limiting_work(recording, lane, of_line)}"
    return f"{work} In {idle}, {cause} it." if is_known and steady.busy < _MOSTLY else work


def _limiting_work(recording: RecordingData, lane: LaneOverlap, of_line: np.ndarray) -> str:
    """Return what work of a device limits the program, after "the time:"."""
    if lane.exposed_copy_ns + lane.device_copy_ns > lane.kernel_ns:
        return "copies limit the program."
    moved = bandwidth(recording, lane.device)
    if moved is None:
        return f"its kernels limit the program.{_use(recording, of_line)}"
    limit = "its memory limits" if moved.is_limit else "its kernels limit"
    return f"{limit} the program, with {moved} read and written by kernels."


def _cause(recording: RecordingData, device: int, steady: SteadyState) -> tuple[str, int]:
    """Return what most of a device's idle time is due to, as what limits, and how much it is."""
    _, idle = launching_idle(recording, device, steady.from_ns)
    launching_ns = int(idle.sum())
    causes = {
        "launches limit": min(launching_ns, steady.host_ns),
        "the host limits": max(steady.host_ns - launching_ns, 0),
        "waits of the host limit": steady.causes_ns["synchronization"],
        "allocations limit": steady.causes_ns["allocation"],
        "waits between streams limit": steady.causes_ns["dependency"],
    }
    cause = max(causes, key=lambda each: causes[each])
    return cause, causes[cause]


def _use(recording: RecordingData, activities: np.ndarray) -> str:
    """Return how much of the memory's bandwidth a line's longest kernel needs, if it is known."""
    use = use_once(recording, activities)
    if use is None:
        return ""
    share = use.bandwidth.reached / use.bandwidth.possible
    needed = (
        format_share(share)
        if share >= _SMALLEST_USE
        else f"less than {format_share(_SMALLEST_USE)}"
    )
    needs = (
        f" If `{use.kernel}` uses each of its arrays once, it needs {needed} of the memory's "
        "bandwidth"
    )
    if share >= _LEAST_USE:
        return f"{needs}."
    return (
        f"{needs}: it mostly computes, uses them again and again, or accesses memory inefficiently "
        "(uncoalesced, or by atomics on few addresses). Nsight Compute tells which."
    )
