"""R10: the program releases the allocator's cache, and allocates the same memory again."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpuviz import _core
from gpuviz.advice.evidence import Evidence
from gpuviz.advice.finding import Finding
from gpuviz.advice.host_lines import longest_lines
from gpuviz.advice.replay.schedule import Schedule, ScheduleChange
from gpuviz.advice.reserved.driver_allocations import calls_for_segments, calls_named
from gpuviz.advice.reserved.released_pools import ReleasedPools, released_pools
from gpuviz.advice.reserved.reserved_memory import ReservedMemory
from gpuviz.advice.rule import Rule
from gpuviz.analysis.device_replay import DeviceReplay, total_memory
from gpuviz.analysis.launches import durations, have_frame, stacks_of
from gpuviz.analysis.other_memory import other_memory
from gpuviz.analysis.peak import peak
from gpuviz.data.call_stacks import Frame
from gpuviz.data.columns import codes, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import ACTIONS
from gpuviz.quantities import format_bytes, format_counted, format_duration

RULES = (
    Rule(
        "R10",
        "a cache that is released in a loop",
        "`empty_cache` releases segments at least four times, and a replay without it allocates "
        "fewer; or `free_all_blocks` of a pool of the program gives back blocks at least four "
        "times, and as many bytes are allocated again for the same stream; the GPU has room for "
        "what is then kept beside all else that was used; the saving is the time of the driver's "
        "calls that are then not made",
        "remove the call",
    ),
)

# Fewer calls than these may be deliberate: before another library starts, or at the end.
_LEAST_CALLS = 4
_MOST_SHOWN = 20
_FREE = "cuMemFree_v2"
_OF_TORCH = re.compile(r"torch[/\\](cuda|accelerator)[/\\]memory\.py$")


def find(schedule: Schedule) -> Iterator[Finding]:
    """Find lines that release the cache of the allocator again and again.

    Trigger: ``empty_cache`` releases segments at least four times, and a replay without these calls
    makes fewer segments, and lets no other request fail. The device has room for what is then
    reserved, beside the most that libraries and other processes used. Only where the replay with
    them reserves what was recorded, and each of these segments has its call of the driver. Of
    torch's allocator, whose calls are not recorded, they are inferred from the segments that were
    released, and the call stack has ``torch.cuda.empty_cache``. Pools that the program makes itself
    are judged by the driver's calls: see `gpuviz.advice.reserved.released_pools.released_pools`.

    Saving: the recording's `Schedule`, replayed without the calls of the driver that are then not
    made. Other libraries or processes may need the memory: ``possible``.
    """
    recording = schedule.recording
    if recording.dropped:
        return
    for device in recording.devices:
        pools = released_pools(recording, device)
        of_both = pools.kept_bytes + peak(recording, device).bytes
        if pools.times >= _LEAST_CALLS and _has_room(recording, device, of_both, ("rest",)):
            yield _of_pools(schedule, pools, device)
        memory = ReservedMemory(recording, device)
        emptied = _Emptied(memory)
        if emptied.count < _LEAST_CALLS or not memory.is_reproduced:
            continue
        without = memory.replayed(memory.own or "", "no_empty_cache")
        if not _has_room(recording, device, without.reserved, ("libraries", "rest")):
            continue
        found = emptied.calls(schedule)
        if found is not None and without.failures <= memory.failures:
            yield _finding(schedule, memory, emptied, found)


@dataclass(frozen=True, slots=True, eq=False)
class _Calls:
    """Rows of ``api_calls`` that are not made without ``empty_cache``.

    Attributes:
        made: Those that allocate segments.
        released: Those that release segments.
        stacks: The call stack of the call of ``empty_cache`` behind each of the latter.
    """

    made: np.ndarray
    released: np.ndarray
    stacks: np.ndarray


class _Emptied:
    """The calls of ``empty_cache`` on a device that released segments, and what they caused."""

    def __init__(self, memory: ReservedMemory) -> None:
        self._memory = memory
        self._events = memory.recording.tables["memory_events"]
        there = plain(self._events["device"]) == memory.device
        there[: memory.recording.manifest.initial_events] = False
        self._rows = np.flatnonzero(there)
        self._actions = codes(self._events["action"], ACTIONS)[self._rows]
        released = plain(self._events["size"])[self._rows] > 0
        self._is_call = (self._actions == ACTIONS.index("empty_cache")) & released
        self._inferred = self._rows[:0] if self._is_call.any() else self._inferred_calls()

    def _inferred_calls(self) -> np.ndarray:
        """Return the positions of the first segment that each call released."""
        memory = self._memory
        if np.count_nonzero(self._actions == ACTIONS.index("segment_free")) < _LEAST_CALLS:
            return self._rows[:0]
        replay = DeviceReplay(memory.recording, memory.device, memory.own, None)
        program = replay.operations.program
        is_call = program.operation == int(_core.Operation.empty_cache)
        rows = replay.rows[program.origin[is_call]]
        found = np.flatnonzero(np.isin(self._rows, rows))
        called: np.ndarray = found[self._are_called(found)]
        return called

    def _are_called(self, positions: np.ndarray) -> np.ndarray:
        """Return which segments the program released: libraries do too, as cuDNN's benchmark."""
        stacks = plain(self._events["stack"])[self._rows[positions]]
        return have_frame(self._memory.recording, stacks, _is_empty_cache)

    @property
    def count(self) -> int:
        """How often the cache was released."""
        return int(self._is_call.sum()) + len(self._inferred)

    def calls(self, schedule: Schedule) -> _Calls | None:
        """Return the calls of the driver that they cause; None if there are none, or unknown."""
        made, released = self._avoided_segments(), self._released_segments()
        times = plain(self._events["time"])[self._rows]
        driver = schedule.recording.tables["api_calls"]
        begin = plain(driver["time"])
        # A segment is recorded before it is released.
        frees, calls = calls_named(schedule, _FREE), calls_for_segments(schedule, self._rows[made])
        after = np.searchsorted(begin[frees], times[released])
        is_known = made.size and calls.min() >= 0 and after.max(initial=-1) < len(frees)
        is_distinct = len(np.unique(calls)) == len(made) and len(np.unique(after)) == len(released)
        if not is_known or not is_distinct:
            return None
        stacks = plain(self._events["stack"])[self._rows[released]]
        return _Calls(calls, frees[after], stacks)

    def _released_segments(self) -> np.ndarray:
        """Return the positions of the segments that the calls released, one after the other.

        A recorded call is after them.
        """
        released = self._actions == ACTIONS.index("segment_free")
        others = np.flatnonzero(~released)
        found = np.flatnonzero(released)
        place = np.searchsorted(others, found)
        following = np.append(others, -1)[place]
        is_released = (following >= 0) & self._is_call[following]
        is_released |= np.isin(place, np.searchsorted(others, self._inferred))
        by_call: np.ndarray = found[is_released]
        return by_call

    def _avoided_segments(self) -> np.ndarray:
        """Return the positions of the segments that are not made without the calls."""
        memory = self._memory
        replay = DeviceReplay(memory.recording, memory.device, memory.own, None, "no_empty_cache")
        log = _core.ReplayLog(replay.events, replay.operations)
        replay.allocator.attach(log)
        _core.Replayer(replay.operations.program, replay.device, replay.allocator, log).run()
        again = log.take()
        is_made = again["action"] == ACTIONS.index("segment_alloc")
        needed = replay.rows[again["origin"][is_made]]
        made = np.flatnonzero(self._actions == ACTIONS.index("segment_alloc"))
        asked = np.flatnonzero(np.isin(self._actions, list(map(ACTIONS.index, ("alloc", "oom")))))
        requests = np.append(asked, -1)[np.searchsorted(asked, made)]
        avoided: np.ndarray = made[~np.isin(self._rows[requests], needed)]
        return avoided


