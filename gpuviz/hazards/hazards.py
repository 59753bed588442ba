"""The cross-stream hazards of a recording, as a table."""

import re
from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa

from gpuviz import _core
from gpuviz.analysis.peer_copies import peer_copies
from gpuviz.analysis.processes import Process, processes
from gpuviz.analysis.touches import Touches, touches
from gpuviz.analysis.unseen import is_whole
from gpuviz.data.arrays import batch_of
from gpuviz.data.call_stacks import Frame
from gpuviz.data.codes import Code
from gpuviz.data.columns import plain
from gpuviz.data.conclusions import HOST_BEFORE_CALL, SIDES, schemas
from gpuviz.data.manifest import TORCH_ALLOCATOR
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.strings import are_named
from gpuviz.data.tables import Tables
from gpuviz.hazards.host_accesses import TABLE as HOST_ACCESSES
from gpuviz.hazards.operations import Operations, operations
from gpuviz.hazards.pinned import EVENTS_OF, WithPinned, with_pinned

# Other allocators that reuse memory as gpuviz's does: on one stream, without waiting.
_CACHING = (TORCH_ALLOCATOR, "cupy.cuda.memory.MemoryPool")
# PyTorch's kernel that writes a seed or an offset, which are numbers of 64 bits.
_FILLS_NUMBER = re.compile(r"\bat::native::FillFunctor<long>")
_NUMBER_BYTES = 8
_KINDS = tuple(each.name for each in _core.HazardKind)
_TIERS = tuple(each.name for each in _core.HazardTier)
_PROBABLE = _TIERS.index("probable")
_ALLOCATE = Code.ALLOCATE
_ON_REUSED = [_ALLOCATE, Code.LAUNCH_GRAPH]
# Verbs that the kind of the hazard does not tell.
_OWN_VERBS = {Code.FREE: "frees", Code.ALLOCATE: "reuses"}
_VERBS = {"RAW": ("writes", "reads"), "WAR": ("reads", "writes"), "WAW": ("writes", "writes")}


@Once
def judge(recording: RecordingData) -> pa.Table | str:
    """Return the table ``hazards`` of a recording, or why its hazards are unknown.

    Those that showed in the recording come first, then those that are more certain.
    """
    if processes(recording):
        return _judged_by_process(recording)
    whole = with_pinned(recording)
    used = _touches_if_known(whole.recording)
    if isinstance(used, str):
        return used
    rows = _Pairs(whole.recording, used).rows()
    return _ranked([_in_tables(row, whole) for row in rows])


def _judged_by_process(recording: RecordingData) -> pa.Table | str:
    """Return the hazards within each process, which orders nothing in another."""
    rows, reasons = [], []
    for process in processes(recording):
        found = judge(process.recording)
        if isinstance(found, str):
            reasons.append(f"{process.name}: {found}")
        else:
            rows += [_with_rows_of(process, row) for row in found.to_pylist()]
    # Without a hazard, one process that is not known leaves the answer open.
    return " ".join(reasons) if reasons and not rows else _ranked(rows)


def _with_rows_of(process: Process[RecordingData], row: dict[str, Any]) -> dict[str, Any]:
    """Return a hazard of a process with row numbers of the merged recording."""
    events = EVENTS_OF[row["memory"]]
    tables = dict.fromkeys(("block", "other_block", "free"), events)
    for side in SIDES:
        tables |= {
            f"{side}_activity": "activities",
            f"{side}_event": events,
            f"{side}_graph_call": "graph_calls",
        }
    places = {column: row[column] for column in tables}
    return row | {
        column: place if place < 0 else int(process.rows[tables[column]][place])
        for column, place in places.items()
    }


def _in_tables(row: dict[str, Any], whole: WithPinned) -> dict[str, Any]:
    """Return a hazard with the memory that it is about, and row numbers of that one's table."""
    if row["block"] < whole.first:
        return row | {"memory": "device"}
    events = ("block", "other_block", "free", *(f"{side}_event" for side in SIDES))
    return row | {"memory": "pinned"} | {name: whole.place(row[name]) for name in events}


def _ranked(rows: list[dict[str, Any]]) -> pa.Table:
    rows.sort(key=lambda row: (not row["showed"], _TIERS.index(row["tier"]), -row["count"]))
    return pa.Table.from_batches([batch_of(rows, schemas()["hazards"])])


