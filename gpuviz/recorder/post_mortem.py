"""Pages about the first requests for memory that fail during a recording."""

import os
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import BinaryIO

from gpuviz.allocator.failure_report import FailureReport
from gpuviz.errors import RecordingExistsError
from gpuviz.formats.whole_file import write_whole
from gpuviz.out_of_memory.failures import failed_rows, last_failure
from gpuviz.out_of_memory.last_moments import last_moments
from gpuviz.out_of_memory.request import failure_key
from gpuviz.ownership.block_names import names_by_stack
from gpuviz.quantities import format_counted
from gpuviz.recording import Recording

MOST_PAGES = 3
# A page takes well under a second; after this long, something blocks it.
PATIENCE_S = 20.0
# Of a table of activities on disk; the verdict does not need it.
MOST_BYTES = 64 << 20

# Also on the pump's thread, while it drains for a page.
_is_writing = ContextVar("gpuviz_is_writing_page", default=False)


class PostMortem:
    """Writes a page about each of the first failures, and counts the rest. Any thread may use it.

    A separate thread writes the page while the failing one waits, so that the page is on disk
    before the program continues. The writer holds none of the program's locks; if it blocks
    nevertheless, the program continues without the page.

    Args:
        so_far: Returns the recording up to now, including every event pushed before the call.
        path: Path of the recording, next to which pages are written; None for a temporary folder.

    Attributes:
        pages: Paths of the pages, in the order of the failures.
        count: Number of failed requests.
        details: What allocators reported, as in `gpuviz.data.manifest.Manifest.failures`.
    """

    def __init__(self, so_far: Callable[[], Recording], path: Path | None) -> None:
        self._so_far = so_far
        self._path = None if path is None else path.absolute()
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self.pages: list[Path] = []
        self.count = 0
        self.details: dict[str, Mapping[str, int]] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence about all failures; empty without any."""
        if not self.count:
            return ()
        requests = format_counted(self.count, "request")
        first = f"; the first page: {self.pages[0]}" if self.pages else ""
        return (f"{requests} for memory failed{first}",)

    def explain(self, failure: FailureReport) -> str:
        """Return the text to add to a failure's exception; never raises an Exception."""
        if _is_writing.get():
            return ""
        with self._lock:
            self.count += 1
            number = self.count
        if number > MOST_PAGES:
            return self._counted(number)
        outcome: list[str] = []
        writer = threading.Thread(
            target=self._write,
            args=(failure, outcome),
            name="gpuviz-post-mortem",
            daemon=True,
        )
        try:
            writer.start()
        except RuntimeError as error:
            return _failed(error)
        writer.join(PATIENCE_S)
        if not outcome:
            return f"(No page was written within {PATIENCE_S:.0f} s.)"
        return outcome[0]

    def _counted(self, number: int) -> str:
        first = f"; the first page: {self.pages[0]}" if self.pages else ""
        return (
            f"(This is failed request number {number} of the recording. Pages are written only for "
            f"the first {MOST_PAGES}{first})"
        )

    def _write(self, failure: FailureReport, outcome: list[str]) -> None:
        _is_writing.set(True)
        try:
            with self._turn:
                outcome.append(self._written(failure))
        except Exception as error:  # noqa: BLE001 - the program must handle its own error
            outcome.append(_failed(error))

    def _written(self, failure: FailureReport) -> str:
        from gpuviz.report.out_of_memory import build_page

        recording = self._so_far()
        row = _row_of(failure, recording)
        if row is None:
            return self._without_event(recording)
        time_ns = recording.tables["memory_events"]["time"][row].as_py()
        self.details[failure_key(failure.device, time_ns)] = dict(failure.details)
        manifest = replace(recording.manifest, failures=dict(self.details))
        moment = Recording.of(last_moments(recording.with_manifest(manifest), row))
        failed = last_failure(moment)
        try:
            page = self._kept(build_page(moment, failed, _names(moment, failure.device)).encode())
        except Exception as error:  # noqa: BLE001 - the verdict is known nevertheless
            return f"{failed.summary} {_failed(error)}"
        self.pages.append(page)
        return f"{failed.summary} Details: {page}"

    def _without_event(self, recording: Recording) -> str:
        if recording.manifest.dropped:
            return "(No page: the event of this failure was dropped because a buffer was full.)"
        # The failure of an allocator that is not recorded.
        with self._lock:
            self.count -= 1
        return ""

    def _kept(self, page: bytes) -> Path:
        """Write a page durably under a free name, and return its path."""
        if self._path is None:
            return _write_to_temporary("oom", page)
        try:
            return _write_durably(self._path.parent, f"{self._path.stem}.oom", page)
        except OSError:
            return _write_to_temporary(f"{self._path.stem}.oom", page)


def _row_of(failure: FailureReport, recording: Recording) -> int | None:
    events = recording.tables["memory_events"]
    wanted = {"device": failure.device, "thread": failure.thread}
    if failure.requested is not None:
        wanted["requested_size"] = failure.requested
    for row in reversed(failed_rows(recording)):
        if all(events[name][row].as_py() == value for name, value in wanted.items()):
            return row
    return None


def _names(moment: Recording, device: int) -> dict[int, tuple[str, ...]]:
    """Return the program's names of its arrays; empty if they change during the search."""
    with suppress(Exception):
        return names_by_stack(moment, device)
    return {}


def _write_to_temporary(name: str, page: bytes) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="gpuviz-"))
    try:
        return _write_durably(folder, name, page)
    except OSError:
        folder.rmdir()
        raise


def _write_durably(folder: Path, name: str, page: bytes) -> Path:
    def write(file: BinaryIO) -> None:
        file.write(page)
        file.flush()
        os.fsync(file.fileno())

    for number in count(1):
        try:
            path = write_whole(folder / f"{name}-{number}.html", write, overwrite=False)
        except RecordingExistsError:
            continue
        break
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return path.absolute()


def _failed(error: Exception) -> str:
    return f"(No page could be written: {type(error).__name__}: {error})"
