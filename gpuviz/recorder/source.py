"""Interface of sources of memory events."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from gpuviz import _core


class Source(Protocol):
    """Makes the memory events of one recording; used once.

    The recorder calls `tables`, `describe`, `begin` and `end` in this order, and the rest at any
    time, from any thread. Where `begin` raised, `end` is called too, to undo what it had done.
    """

    @property
    def allocator(self) -> str:
        """``caching``, ``observe`` or what else the manifest should say."""

    @property
    def allocator_name(self) -> str:
        """The allocator as its users know it, for example ``cupy.cuda.MemoryPool``."""

    @property
    def framework(self) -> str:
        """The framework whose memory it is; see ``pools`` in `gpuviz.recording.tables`."""

    @property
    def memory(self) -> str:
        """The kind of that memory, empty if unknown; see ``pools``."""

    def tables(self) -> "dict[str, pa.Table]":
        """Return tables that are known before: call stacks that are not captured, for example."""

    def describe(self, session: "_core.Session") -> None:
        """Push events that make up the state before the recording."""

    def begin(self, session: "_core.Session") -> None:
        """Send events to the session from now on."""

    def devices(self) -> list[dict[str, Any]]:
        """Return the rows of the table ``devices`` known by now; polled, from another thread."""

    def sample(self) -> list[tuple[int, int]]:
        """Return ``(device, used bytes)`` for the devices in use, other processes included."""

    def now_ns(self) -> int | None:
        """Return the time on the clock of its events; None where that is the session's."""

    def end(self) -> tuple[str, ...]:
        """Send no more events, and return what the user should know, in sentences."""

    def manifest_fields(self) -> Mapping[str, Any]:
        """Return further fields of the manifest: settings, versions, labels, final statistics."""
