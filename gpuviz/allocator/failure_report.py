"""Reports of failed requests for memory, from allocators to the recorder."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from gpuviz.data.manifest import NOT_LIMITED, UNKNOWN


@dataclass(frozen=True, slots=True)
class FailureReport:
    """A request that has just failed; its event has been recorded.

    Attributes:
        device: Ordinal.
        thread: The operating system's id of the requesting thread.
        requested: Bytes that the program requested; None if the reporter does not know.
        details: What the allocator knows beyond its events, as in `Manifest.failures`.
    """

    device: int
    thread: int
    requested: int | None
    details: Mapping[str, int]


Explain = Callable[[FailureReport], str]


class _Process:
    """The listener of this process."""

    explain: Explain | None = None


def set_failure_listener(explain: Explain | None) -> None:
    """Append the result of ``explain`` to the message of each later failure; None ends this."""
    _Process.explain = explain


def explain_failure(error: BaseException, failure: FailureReport) -> None:
    """Add the explanation of a failure to the text of its exception."""
    added = explanation_of(failure)
    if not added:
        return
    if len(error.args) == 1 and isinstance(error.args[0], str):
        error.args = (f"{error.args[0]}\n{added}",)
    else:
        error.add_note(added)


def explanation_of(failure: FailureReport) -> str:
    """Return the explanation of a failure; empty while nothing is recorded."""
    if _Process.explain is None:
        return ""
    try:
        return _Process.explain(failure)
    except Exception:  # noqa: BLE001 - at the end of the stack even an explanation may fail
        return ""


def explain_error(error: Any) -> None:
    """Add the explanation of a `gpuviz._core.OutOfMemoryError` to its text."""
    if not getattr(error, "device_total", 0):
        # Python's own MemoryError, or more than any device has: nothing was tried or recorded.
        return
    explain_failure(
        error,
        FailureReport(
            device=error.device,
            thread=threading.get_native_id(),
            requested=error.requested_size,
            details={
                "segment_size": error.alloc_size,
                "limit": NOT_LIMITED if error.limit is None else error.limit,
                "device_free": error.device_free,
                "device_total": error.device_total,
                "other_processes": _of_others(error.processes, error.this_process),
            },
        ),
    )


def _of_others(processes: list[tuple[int, int]], this_process: int) -> int:
    """Return the memory of other processes; unknown if ids belong to another namespace."""
    if all(process != this_process for process, _ in processes):
        return UNKNOWN
    return sum(used for process, used in processes if process != this_process)


class _Explaining:
    """Adds the explanation to what the caching allocator raises in a ``with`` block."""

    def __enter__(self) -> None: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, MemoryError):
            explain_error(error)


explaining = _Explaining()
