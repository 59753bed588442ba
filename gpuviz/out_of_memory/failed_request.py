"""Requests for memory that fail, told to whoever records."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from gpuviz.recording.manifest import NOT_LIMITED, UNKNOWN


@dataclass(frozen=True, slots=True)
class Failure:
    """A request that has just failed, after its event was recorded.

    Attributes:
        device: Ordinal.
        thread: That asked, by the operating system's id.
        requested: Bytes that the program asked for.
        told: What the allocator knows beyond its events, as in `Manifest.failures`.
    """

    device: int
    thread: int
    requested: int
    told: Mapping[str, int]


Explain = Callable[[Failure], str]


class _Process:
    """Who explains the failures of this process."""

    explain: Explain | None = None


def set_failure_listener(explain: Explain | None) -> None:
    """Let ``explain`` say more about each failure from now on; None ends it."""
    _Process.explain = explain


def explain_failure(error: BaseException, failure: Failure) -> None:
    """Add what is known of a failure to the text of its exception."""
    added = _explained(failure)
    if not added:
        return
    if len(error.args) == 1 and isinstance(error.args[0], str):
        error.args = (f"{error.args[0]}\n{added}",)
    else:
        error.add_note(added)


def _explained(failure: Failure) -> str:
    if _Process.explain is None:
        return ""
    try:
        return _Process.explain(failure)
    except Exception:  # noqa: BLE001 - at the end of the stack even an explanation may fail
        return ""


def explain_error(error: Any) -> None:
    """Add what is known of a `gpuviz._core.OutOfMemoryError` to its text."""
    if not getattr(error, "device_total", 0):
        # Python's own MemoryError; or more than any device has: nothing was tried, nor recorded.
        return
    explain_failure(
        error,
        Failure(
            device=error.device,
            thread=threading.get_native_id(),
            requested=error.requested_size,
            told={
                "segment_size": error.alloc_size,
                "limit": NOT_LIMITED if error.limit is None else error.limit,
                "device_free": error.device_free,
                "device_total": error.device_total,
                "other_processes": _of_others(error.processes, error.this_process),
            },
        ),
    )


def _of_others(processes: list[tuple[int, int]], this_process: int) -> int:
    """Return what other processes use; unknown where ids are those of another namespace."""
    if all(process != this_process for process, _ in processes):
        return UNKNOWN
    return sum(used for process, used in processes if process != this_process)


class _Explaining:
    """Explains what the caching allocator raises in a ``with`` block; it goes on."""

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
