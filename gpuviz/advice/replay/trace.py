"""The calls and the GPU work of a recording, in columns."""

from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from gpuviz.advice.evidence import Evidence
from gpuviz.advice.rule import LEAST_SHARE
from gpuviz.analysis.calls import call_kinds
from gpuviz.analysis.handovers import handing_threads
from gpuviz.analysis.launches import CallSites, calls_of, durations, stacks_of
from gpuviz.analysis.peer_copies import peer_copies
from gpuviz.analysis.steady_state import steady_ns, steady_states
from gpuviz.analysis.touches import Touches, touches
from gpuviz.analysis.turns import taking_turns
from gpuviz.data.codes import CallKind
from gpuviz.data.columns import codes, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import DICTIONARIES

KINDS = DICTIONARIES["activities", "kind"]
KERNEL, COPY = KINDS.index("kernel"), KINDS.index("memcpy")
_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
_FROM_OR_TO_HOST = [_COPY_KINDS.index(each) for each in ("host_to_device", "device_to_host")]
_MEMORIES = DICTIONARIES["memory_operations", "memory"]
# More than any GPU runs at once; a product of three damaged numbers could overflow.
_MOST_BLOCKS = 1 << 31
# Rows in the evidence of a finding.
MOST_SHOWN = 1000
# Times of a damaged recording are clipped, so that no sum of them overflows.
_LIMIT = 2**60


