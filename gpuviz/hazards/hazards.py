"""The cross-stream hazards of a recording."""

from collections import defaultdict
from typing import TYPE_CHECKING, Any, cast

from gpuviz import _core
from gpuviz.analysis.allocator_settings import TORCH_ALLOCATOR
from gpuviz.analysis.columns import plain
from gpuviz.analysis.launches import texts
from gpuviz.analysis.touches import touches
from gpuviz.hazards.fix import fix
from gpuviz.hazards.hazard import Hazard, HazardOperation
from gpuviz.hazards.operations import Code, Operations, operations

if TYPE_CHECKING:
    from gpuviz.analysis.touches import Touches
    from gpuviz.hazards.hazard import Kind, Tier
    from gpuviz.recording.recording import Recording

# Other allocators that reuse memory as gpuviz's does: on one stream, without waiting.
_CACHING = (TORCH_ALLOCATOR, "cupy.cuda.memory.MemoryPool")
_KINDS = tuple(each.name for each in _core.HazardKind)
_TIERS = tuple(each.name for each in _core.HazardTier)
_VERBS = {"RAW": ("writes", "reads"), "WAR": ("reads", "writes"), "WAW": ("writes", "writes")}


def hazards(recording: "Recording") -> tuple[Hazard, ...]:
    """Return the hazards of a recording, those that showed first; see `unknown`."""
    used = _touches_if_known(recording)
    if isinstance(used, str):
        return ()
    found = [
        hazard
        for device in recording.devices
        for hazard in _Device(recording, used, device).hazards()
    ]
    order = ("certain", "probable", "latent")
    return tuple(
        sorted(found, key=lambda each: (not each.showed, order.index(each.tier), -each.count))
    )


def unknown(recording: "Recording") -> str:
    """Return why hazards of a recording cannot be judged; empty if they can."""
    used = _touches_if_known(recording)
    return used if isinstance(used, str) else ""


def _touches_if_known(recording: "Recording") -> "Touches | str":
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
    if recording.bounds is not None:
        return "This is a part of a recording; what orders its operations may lie before it."
    if manifest.allocator != "caching" and manifest.allocator_name not in _CACHING:
        return "It is not known how the program's allocator reuses memory."
    used = touches(recording)
    return used or "The recording does not have the blocks that launches touch."


class _Device:
    """The hazards of a device."""

    def __init__(self, recording: "Recording", used: "Touches", device: int) -> None:
        tables = recording.tables
        self.recording, self.blocks, self.device = recording, used.blocks, device
        self.operations: Operations = operations(recording, used, device)
        self.found = _core.hazards_of(
            self.operations.columns, self.operations.accesses, self.operations.blocks
        )
        ids, names = plain(tables["streams"]["id"]), tables["streams"]["name"]
        self.streams = dict(zip(ids.tolist(), names.to_pylist(), strict=True))
        self.activities = {
            name: plain(tables["activities"][name]) for name in ("time", "end", "stream", "name")
        }
        self.stack_of_call = plain(tables["api_calls"]["stack"])
        self.stack_of_event = plain(tables["memory_events"]["stack"])
        self.lines: dict[int, tuple[int, str, str]] = {}

    def hazards(self) -> list[Hazard]:
        """Return one hazard for each kind, pair of lines and pair of streams."""
        groups: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        columns = (self.found[name].tolist() for name in ("kind", "first", "second"))
        for row, (kind, first, second) in enumerate(zip(*columns, strict=True)):
            groups[kind, self._line(first)[1:], self._line(second)[1:]].append(row)
        return [self._hazard(rows) for rows in groups.values()]

    def _line(self, operation: int) -> tuple[int, str, str]:
        """Return the stack of an operation, its call site and the name of its stream."""
        if operation not in self.lines:
            stack = self._stack(operation)
            self.lines[operation] = stack, self._site(stack)[0], self._stream(operation)
        return self.lines[operation]

    def _stack(self, operation: int) -> int:
        call, event = self.operations.call[operation], self.operations.event[operation]
        if call >= 0:
            return int(self.stack_of_call[call])
        return int(self.stack_of_event[event]) if event >= 0 else 0

    def _site(self, stack: int) -> tuple[str, str]:
        return self.recording.call_stacks.call_site(stack)

    def _stream(self, operation: int) -> str:
        activity = self.operations.activity[operation]
        if activity >= 0:
            return self._name_of(int(self.activities["stream"][activity]))
        block = int(self.operations.columns["object"][operation])
        return self._name_of(int(self.blocks.stream[block]))

    def _name_of(self, stream: int) -> str:
        return self.streams.get(stream) or f"stream {stream}"

    def _showed(self, row: int) -> bool:
        """Return whether the second operation began before the end of the first."""
        first, second = (
            self.operations.activity[self.found[side][row]] for side in ("first", "second")
        )
        if first < 0 or second < 0:
            return False
        return bool(self.activities["time"][second] < self.activities["end"][first])

    def _hazard(self, rows: list[int]) -> Hazard:
        shown = [row for row in rows if self._showed(row)]
        tiers = [int(self.found["tier"][row]) for row in rows]
        typical = shown[0] if shown else rows[tiers.index(min(tiers))]
        kind = cast("Kind", _KINDS[self.found["kind"][typical]])
        block, other = (int(self.found[name][typical]) for name in ("block", "other_block"))
        verbs = _VERBS.get(kind, ("uses", "uses"))
        first, second = (
            self._operation(int(self.found[side][typical]), verb)
            for side, verb in zip(("first", "second"), verbs, strict=True)
        )
        old = block if other < 0 else other
        free = int(self.blocks.free[old])
        is_freed = free < len(self.stack_of_event)
        freed = self._site(int(self.stack_of_event[free]))[0] if is_freed else ""
        return Hazard(
            kind=kind,
            tier=cast("Tier", _TIERS[min(tiers)]),
            device=self.device,
            first=first,
            second=second,
            block=int(self.blocks.alloc[block]),
            other_block=-1 if other < 0 else int(self.blocks.alloc[other]),
            allocated=self._site(int(self.blocks.stack[old]))[0],
            freed=freed,
            bytes=int(self.found["bytes"][rows].max()),
            count=len(rows),
            showed=bool(shown),
            fix=fix(kind, first, second, self._name_of(int(self.blocks.stream[old])), freed),
        )

    def _operation(self, operation: int, verb: str) -> HazardOperation:
        activity = int(self.operations.activity[operation])
        is_free = self.operations.columns["code"][operation] == Code.FREE
        name = "free"
        if activity >= 0:
            (text,) = texts(self.recording.tables, self.activities["name"][[activity]])
            name = text or self.recording.tables["activities"]["kind"][activity].as_py()
        stack, site, stream = self._line(operation)
        return HazardOperation(
            name=name,
            mode="frees" if is_free else verb,
            site=site,
            source=self._site(stack)[1],
            stack=stack,
            stream=stream,
            activity=activity,
            event=int(self.operations.event[operation]),
        )
