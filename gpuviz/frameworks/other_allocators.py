"""The allocators of PyTorch and JAX, recorded beside the source of a recording."""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol

from gpuviz import _core
from gpuviz.frameworks.driver_devices import device_rows, used_bytes
from gpuviz.frameworks.jax_memory import JaxMemory
from gpuviz.frameworks.torch_trace import TorchTrace
from gpuviz.recorder.source import Source

if TYPE_CHECKING:
    import pyarrow as pa


class OtherAllocator(Protocol):
    """The allocator of a library that has its own, from its first use of the GPU."""

    def prepare(self) -> None:
        """Do what takes long before the recording's time begins."""

    def begin(self, session: _core.Session) -> None:
        """Push what it holds, and record what it does from now on."""

    def poll(self) -> None:
        """Look whether the library has used the GPU meanwhile; called repeatedly."""

    def end(self) -> tuple[str, ...]:
        """Stop recording, and return messages for the user, in sentences; may be repeated."""

    def devices(self) -> list[int]:
        """Return the devices that the library has used."""


class WithOtherAllocators:
    """A source of events, and with it the allocators of PyTorch and JAX."""

    def __init__(self, source: Source, *, stacks: bool) -> None:
        self._source = source
        self._jax = JaxMemory(stacks=stacks)
        self._allocators: tuple[OtherAllocator, ...] = (TorchTrace(stacks=stacks), self._jax)
        self._used: set[int] = set()

    @property
    def allocator(self) -> str:
        """That of the source; this and the rest as in `Source`."""
        return self._source.allocator

    @property
    def allocator_name(self) -> str:
        """The name of the source's allocator."""
        return self._source.allocator_name

    @property
    def framework(self) -> str:
        """The framework of the source's events."""
        return self._source.framework

    @property
    def memory(self) -> str:
        """The kind of the source's memory."""
        return self._source.memory

    def tables(self) -> "dict[str, pa.Table]":
        """Return the tables known before the recording, and prepare for it."""
        for allocator in self._allocators:
            allocator.prepare()
        return self._source.tables()

    def describe(self, session: _core.Session) -> None:
        """Push what all allocators hold; the others are recorded from here on."""
        self._source.describe(session)
        for allocator in self._allocators:
            allocator.begin(session)

    def begin(self, session: _core.Session) -> None:
        """Start sending the source's events."""
        self._source.begin(session)

    def devices(self, active: Iterable[int], /) -> list[dict[str, Any]]:
        """Return the devices that any has used, and those with work."""
        known = self._source.devices(active)
        return [*known, *device_rows(self._others([row["id"] for row in known]))]

    def _others(self, known: list[int]) -> list[int]:
        self._used.update(*(allocator.devices() for allocator in self._allocators))
        return sorted(self._used.difference(known))

    def sample(self) -> list[tuple[int, int]]:
        """Return the used bytes of these devices."""
        for allocator in self._allocators:
            allocator.poll()
        known = self._source.sample()
        return [*known, *used_bytes(self._others([device for device, _ in known]))]

    def now_ns(self) -> int | None:
        """Return the time on the clock of the events."""
        return self._source.now_ns()

    def end(self) -> tuple[str, ...]:
        """Stop all."""
        notes: list[str] = []

        def end(each: Source | OtherAllocator) -> None:
            notes.extend(each.end())

        # One that fails leaves no other switched on.
        with ExitStack() as ends:
            ends.callback(end, self._source)
            for allocator in self._allocators:
                ends.callback(end, allocator)
            self._others([])
        return tuple(notes)

    def manifest_fields(self) -> Mapping[str, Any]:
        """Return settings, versions and statistics of the source's allocator, and of JAX's."""
        known = self._source.manifest_fields()
        stats: dict[int, Mapping[str, int]] = dict(known.get("memory_stats", {}))
        for device, each in self._jax.statistics.items():
            stats[device] = {**stats.get(device, {}), **each}
        return {**known, "memory_stats": stats} if stats else known