def _is_empty_cache(frame: Frame) -> bool:
    return frame.name == "empty_cache" and bool(_OF_TORCH.search(frame.filename))


def _finding(
    schedule: Schedule, memory: ReservedMemory, emptied: _Emptied, calls: _Calls
) -> Finding:
    recording = schedule.recording
    driver = recording.tables["api_calls"]
    rows = np.sort(np.concatenate([calls.made, calls.released]))
    change = _without_calls(schedule, rows)
    lengths = durations(driver)
    lines = longest_lines(recording, calls.stacks, lengths[calls.released])
    without = memory.replayed(memory.own or "", "no_empty_cache")
    made = format_counted(len(calls.made), "segment is", "segments are")
    return Finding(
        rule="R10",
        title=f"The cache of the allocator is released {emptied.count} times, and {made} "
        "allocated again.",
        reason=(
            f"`cudaMalloc` and `cudaFree` take {format_duration(int(lengths[rows].sum()))} for it; "
            "`cudaFree` also waits for the GPU. The recorded allocations and frees were repeated "
            f"without the calls of `empty_cache`, which reserves {format_bytes(without.reserved)} "
            f"at the peak; {format_bytes(memory.peak)} were recorded."
        ),
        change=(
            "Remove the call, or make it after the loop, unless another library or process needs "
            "the memory meanwhile: the allocator uses what it has cached again."
        ),
        certainty="possible",
        device=memory.device,
        saved_ns=schedule.saved_alone(change),
        lines=lines,
        evidence=_evidence(schedule, rows),
        schedule=change,
    )


