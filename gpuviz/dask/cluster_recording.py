"""`ClusterRecording`: starts and stops recordings in the workers of a cluster."""

import inspect
import os
import uuid
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from distributed import Lock, get_client

import gpuviz
from gpuviz.dask.plugin import PLUGIN, TOPIC, RecordingPlugin, end_recording, state_of
from gpuviz.dask.transfer import Transfer
from gpuviz.dask.worker_list import WorkerList
from gpuviz.errors import RecorderError, RecordingExistsError
from gpuviz.quantities import format_counted
from gpuviz.recorder.record import record
from gpuviz.recording import Recording
from gpuviz.terminal import printable

if TYPE_CHECKING:
    from distributed import Client

    from gpuviz.dask.worker_display import WorkerDisplay

# Dask releases it when the client that holds it has been gone for half a minute.
_LOCK = "gpuviz-recording"


class ClusterRecording:
    """Records the workers of a cluster in a ``with`` block; made by `gpuviz.dask.record`.

    Displayed in a notebook, it lists the workers with their memory, and follows it.

    Attributes:
        directory: Where the recordings are after the block.
        paths: The recordings, one per worker process; empty before the end of the block.
        problems: What is missing and why, by worker.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        workers: int | Iterable[str | int] | None,
        client: "Client | None",
        options: Mapping[str, Any],
    ) -> None:
        inspect.signature(record).bind("", **options)
        self.directory = Path(directory).absolute()
        self.paths: list[Path] = []
        self.problems: dict[str, str] = {}
        self._client = _synchronous(client)
        self._names = _names_of(self._client, workers)
        self._options = options
        self._run = uuid.uuid4().hex
        self._workers = WorkerList(self._run)
        self._display: WorkerDisplay | None = None
        self._has_ended = False
        self._lock = Lock(_LOCK, scheduler_rpc=self._client.scheduler, loop=self._client.loop)

    def __enter__(self) -> Self:
        """Start recording."""
        _check_has_no_recordings(self.directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        if not self._lock.acquire(blocking=False):
            raise RecorderError(
                "Another client is recording this cluster with gpuviz. If that client is gone, try "
                "again in half a minute"
            )
        try:
            # It replaces the plugin of a client that is gone, which ends those recordings.
            plugin = RecordingPlugin(self._run, self._names, self._options)
            self._client.register_plugin(plugin, name=PLUGIN)
            self.problems = self._problems_at_start()
        except BaseException:
            try:
                self._stop()
            finally:
                self._lock.release()
            raise
        _warn_of(self.problems)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop recording, and fetch the recordings."""
        try:
            self._stop()
            problems = self._fetch()
        except BaseException as failure:
            reason = ": ".join(filter(None, (type(failure).__name__, str(failure))))
            remain = (
                f"The recordings were not fetched ({reason}). They "
                f'remain on the workers\' hosts: gpuviz.dask.fetch("{self.directory}") fetches '
                "them when the cluster is available"
            )
            if error is None and isinstance(failure, Exception):
                raise RecorderError(remain) from failure
            warnings.warn(remain, RuntimeWarning, stacklevel=2)
            if not isinstance(failure, Exception):
                raise
        else:
            _warn_of(dict(problems.items() - self.problems.items()))
            self.problems = problems
            self._workers.end(problems)
        finally:
            self._has_ended = True
            if self._display is not None:
                self._display.end()
            self._lock.release()

    def __repr__(self) -> str:
        """Return the recorded workers and their memory, as far as they have been displayed."""
        return self._workers.text()

    def _ipython_display_(self) -> None:
        if self._display is None:
            from gpuviz.dask.worker_display import WorkerDisplay

            self._display = WorkerDisplay(self._client, self._workers)
        if not self._has_ended:
            self._display.follow()
        self._display.show()

    @property
    def recording(self) -> Recording:
        """The recordings of all workers, merged into one.

        Raises:
            RecorderError: The block has not ended, or nothing was recorded.
        """
        if not self.paths:
            raise RecorderError("No recordings have been fetched; they are when the block ends")
        return gpuviz.merge(self.paths)

    def _problems_at_start(self) -> dict[str, str]:
        """Return why workers are not recorded; raises a RecorderError if none is."""
        states = self._client.run(state_of, on_error="ignore").values()
        problems = dict(state for state in states if state is not None)
        if problems and all(problems.values()):
            raise RecorderError(f"No worker can be recorded: {_listed(problems)}")
        return {worker: problem for worker, problem in problems.items() if problem}

    def _stop(self) -> None:
        try:
            self._client.unregister_worker_plugin(PLUGIN)
        except (ValueError, OSError):
            # The scheduler restarted, or a worker died and hid the answers of the others.
            self._client.run(end_recording, on_error="ignore")

    def _fetch(self) -> dict[str, str]:
        """Fetch the recordings, and return what is missing and why, by worker."""
        transfer = Transfer(self._client, self.directory)
        # Known one by one, since fetching goes on if this call is interrupted.
        self.paths = transfer.paths
        found = {entry.name for entry in self._client.sync(transfer.fetch, self._run)}
        problems = {}
        for _, event in self._client.get_events(TOPIC):
            if event["run"] != self._run:
                continue
            if event["problem"]:
                problems[event["name"]] = event["problem"]
            elif Path(event["path"]).name not in found:
                problems[event["name"]] = f"no worker can read {event['path']} on {event['host']}"
        return problems | transfer.problems_by_worker