def _touches_if_known(recording: RecordingData) -> Touches | str:
    """Return which work used which blocks, or why hazards cannot be judged."""
    manifest = recording.manifest
    lost = (
        manifest.dropped
        + manifest.dropped_oldest
        + manifest.dropped_activities
        + manifest.dropped_oldest_activities
    )
    if lost:
        return "Events were dropped, so that the order of operations is not known."
    if not manifest.complete:
        return "The recording was not finished; what orders its operations may be missing."
    if recording.bounds is not None:
        return "This is a part of a recording; what orders its operations may lie before it."
    if not is_whole(recording.tables):
        return "Streams were recorded in windows; what orders operations may lie between them."
    if manifest.allocator != "caching" and manifest.allocator_name not in _CACHING:
        return "It is not known how the program's allocator reuses memory."
    used = touches(recording)
    return used or "No launch is recorded with the blocks that it touches."


class _Pairs:
    """The pairs of operations of a process that are hazards."""

    def __init__(self, recording: RecordingData, used: Touches) -> None:
        tables = recording.tables
        self.recording, self.blocks = recording, used.blocks
        self.operations: Operations = operations(recording, used)
        self.host_accesses = tables[HOST_ACCESSES]
        found = _core.hazards_of(
            self.operations.columns, self.operations.accesses, self.operations.blocks
        )
        self.found = self._without_states_of_generators(self._without_other_copies(found))
        self.times = plain(tables["activities"]["time"])
        self.ends = _last_ends(tables)
        self.stream_of_call = plain(tables["graph_calls"]["stream"])
        self.stack_of_call = plain(tables["api_calls"]["stack"])
        self.stack_of_event = plain(tables["memory_events"]["stack"])
        self.times_of_events = plain(tables["memory_events"]["time"])
        self.lines: dict[int, tuple[str, int]] = {}
        self.callers: dict[int, tuple[Frame, ...]] = {}

    def _without_other_copies(self, found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the pairs in which the host is found to access the memory of the first operation.

        Whether other operations that use the memory were pending is not known.
        """
        host = self.operations.host_access[found["second"]]
        of_copies = np.append(plain(self.host_accesses["correlation"]), 0)[host]
        activity = self.operations.activity[found["first"]]
        correlations = np.append(plain(self.recording.tables["activities"]["correlation"]), 0)
        kept = (host < 0) | ((activity >= 0) & (correlations[activity] == of_copies))
        return {name: column[kept] for name, column in found.items()}

    def _without_states_of_generators(self, found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the pairs that are not about the state of a generator of PyTorch's for graphs.

        `torch.cuda.graph` writes it on the stream that captures, and each replay anew on its own.
        """
        names = np.append(plain(self.recording.tables["activities"]["name"]), 0)
        is_fill = are_named(self.recording.tables, names, _FILLS_NUMBER.search)
        first, second = (self.operations.activity[found[side]] for side in SIDES)
        is_replay = self.operations.graph_call[found["second"]] >= 0
        of_state = is_fill[first] & (is_fill[second] | is_replay)
        of_state &= self.blocks.requested[found["block"]] == _NUMBER_BYTES
        return {name: column[~of_state] for name, column in found.items()}

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each kind, pair of lines and pair of streams."""
        groups: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        columns = (self.found[name].tolist() for name in ("kind", "first", "second"))
        for row, (kind, first, second) in enumerate(zip(*columns, strict=True)):
            groups[kind, *self._lines(first, second)].append(row)
        return [self._row(pairs) for pairs in groups.values()]

    def _lines(self, first: int, second: int) -> tuple[Any, ...]:
        """Return the call sites of two operations and their streams.

        If they are of one line, the lines that called its function tell them apart.
        """
        lines = self._line(first), self._line(second)
        if lines[0][0] != lines[1][0]:
            return lines
        return (*lines, self._callers(first), self._callers(second))

    def _callers(self, operation: int) -> tuple[Frame, ...]:
        stack = self._stack(operation)
        if stack not in self.callers:
            self.callers[stack] = self.recording.call_stacks.user_frames(stack)
        return self.callers[stack]

    def _line(self, operation: int) -> tuple[str, int]:
        """Return the call site of an operation, and its stream."""
        if operation not in self.lines:
            site, _ = self.recording.call_stacks.call_site(self._stack(operation))
            self.lines[operation] = site, self._stream(operation)
        return self.lines[operation]

    def _stack(self, operation: int) -> int:
        host = int(self.operations.host_access[operation])
        if host >= 0:
            return int(self.host_accesses["stack"][host].as_py())
        call, event = self.operations.call[operation], self.operations.event[operation]
        if call >= 0:
            return int(self.stack_of_call[call])
        return int(self.stack_of_event[event]) if event >= 0 else 0

    def _stream(self, operation: int) -> int:
        if self.operations.host_access[operation] >= 0:
            return 0
        activity = self.operations.activity[operation]
        graph_call = int(self.operations.graph_call[operation])
        if graph_call >= 0:
            return int(self.stream_of_call[graph_call])
        if activity >= 0:
            return int(self.operations.stream[operation])
        block = int(self.operations.columns["object"][operation])
        return int(self.blocks.stream[block])

    def _showed(self, pair: int) -> bool:
        """Return whether the second operation began before the end of the first.

        A graph that was launched while an allocation had its memory shows at once.
        """
        if self._is_on_reused(pair):
            return True
        first, second = self.operations.activity[[self.found[side][pair] for side in SIDES]]
        host = int(self.operations.host_access[self.found["second"][pair]])
        if host >= 0:
            return bool(self.host_accesses["time"][host].as_py() < self.ends[first])
        if first >= 0 and self.operations.columns["code"][self.found["second"][pair]] == _ALLOCATE:
            event = self.operations.event[self.found["second"][pair]]
            return bool(self.times_of_events[event] < self.ends[first])
        if first < 0 or second < 0:
            return False
        return bool(self.times[second] < self.ends[first])

    def _tier(self, pair: int) -> int:
        """Return the tier of a pair.

        That the copy was over by the time of the host's access is known to the program perhaps in a
        way that is not recorded.
        """
        tier = int(self.found["tier"][pair])
        is_of_host = self.operations.host_access[self.found["second"][pair]] >= 0
        return max(tier, _PROBABLE) if is_of_host and not self._showed(pair) else tier

    def _is_on_reused(self, pair: int) -> bool:
        operations = [self.found[side][pair] for side in SIDES]
        found: list[int] = self.operations.columns["code"][operations].tolist()
        return found == _ON_REUSED

    def _row(self, pairs: list[int]) -> dict[str, Any]:
        shown = [pair for pair in pairs if self._showed(pair)]
        tiers = [self._tier(pair) for pair in pairs]
        typical = shown[0] if shown else pairs[tiers.index(min(tiers))]
        kind = _KINDS[self.found["kind"][typical]]
        block, other = (int(self.found[name][typical]) for name in ("block", "other_block"))
        # Where a graph finds a new owner of its memory, that is the first operation.
        old = block if other < 0 or self._is_on_reused(typical) else other
        free = int(self.blocks.free[old])
        return {
            "kind": kind,
            "tier": _TIERS[min(tiers)],
            "device": int(self.blocks.device[block]),
            "block": int(self.blocks.alloc[block]),
            "other_block": -1 if other < 0 else int(self.blocks.alloc[other]),
            "free": free if free < len(self.stack_of_event) else -1,
            "bytes": int(self.found["bytes"][pairs].max()),
            "count": len(pairs),
            "showed": int(bool(shown)),
            **{
                f"{side}_{name}": value
                for side, mode in zip(SIDES, _VERBS.get(kind, ("uses", "uses")), strict=True)
                for name, value in self._operation(int(self.found[side][typical]), mode).items()
            },
        }

    def _operation(self, operation: int, mode: str) -> dict[str, Any]:
        code = Code(self.operations.columns["code"][operation])
        host = int(self.operations.host_access[operation])
        is_before_call = host >= 0 and not self.host_accesses["exact"][host].as_py()
        return {
            "operation": HOST_BEFORE_CALL if is_before_call else code.name.lower(),
            "mode": _OWN_VERBS.get(code, mode),
            "stack": self._stack(operation),
            "stream": self._stream(operation),
            "activity": int(self.operations.activity[operation]),
            "event": int(self.operations.event[operation]),
            "graph_call": int(self.operations.graph_call[operation]),
        }


def _last_ends(tables: Tables) -> np.ndarray:
    """Return for each activity its end; for a part of something, the end of the whole."""
    activities = tables["activities"]
    ends = plain(activities["end"]).copy()
    copies = peer_copies(tables)
    ends[copies.activity] = copies.end
    nodes = np.flatnonzero(plain(activities["graph"]) != 0)
    launches, launch = np.unique(plain(activities["correlation"])[nodes], return_inverse=True)
    last = np.zeros(len(launches), ends.dtype)
    np.maximum.at(last, launch, ends[nodes])
    ends[nodes] = last[launch]
    return ends
