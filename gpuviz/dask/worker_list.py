"""The workers of a cluster that are recorded, and their memory, as a list in text and HTML."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gpuviz.present.markup import columns, html, inline_table
from gpuviz.quantities import format_bytes, format_counted
from gpuviz.terminal import printable

_MOST_ROWS = 64
_NOBODY = "gpuviz: no worker is being recorded."
_HEADINGS = ("worker", "host", "state", "allocated", "peak", "reserved")
_NUMBERS = "tttnnn"


@dataclass(frozen=True, slots=True)
class ListedWorker:
    """A worker and its memory in bytes, summed over its devices.

    Attributes:
        name: Its name, which it keeps when it restarts.
        host: The address of its host.
        state: ``recording``, ``recorded``, or what is missing and why.
        allocated: Bytes allocated.
        peak: The maximum of allocated bytes since its recording began; None if unknown.
        reserved: Bytes of the known segments.
    """

    name: str
    host: str
    state: str = "recording"
    allocated: int = 0
    peak: int | None = 0
    reserved: int = 0


class WorkerList:
    """The workers of one recording of a cluster, from the events that they log; thread-safe.

    Args:
        run: The recording of the cluster.
    """

    def __init__(self, run: str) -> None:
        self._run = run
        self._workers: dict[str, ListedWorker] = {}
        self._lock = threading.Lock()

    @property
    def rows(self) -> list[ListedWorker]:
        """The workers by name, numbers in numeric order."""
        with self._lock:
            found = list(self._workers.values())
        return sorted(found, key=lambda each: (len(each.name), each.name))

    def take(self, event: Mapping[str, Any]) -> None:
        """Take an event of a worker: its recording began, failed or ended, or its memory."""
        if event.get("run") != self._run:
            return
        with self._lock:
            known = self._workers.get(event["name"], ListedWorker(event["name"], event["host"]))
            if "ended" not in event:
                # Another process of the worker begins anew.
                state = event["problem"] or "recording"
                known = ListedWorker(event["name"], event["host"], state)
            else:
                levels = {name: event[name] for name in ("allocated", "peak", "reserved")}
                known = replace(known, **levels)
                if event["ended"] and known.state == "recording":
                    known = replace(known, state="recorded")
            self._workers[known.name] = known

    def end(self, problems: Mapping[str, str]) -> None:
        """Take what is missing and why, by worker, after the recording."""
        with self._lock:
            for name, known in self._workers.items():
                state = problems.get(name, "recorded")
                if known.state == "recording" or name in problems:
                    self._workers[name] = replace(known, state=state)

    def text(self) -> str:
        """Return a line for each worker below the headings."""
        rows = [_HEADINGS, *map(_cells, self._listed())]
        if len(rows) == 1:
            return _NOBODY
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return printable(
            "\n".join(
                "  ".join(
                    cell.ljust(width) if kind == "t" else cell.rjust(width)
                    for cell, width, kind in zip(row, widths, _NUMBERS, strict=True)
                ).rstrip()
                for row in rows
            )
        )

    def html(self) -> str:
        """Return a table with a row for each worker."""
        rows = self._listed()
        if not rows:
            return html("<div>{}</div>", _NOBODY)
        more = len(self.rows) - _MOST_ROWS
        rest = html("<div>and {}</div>", format_counted(more, "more worker")) if more > 0 else ""
        return inline_table(_HEADINGS, map(_cells, rows), columns(_NUMBERS)) + rest

    def _listed(self) -> list[ListedWorker]:
        """Return the rows to show, and below several of them their sum.

        Their peaks have none, because they may be of different times.
        """
        rows = self.rows
        if len(rows) < 2:  # noqa: PLR2004 - a sum of one is that one
            return rows
        levels = {
            name: sum(getattr(row, name) for row in rows) for name in ("allocated", "reserved")
        }
        return [*rows[:_MOST_ROWS], ListedWorker("all workers", "", "", peak=None, **levels)]


def _cells(row: ListedWorker) -> tuple[str, ...]:
    peak = "" if row.peak is None else format_bytes(row.peak)
    levels = (format_bytes(row.allocated), peak, format_bytes(row.reserved))
    return (row.name, row.host, row.state, *levels)
