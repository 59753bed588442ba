"""Memory events of a simulated GPU."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from gpuviz import _core
from gpuviz.recorder.prevention import NO_PREVENTION, PreventedReuse, Prevention

if TYPE_CHECKING:
    import pyarrow as pa

DEVICE = 0
# Of an H100 SXM, in bytes per second.
_MEMORY_BANDWIDTH = 3_352_320_000_000


class SimulatedSource:
    """The allocators of a `SimulatedGPU` as the source of one recording.

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
        host_allocator: _core.HostAllocator,
        *,
        real_time: bool,
        prevention: Prevention = NO_PREVENTION,
    ) -> None:
        self._native = native
        self._allocator = allocator
        self._host_allocator = host_allocator
        self._real_time = real_time
        self._prevented = PreventedReuse(prevention)
        self._session: _core.Session | None = None
        self._duration: dict[str, int] = {}

    def tables(self) -> "dict[str, pa.Table]":
        """Return nothing: all tables grow during the recording."""
        return {}

    def describe(self, session: _core.Session) -> None:
        """Push the existing segments and blocks."""
        self._session = session
        if not self._real_time:
            self._native.wait_until(session.start_ns)
            self._native.set_clock_of(session)
        self._allocator.describe_state(self._sink(session), stacks_are_valid=False)

    def begin(self, session: _core.Session) -> None:
        """Start recording the allocators."""
        self._allocator.attach(self._sink(session))
        self._host_allocator.record_into(session)
        track = partial(self._native.track_uses, self._allocator, session)
        self._prevented.begin(DEVICE, self._allocator, track)

    def _sink(self, session: _core.Session) -> Any:
        sink = session.sink(DEVICE)
        if self._real_time:
            return sink
        return _core.ClockedSink(self._native, sink)

    def devices(self, _active: Iterable[int], /) -> list[dict[str, Any]]:
        """Return the simulated device."""
        total = self._allocator.device.total_memory
        named = {"id": DEVICE, "name": "simulated GPU", "uuid": ""}
        size = {"total_memory": total, "multiprocessors": _core.SimulatedGpu.multiprocessors}
        size |= {"memory_bandwidth": _MEMORY_BANDWIDTH}
        return [named | size | {"kind": "simulated"}]

    def sample(self) -> list[tuple[int, int]]:
        """Return the used bytes of the device."""
        free, total = self._allocator.device.memory_info()
        return [(DEVICE, total - free)]

    def now_ns(self) -> int | None:
        """Return the device's time if its clock is simulated, else None."""
        return None if self._real_time else self._native.now_ns

    def end(self) -> tuple[str, ...]:
        """Stop recording."""
        notes = self._prevented.end()
        self._allocator.detach()
        self._host_allocator.stop_recording()
        self._duration = self._duration_fields()
        if self._session is not None:
            self._native.stop_clock_of(self._session)
        self._session = None
        return notes

    def manifest_fields(self) -> Mapping[str, Any]:
        """Return the settings, the allocator's statistics, and the simulation's label."""
        return {
            "settings": self._allocator.settings.text,
            "memory_stats": {DEVICE: self._allocator.memory_stats()},
            "simulated": True,
            "label": "Recorded on a simulated GPU",
            **self._duration_fields(),
            **self._prevented.fields(),
        }

    def _duration_fields(self) -> dict[str, int]:
        """Return the duration of the recording if the clock is simulated."""
        if self._real_time or self._session is None:
            return self._duration
        return {"duration_ns": self._native.now_ns - self._session.start_ns}
