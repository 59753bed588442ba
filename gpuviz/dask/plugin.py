"""The plugin that records a Dask worker."""

import asyncio
import logging
import threading
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distributed.diagnostics.plugin import WorkerPlugin

from gpuviz.dask.memory_metric import MemoryMetric
from gpuviz.dask.memory_reports import MemoryReports
from gpuviz.dask.task_ranges import TaskRanges
from gpuviz.dask.worker_files import RecordingLock, new_path, run_folder
from gpuviz.recorder.record import record
from gpuviz.recorder.recorder import Recorder

if TYPE_CHECKING:
    from distributed import Worker

PLUGIN = "gpuviz"
# Of the events that the client reads: a recording started, or why it did not.
TOPIC = "gpuviz"

_logger = logging.getLogger("distributed.worker")


class RecordingPlugin(WorkerPlugin):
    """Records a worker from its setup to its teardown.

    It never fails: why a worker is not recorded is logged and in ``problem``, and the client is
    notified.

    Args:
        run: The name of the folder of these recordings in Dask's scratch folder.
        names: The names of the workers to record; None for all.
        options: The options of `gpuviz.record`, and ``device`` a function that returns one.
        folder: Where to record instead.

    Attributes:
        problem: Why the worker is not recorded; empty if it is.
    """

    name = PLUGIN

    def __init__(
        self,
        run: str,
        names: Collection[str] | None,
        options: Mapping[str, Any],
        folder: Path | None = None,
    ) -> None:
        self.problem = ""
        self._run = run
        self._names = names
        self._options = dict(options)
        self._folder = None if folder is None else folder.absolute()
        self._recorder: Recorder | None = None
        self._lock: RecordingLock | None = None
        self._tasks: TaskRanges | None = None
        self._memory: MemoryMetric | None = None
        self._reports: MemoryReports | None = None

    def is_wanted(self, worker: "Worker") -> bool:
        """Return whether a worker is to be recorded."""
        return self._names is None or str(worker.name) in self._names

    async def setup(self, worker: "Worker") -> None:
        """Start recording the worker, if it is to be recorded."""
        self._changing, self._has_recorder = asyncio.Lock(), threading.Lock()
        if self.is_wanted(worker):
            async with self._changing:
                await self._begin(worker)

    async def teardown(self, worker: "Worker") -> None:
        """Stop recording the worker, once its recording has started."""
        async with self._changing:
            await self._end(worker)

    async def _begin(self, worker: "Worker") -> None:
        path = new_path(self._folder or run_folder(worker, self._run), worker)
        try:
            recorder = await asyncio.to_thread(self._start, path)
        except Exception as error:  # noqa: BLE001 - the worker must continue
            self._report(worker, "not recorded", error)
            return
        self._tasks = TaskRanges.install(worker)
        self._memory = MemoryMetric(worker, recorder)
        self._log(worker, path=str(path))
        self._reports = MemoryReports(worker, recorder, self._run)

    async def _end(self, worker: "Worker") -> None:
        if self._tasks is not None:
            self._tasks.uninstall(worker)
        if self._memory is not None:
            self._memory.uninstall(worker)
        try:
            await asyncio.to_thread(self._stop)
        except Exception as error:  # noqa: BLE001 - the worker must continue
            self._report(worker, "its recording is incomplete", error)
        if self._reports is not None:
            self._reports.end()

    def _start(self, path: Path) -> Recorder:
        # A thread goes on when the call that waits for it is canceled.
        with self._has_recorder:
            options = dict(self._options)
            if options.get("device") is not None:
                options["device"] = options["device"]()
            path.parent.mkdir(parents=True, exist_ok=True)
            recorder = record(path, **options)
            self._lock = RecordingLock(path)
            try:
                recorder.start()
            except BaseException:
                self._lock.release()
                raise
            self._recorder = recorder
        return recorder

    def _stop(self) -> None:
        with self._has_recorder:
            try:
                if self._recorder is not None and self._recorder.is_recording:
                    self._recorder.stop()
            finally:
                if self._lock is not None:
                    self._lock.release()

    def _report(self, worker: "Worker", consequence: str, error: Exception) -> None:
        self.problem = f"{consequence} ({type(error).__name__}: {error})"
        _logger.warning("gpuviz: %s", self.problem)
        self._log(worker)

    def _log(self, worker: "Worker", path: str = "") -> None:
        # Dask adds the worker's address.
        event = {"run": self._run, "name": str(worker.name), "host": worker.ip}
        worker.log_event(TOPIC, {**event, "path": path, "problem": self.problem})


def state_of(dask_worker: "Worker") -> tuple[str, str] | None:
    """Return a worker's name and why it is not recorded, empty if it is; None if not wanted."""
    plugin = dask_worker.plugins.get(PLUGIN)
    if isinstance(plugin, RecordingPlugin) and plugin.is_wanted(dask_worker):
        return str(dask_worker.name), plugin.problem
    return None


async def end_recording(dask_worker: "Worker") -> None:
    """Stop recording a worker, if its plugin is still there."""
    if PLUGIN in dask_worker.plugins:
        await dask_worker.plugin_remove(PLUGIN)
