"""Interface of sources of memory events."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from gpuviz import _core


class Source(Protocol):
    """Produces the memory events of one recording; used once.

    The recorder calls `tables`, `describe`, `begin` and `end` in this order, and the other methods
    at any time, from any thread. If `describe`, `begin` or anything between them raises an
    exception, `end` is still called to undo them.
    """

    @property
    def allocator(self) -> str:
        """The manifest's ``allocator``, such as ``caching`` or ``observe``."""

    @property
    def allocator_name(self) -> str:
        """The allocator's name for users, for example ``cupy.cuda.MemoryPool``."""

    @property
    def framework(self) -> str:
        """The framework that owns the memory; see ``pools`` in `gpuviz.data.tables`."""

    @property
    def memory(self) -> str:
        """The kind of the memory; empty if unknown; see ``pools``."""

    def tables(self) -> "dict[str, pa.Table]":
        """Return tables known before the recording, such as call stacks that are not captured."""

    def describe(self, session: "_core.Session") -> None:
        """Push events that describe the state before the recording."""

    def begin(self, session: "_core.Session") -> None:
        """Start sending events to the session."""

    def devices(self, active: Iterable[int], /) -> list[dict[str, Any]]:
        """Return the known rows of the table ``devices``; polled from another thread.

        Args:
            active: Devices with work, which may have no memory of the source.
        """

    def sample(self) -> list[tuple[int, int]]:
        """Return ``(device, used bytes)`` for the devices in use, other processes included."""

    def now_ns(self) -> int | None:
        """Return the time on the clock of the events; None if that is the session's clock."""

    def end(self) -> tuple[str, ...]:
        """Stop sending events, and return messages for the user, in sentences."""

    def manifest_fields(self) -> Mapping[str, Any]:
        """Return other fields of the manifest: settings, versions, labels, final statistics."""
