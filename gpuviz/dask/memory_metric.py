"""The memory of a recorded worker, in the metrics that each worker of Dask sends."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distributed import Worker

    from gpuviz.recorder.recorder import Recorder

# The page "RMM Memory" of Dask's dashboard reads this metric.
_METRIC = "rmm"


class MemoryMetric:
    """Reports allocated and reserved bytes of a recording as a worker's RMM pool.

    Dask sends metrics with each heartbeat of a worker, about once a second. A metric of RMM itself
    is put back at the end.

    Args:
        worker: The worker; its metrics are replaced from now on.
        recorder: An active recorder.
    """

    def __init__(self, worker: "Worker", recorder: "Recorder") -> None:
        self._recorder = recorder
        # While someone follows them, reading the statistics computes nothing.
        self._unfollow = recorder.follow_statistics(lambda: None)
        self._replaced: Any = worker.metrics.get(_METRIC)
        worker.metrics[_METRIC] = self._read

    def uninstall(self, worker: "Worker") -> None:
        """Put back the worker's metric."""
        self._unfollow()
        if worker.metrics.get(_METRIC) != self._read:
            return
        if self._replaced is None:
            del worker.metrics[_METRIC]
        else:
            worker.metrics[_METRIC] = self._replaced

    def _read(self, worker: "Worker") -> dict[str, int]:
        del worker
        devices = self._recorder.statistics.devices
        return {
            "rmm-used": sum(device.allocated for device in devices),
            "rmm-total": sum(device.reserved for device in devices),
        }
