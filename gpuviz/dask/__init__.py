"""Recordings of the workers of a Dask cluster.

In the client::

    with gpuviz.dask.record("run"):
        client.compute(...)

or from the start of each worker::

    dask worker SCHEDULER --preload gpuviz.dask --directory run

Recordings travel through Dask's own connections. Dask is imported when a function is called.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuviz.installation import import_extra

if TYPE_CHECKING:
    from distributed import Client, Worker

    from gpuviz.dask.cluster_recording import ClusterRecording

__all__ = ["dask_setup", "fetch", "record"]


def record(
    directory: str | os.PathLike[str],
    workers: int | Iterable[str | int] | None = None,
    *,
    client: "Client | None" = None,
    **options: Any,
) -> "ClusterRecording":
    """Return a context manager that records the workers of a Dask cluster into a directory.

    Each worker process records to a ``.gpuviz`` file on its own disk, with a range for each task,
    named by its key. At the end the files are sent through the scheduler, in pieces whose total is
    checked, to ``<directory>/<worker name>.gpuviz``. Workers that join or restart in the meantime
    are recorded from then on, to a file of their own (``<worker name>-2.gpuviz``). Of a worker that
    was killed, ``<worker name>.gpuviz.part`` has what it recorded until its last write, if another
    worker of the same host can read it.

    Args:
        directory: Where to put the recordings, in the client's file system; created if necessary.
        workers: The names or addresses of the workers to record, or how many; None for all.
        client: The client of the cluster; None for the current one. It must be synchronous.
        options: Those of `gpuviz.record`. ``device`` is a function without parameters that returns
            the worker's `SimulatedGPU`, called in each worker.

    Raises:
        MissingPackageError: Dask's package ``distributed`` is not installed.
        TypeError: An option is unknown.
        ValueError: There is no client, or it is asynchronous, or there is no such worker.

    The ``with`` block raises on entry:

        RecordingExistsError: The directory contains recordings.
        RecorderError: Another client records this cluster, or no worker can be recorded.
    """
    import_extra("distributed", "dask")
    from gpuviz.dask.cluster_recording import ClusterRecording

    return ClusterRecording(directory, workers, client, options)


def fetch(directory: str | os.PathLike[str], *, client: "Client | None" = None) -> list[Path]:
    """Fetch recordings that remained on the workers' hosts, and return their paths.

    They remain when the client, the scheduler or the connection failed before `record` ended. What
    has been fetched is removed from the workers' hosts. A recording in progress is left alone, but
    one that another cluster in the same scratch folder has just ended is fetched too.

    Args:
        directory: Where to put the recordings; created if necessary. Nothing is overwritten.
        client: The client of the cluster; None for the current one.

    Raises:
        MissingPackageError: Dask's package ``distributed`` is not installed.
        ValueError: There is no client, or it is asynchronous.
    """
    import_extra("distributed", "dask")
    from gpuviz.dask.cluster_recording import fetch_remaining

    return fetch_remaining(directory, client)


@click.command()
@click.option("--directory", required=True, help="Where to record, on the worker's host.")
@click.option("--observe", is_flag=True, help="Keep the program's own allocator.")
async def dask_setup(worker: "Worker", directory: str, *, observe: bool) -> None:
    """Record a worker from its start to its end, to a file in a directory."""
    from gpuviz.dask.preload import record_worker

    await record_worker(worker, directory, allocator="observe" if observe else "caching")
