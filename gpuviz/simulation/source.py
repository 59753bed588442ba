"""Memory events of a simulated GPU."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gpuviz import _core

if TYPE_CHECKING:
    import pyarrow as pa

DEVICE = 0


class SimulatedSource:
    """The allocator of a `SimulatedGPU`, for the time of one recording.

    See `gpuviz.recorder.source.Source`.
    """

    allocator = "caching"
    allocator_name = "gpuviz caching allocator"
    framework = ""
    memory = "device"

    def __init__(
        self,
        native: _core.SimulatedGpu,
        allocator: _core.CachingAllocator,
        *,
        real_time: bool,
    ) -> None:
        self._native = native
        self._allocator = allocator
        self._real_time = real_time
        self._session: _core.Session | None = None
        self._duration: dict[str, int] = {}

    def tables(self) -> "dict[str, pa.Table]":
        """Return nothing: all tables grow during the recording."""
        return {}

    def describe(self, session: _core.Session) -> None:
        """Push segments and blocks from before."""
        self._session = session
        if not self._real_time:
            self._native.wait_until(session.start_ns)
        self._allocator.describe_state(self._sink(session), stacks_are_valid=False)

    def begin(self, session: _core.Session) -> None:
        """Record what the allocator does."""
        self._allocator.attach(self._sink(session))

    def _sink(self, session: _core.Session) -> Any:
        sink = session.sink(DEVICE)
        if self._real_time:
            return sink
        return _core.ClockedSink(self._native, sink)

    def devices(self) -> list[dict[str, Any]]:
        """Return the simulated device."""
        total = self._allocator.device.total_memory
        named = {"id": DEVICE, "name": "simulated GPU", "uuid": ""}
        return [named | {"total_memory": total, "kind": "simulated"}]

    def sample(self) -> list[tuple[int, int]]:
        """Return the used bytes of the device."""
        free, total = self._allocator.device.memory_info()
        return [(DEVICE, total - free)]

    def now_ns(self) -> int | None:
        """Return the time of the device where that is not the time of day."""
        return None if self._real_time else self._native.now_ns

    def end(self) -> tuple[str, ...]:
        """Record no more."""
        self._allocator.detach()
        self._duration = self._duration_fields()
        self._session = None
        return ()

    def manifest_fields(self) -> Mapping[str, Any]:
        """Return the settings, the allocator's statistics, and that all of it is simulated."""
        return {
            "settings": self._allocator.settings.text,
            "memory_stats": {DEVICE: self._allocator.memory_stats()},
            "simulated": True,
            "label": "Made on a simulated GPU",
            **self._duration_fields(),
        }

    def _duration_fields(self) -> dict[str, int]:
        """Return how long the recording is where the recorder's clock does not tell."""
        if self._real_time or self._session is None:
            return self._duration
        return {"duration_ns": self._native.now_ns - self._session.start_ns}