def fetch_remaining(directory: str | os.PathLike[str], client: "Client | None") -> list[Path]:
    """Implement `gpuviz.dask.fetch`."""
    target = Path(directory).absolute()
    connected = _synchronous(client)
    target.mkdir(parents=True, exist_ok=True)
    transfer = Transfer(connected, target)
    connected.sync(transfer.fetch, None)
    _warn_of(transfer.problems_by_worker, stacklevel=4)
    return transfer.paths


def _synchronous(client: "Client | None") -> "Client":
    client = client or get_client()
    if client.asynchronous:
        raise ValueError("client must be synchronous, got one with asynchronous=True")
    return client


def workers_of(client: "Client") -> dict[str, dict[str, Any]]:
    """Return what the scheduler knows about each worker, by address.

    Asks the scheduler itself: a client replaces the answer of its ``scheduler_info`` every two
    seconds by one without workers, which may happen before that returns.
    """
    scheduler: Any = client.scheduler
    workers: dict[str, dict[str, Any]] = client.sync(scheduler.identity, n_workers=-1)["workers"]
    return workers


def _names_of(client: "Client", workers: int | Iterable[str | int] | None) -> frozenset[str] | None:
    """Return the names of the chosen workers, which they keep when they restart."""
    if workers is None:
        return None
    known = workers_of(client)
    names = {address: str(worker["name"]) for address, worker in known.items()}
    if isinstance(workers, int):
        if not 1 <= workers <= len(names):
            raise ValueError(f"workers must be 1 to {len(names)}, got {workers}")
        return frozenset(list(names.values())[:workers])
    chosen = [str(worker) for worker in workers]
    unknown = [worker for worker in chosen if worker not in {*names, *names.values()}]
    if unknown:
        raise ValueError(
            f"workers must be names or addresses of workers, got {', '.join(unknown)}; there are "
            f"{', '.join(sorted(names.values()))}"
        )
    return frozenset(names.get(worker, worker) for worker in chosen)


def _check_has_no_recordings(directory: Path) -> None:
    there = next(directory.glob("*.gpuviz*"), None)
    if there is not None:
        raise RecordingExistsError(
            f"{directory} contains recordings ({there.name}); choose another directory"
        )


def _warn_of(problems: Mapping[str, str], stacklevel: int = 3) -> None:
    if problems:
        count = format_counted(len(problems), "worker")
        warnings.warn(
            f"The recordings of {count} are missing or incomplete: {_listed(problems)}",
            RuntimeWarning,
            stacklevel=stacklevel,
        )


def _listed(problems: Mapping[str, str], most: int = 3) -> str:
    shown = [f"{worker}: {problem}" for worker, problem in list(problems.items())[:most]]
    more = [f"and {len(problems) - most} more"] if len(problems) > most else []
    return printable("; ".join([*shown, *more]))