def _of_pools(schedule: Schedule, pools: ReleasedPools, device: int) -> Finding:
    """Return the finding about pools of the program that give their blocks back again and again."""
    recording = schedule.recording
    rows = np.sort(np.concatenate([pools.made, pools.released]))
    change = _without_calls(schedule, rows)
    lengths = durations(recording.tables["api_calls"])
    stacks = stacks_of(recording.tables, pools.released)
    blocks = format_counted(len(pools.made), "block is", "blocks are")
    return Finding(
        rule="R10",
        title=f"The blocks of a pool are released {pools.times} times, and {blocks} allocated "
        "again.",
        reason=(
            f"`cudaMalloc` and `cudaFree` take {format_duration(int(lengths[rows].sum()))} for it; "
            "`cudaFree` also waits for the GPU. If the pool keeps its blocks, and uses each only "
            f"for as many bytes again, it has {format_bytes(pools.kept_bytes)} at most."
        ),
        change=(
            "Remove the call of `free_all_blocks`, or make it after the loop, unless another "
            "library or process needs the memory meanwhile: the pool uses what it has again."
        ),
        certainty="possible",
        device=device,
        saved_ns=schedule.saved_alone(change),
        lines=longest_lines(recording, stacks, lengths[pools.released]),
        evidence=_evidence(schedule, rows),
        schedule=change,
    )


def _has_room(
    recording: RecordingData, device: int, kept_bytes: int, beside: tuple[str, ...]
) -> bool:
    """Return whether a device has memory for what allocators keep beside others; yes if unknown.

    Args:
        recording: The recording.
        device: Ordinal.
        kept_bytes: What the allocators have at most if they keep it.
        beside: The columns of `other_memory` that are of others.
    """
    total = total_memory(recording, device)
    samples = other_memory(recording, "time")
    levels = np.sum([plain(samples[name]) for name in beside], axis=0)
    others = int(levels[plain(samples["device"]) == device].max(initial=0))
    return not total or others + kept_bytes <= total


def _without_calls(schedule: Schedule, rows: np.ndarray) -> ScheduleChange:
    """Return the schedule without some calls, rows of ``api_calls``."""
    removed = np.zeros(len(schedule.called), bool)
    removed[rows] = True
    return ScheduleChange(instant=removed, without_wait=removed)


def _evidence(schedule: Schedule, rows: np.ndarray) -> Evidence:
    begin = plain(schedule.recording.tables["api_calls"]["time"])[rows]
    shown = tuple(rows[:_MOST_SHOWN].tolist())
    return Evidence("api_calls", shown, (int(begin.min()), int(begin.max())))