class Trace:
    """The activities of a recording and the calls that launched them.

    Attributes:
        recording: The recording.
        rows: The rows of ``activities``, which exclude ranges on streams. A copy between GPUs is
            one row, also if it goes through the host, and in the stream that it was issued on.
        number: The number among these of each row of ``activities``; -1 of a range on a stream.
        begin: Begin of each of these, in ns.
        duration: Their durations in ns.
        end: Their ends in ns.
        kind: Their positions in `KINDS`.
        device: Their devices.
        stream: Their streams.
        launch: The correlation of the launch of each; 0 if unknown.
        call: The row of the call that launched each; -1 if unknown.
        blocks: The number of thread blocks of each kernel; 0 if unknown.
        multiprocessors: The number of multiprocessors of each device; 0 if unknown.
        called: When each call of ``api_calls`` began, in ns.
        returned: When it returned.
        thread: A number for the thread of each call, which threads that take turns share, and those
            of which one hands its work to the other; see `gpuviz.analysis.turns.taking_turns` and
            `gpuviz.analysis.handovers`. That of most calls is 0.
    """

    def __init__(self, recording: RecordingData) -> None:
        tables = recording.tables
        self.recording = recording
        self.computed: dict[Once[Any, Any], Any] = {}
        activities, calls = tables["activities"], tables["api_calls"]
        kinds = codes(activities["kind"], KINDS)
        columns = {
            name: plain(activities[name]).copy()
            for name in ("time", "device", "stream", "correlation")
        }
        lengths = durations(activities)
        is_work = kinds != KINDS.index("range")
        copies = peer_copies(tables)
        halves = copies.among(copies.is_staged)
        is_work[halves.arrival] = False
        columns["device"][copies.activity] = copies.device
        columns["stream"][copies.activity] = copies.stream
        lengths[copies.activity] = np.clip(copies.end - copies.time, 0, _LIMIT)
        self.rows = np.flatnonzero(is_work)
        self.number = np.full(len(kinds), -1)
        self.number[self.rows] = np.arange(len(self.rows))
        self.number[halves.arrival] = self.number[halves.activity]
        self.kind = kinds[self.rows]
        self.begin, self.device, self.stream, self.launch = (
            column[self.rows] for column in columns.values()
        )
        self.begin = np.clip(self.begin, -_LIMIT, _LIMIT)
        self.duration = lengths[self.rows]
        self.end = self.begin + self.duration
        self.call = calls_of(tables, self.launch)
        self.blocks = blocks_of(
            tables["launch_configurations"], plain(activities["launch"])[self.rows]
        )
        devices = tables["devices"]
        self.multiprocessors: dict[int, int] = dict(
            zip(devices["id"].to_pylist(), devices["multiprocessors"].to_pylist(), strict=True)
        )
        self.called = np.clip(plain(calls["time"]), -_LIMIT, _LIMIT)
        self.returned = np.maximum(self.called + durations(calls), self.called + 1)
        threads = plain(calls["thread"])
        groups = taking_turns(threads, self.called, self.returned)
        for thread, handing in handing_threads(recording).items():
            groups[thread] = groups.get(handing, groups[thread])
        self._groups = _by_calls(groups, threads)
        self.thread = self.group_of(threads)

    def group_of(self, threads: np.ndarray) -> np.ndarray:
        """Return the number of each thread, as in `thread`; 0 of those without calls."""
        ids, places = np.unique(threads, return_inverse=True)
        groups = [self._groups.get(each, 0) for each in ids.tolist()]
        numbers: np.ndarray = np.array(groups, np.int64)[places.ravel()]
        return numbers

    @cached_property
    def relevant_ns(self) -> float:
        """A finding that saves less time is not shown unless asked for."""
        return LEAST_SHARE * steady_ns(self.recording)

    @cached_property
    def touches(self) -> Touches | None:
        """Which work used which blocks; None if that was not recorded, or not completely."""
        return None if self.recording.dropped else touches(self.recording)

    @property
    def covered_ns(self) -> int:
        """The time from the first launch to the end of the last work, in ns."""
        if not len(self.begin):
            return 0
        first = min(int(self.begin.min()), int(self.called.min(initial=int(self.begin.min()))))
        return int(self.end.max()) - first

    @property
    def working_ns(self) -> int:
        """The part of it without idle time of warm-up and between notebook cells, in ns.

        See `gpuviz.analysis.steady_state.SteadyState`.
        """
        states = steady_states(self.recording)
        return self.covered_ns - max((each.idle_left_out_ns for each in states), default=0)

    @cached_property
    def lines(self) -> np.ndarray:
        """For each activity, a number that is equal for the same line of the program."""
        stacks = stacks_of(self.recording.tables, self.call)
        return CallSites(self.recording, stacks).numbers("line")

    @cached_property
    def call_kinds(self) -> np.ndarray:
        """The `CallKind` of each call."""
        return call_kinds(self.recording.tables)

    @cached_property
    def shares_with_host(self) -> bool:
        """Whether the host may use memory without a call that waits for the GPU's work on it.

        It may if a copy from or to the host does not wait itself, or if memory is managed.
        """
        tables = self.recording.tables
        memories = codes(tables["memory_operations"]["memory"], _MEMORIES)
        kinds = codes(tables["activities"]["copy_kind"], _COPY_KINDS)[self.rows]
        copies = (self.kind == COPY) & np.isin(kinds, _FROM_OR_TO_HOST)
        waiting = np.isin(self.call_kinds, [CallKind.MEMCPY, CallKind.PAGEABLE_MEMCPY])
        waits = np.append(waiting, False)[self.call[copies]]
        return not waits.all() or bool((memories == _MEMORIES.index("managed")).any())

    def launch_begin(self) -> np.ndarray:
        """Return when the call that launched each activity began; undefined without a call."""
        return self.called[self.call] if len(self.called) else self.begin

    def launch_end(self) -> np.ndarray:
        """Return when the call that launched each activity returned; undefined without a call."""
        return self.returned[self.call] if len(self.returned) else self.begin

    def fit(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return whether two kernels have one multiprocessor for each block; False if unknown."""
        blocks = self.blocks[first] + self.blocks[second]
        most = np.zeros(len(blocks), np.int64)
        for device, multiprocessors in self.multiprocessors.items():
            most[self.device[first] == device] = multiprocessors
        kernels = (self.kind[first] == KERNEL) & (self.kind[second] == KERNEL)
        known = (self.blocks[first] > 0) & (self.blocks[second] > 0)
        fit: np.ndarray = kernels & known & (blocks <= most)
        return fit

    def evidence(self, work: np.ndarray) -> Evidence:
        """Return the longest of some activities, and the time from the first to the last."""
        longest = work[np.argsort(-self.duration[work], kind="stable")[:MOST_SHOWN]]
        rows = tuple(np.sort(self.rows[longest]).tolist())
        return Evidence(
            "activities", rows, (int(self.begin[work].min()), int(self.end[work].max()))
        )


def _by_calls(groups: dict[int, int], threads: np.ndarray) -> dict[int, int]:
    """Return the group of each thread, numbered anew without gaps: the one of most calls is 0."""
    ids, places = np.unique(threads, return_inverse=True)
    of_call = np.array([groups[each] for each in ids.tolist()], np.int64)[places.ravel()]
    known, counts = np.unique(of_call, return_counts=True)
    busiest_first = known[np.argsort(-counts, kind="stable")].tolist()
    numbers = {group: number for number, group in enumerate(busiest_first)}
    return {thread: numbers[group] for thread, group in groups.items()}


def blocks_of(table: pa.Table, launches: np.ndarray) -> np.ndarray:
    """Return the number of blocks of each id of ``launch_configurations``; 0 if unknown."""
    ids = plain(table["id"])
    x, y, z = (plain(table[f"grid_{axis}"]).astype(np.int64) for axis in "xyz")
    grids = np.minimum(np.minimum(x * y, _MOST_BLOCKS) * z, _MOST_BLOCKS)
    found = first_rows(ids, launches)
    blocks: np.ndarray = np.append(grids, 0)[found]
    return blocks
