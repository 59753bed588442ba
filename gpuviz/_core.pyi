"""
The native core of gpuviz: devices, the caching allocator, recording and replay.
"""

import types

import numpy


class DeviceError(RuntimeError):
    pass

class MemoryEventSink:
    """Receives the events of an allocator."""

class StackTable:
    """The distinct call stacks of a session."""

    def __len__(self) -> int: ...

    @property
    def dropped(self) -> int:
        """Captures that got stack 0 because the table was full."""

    def new_stacks(self, first_id: int) -> list[list[tuple[types.CodeType, int]]]:
        """
        The stacks `first_id`, `first_id + 1`, ...: pairs of code object and instruction offset in bytes, innermost first.
        """

class EventRing(MemoryEventSink):
    """Takes the events of one device to the collector; never waits."""

class Session:
    """
    One recording: a ring for each device, the thread that drains them into columns, and the call stacks.
    """

    def __init__(self, *, ring_capacity: int = 65536, interval_ms: float = 5.0, max_stacks: int = 131072, stack_depth: int = 64) -> None:
        """
        `ring_capacity` is events per device, a power of two; `stack_depth` 0 turns call stacks off.
        """

    def sink(self, device: int) -> EventRing:
        """The sink of a device; it keeps the session alive."""

    def start(self) -> None:
        """Begin collecting. A session records once."""

    def stop(self) -> None:
        """
        Return when every event pushed before is in columns; does nothing unless running.
        """

    def take(self, flush: bool = False) -> list[dict[str, numpy.ndarray]]:
        """
        Chunks of the table memory_events not yet taken, full ones only unless `flush`; NumPy arrays by column, at most 65536 rows each, in order within a device.
        """

    def streams(self) -> list[tuple[int, int, int]]:
        """Rows (id, device, handle) in order of first use."""

    @property
    def stacks(self) -> StackTable: ...

    def abandon_after_fork(self) -> None:
        """
        In the child after fork(): collect nothing from now on, and wait for nothing.
        """

    @property
    def stack_method(self) -> str:
        """How stacks are read: frames, attributes (slow) or none."""

    @property
    def running(self) -> bool: ...

    @property
    def events(self) -> int:
        """Events that reached columns."""

    @property
    def dropped(self) -> int:
        """Events lost because a ring was full."""

    @property
    def dropped_by_action(self) -> dict[str, int]:
        """The same, by names of ACTIONS."""

    @property
    def bytes(self) -> int:
        """Held now: rings, columns not yet taken, stacks."""

    @property
    def collector_cpu_ns(self) -> int: ...

    @property
    def start_ns(self) -> int:
        """Time zero of the columns on CLOCK_MONOTONIC; 0 before start()."""

    @property
    def wall_start_ns(self) -> int:
        """The same moment in nanoseconds since 1970."""
