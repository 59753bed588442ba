"""The memory of a recorded worker, as events that clients of the cluster can follow."""

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from distributed import Worker

    from gpuviz.recorder.recorder import Recorder

# Of the events: the memory of a worker that is recorded, and that its recording has ended.
MEMORY_TOPIC = "gpuviz-memory"
_INTERVAL_S = 1.0


class MemoryReports:
    """Logs an event when the memory of a recording has changed, at most once a second.

    An event has the ``run``, the worker's ``name`` and ``host``, ``allocated``, ``peak`` and
    ``reserved`` in bytes, summed over its devices, and whether the recording has ``ended``.

    Args:
        worker: The worker, on whose event loop this is called.
        recorder: An active recorder.
        run: The recording of the cluster that it belongs to.
    """

    def __init__(self, worker: "Worker", recorder: "Recorder", run: str) -> None:
        self._worker, self._recorder = worker, recorder
        self._about = {"run": run, "name": str(worker.name), "host": worker.ip}
        self._unfollow = recorder.follow_statistics(lambda: None)
        self._levels: dict[str, int] = {}
        self._task = asyncio.create_task(self._repeat())

    def end(self) -> None:
        """Log the last event; the recording must have ended."""
        self._task.cancel()
        self._log(ended=True)
        self._unfollow()

    async def _repeat(self) -> None:
        while True:
            if self._read() != self._levels:
                self._log(ended=False)
            await asyncio.sleep(_INTERVAL_S)

    def _log(self, *, ended: bool) -> None:
        self._levels = self._read()
        self._worker.log_event(MEMORY_TOPIC, {**self._about, **self._levels, "ended": ended})

    def _read(self) -> dict[str, int]:
        devices = self._recorder.statistics.devices
        return {
            "allocated": sum(device.allocated for device in devices),
            "peak": sum(device.allocated_peak for device in devices),
            "reserved": sum(device.reserved for device in devices),
        }
