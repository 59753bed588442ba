"""Recording of a worker by ``--preload gpuviz.dask``."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from distributed import Worker

from gpuviz.dask.plugin import RecordingPlugin

if TYPE_CHECKING:
    from distributed.core import Server


async def record_worker(worker: "Server", directory: str, **options: Any) -> None:
    """Record a worker until its end, to a file in ``directory``.

    Raises:
        TypeError: It is a scheduler.
    """
    if not isinstance(worker, Worker):
        raise TypeError("gpuviz.dask is a preload of workers: use it with `dask worker`")
    plugin = RecordingPlugin("", None, options, folder=Path(directory))
    await worker.plugin_add(plugin, name="gpuviz-preload")
