"""Ranges around the tasks of a Dask worker, named by their keys."""

from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

from gpuviz.recorder import ranges

if TYPE_CHECKING:
    from distributed import Worker


class TaskRanges(MutableMapping[int, Any]):
    """A worker's ``active_threads`` that records a range for each task.

    A worker sets the key of each task in this mapping from thread ids to keys, on the thread that
    runs the task, just before it and removes it just after. Changes are passed on to the mapping
    that was there, which can therefore be put back while tasks are running.

    Coroutine tasks and tasks in other processes are not in the mapping, and get no range.
    """

    def __init__(self, replaced: MutableMapping[int, Any]) -> None:
        self._replaced = replaced
        self._open: dict[int, ranges.Opened | None] = {}

    @classmethod
    def install(cls, worker: "Worker") -> "TaskRanges":
        """Record the tasks of a worker from now on."""
        installed = cls(worker.active_threads)
        worker.active_threads = installed  # type: ignore[assignment] # it is used as a mapping
        return installed

    def uninstall(self, worker: "Worker") -> None:
        """Put back the mapping that was there, unless it was replaced again in the meantime."""
        if worker.active_threads is self:
            worker.active_threads = self._replaced  # type: ignore[assignment]

    def copy(self) -> dict[int, Any]:
        """Return the current keys by thread id."""
        return dict(self._replaced)

    def __setitem__(self, thread: int, key: Any) -> None:
        self._replaced[thread] = key
        name = str(key).encode(errors="backslashreplace")
        self._open[thread] = ranges.begin(name, ranges.RANGE)

    def __delitem__(self, thread: int) -> None:
        del self._replaced[thread]
        ranges.end(self._open.pop(thread, None))

    def __getitem__(self, thread: int) -> Any:
        return self._replaced[thread]

    def __iter__(self) -> Iterator[int]:
        return iter(self._replaced)

    def __len__(self) -> int:
        return len(self._replaced)
