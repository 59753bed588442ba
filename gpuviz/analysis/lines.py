"""One table of a program's lines: their memory, GPU time, copies, waits and idle time."""

from typing import Any

import numpy as np
import pyarrow as pa

from gpuviz.analysis.derived_tables import derived
from gpuviz.analysis.grouping import Groups
from gpuviz.analysis.host_work import host_work_rows
from gpuviz.analysis.launches import calls_of, durations, stacks_of
from gpuviz.analysis.sites import sites
from gpuviz.data.call_stacks import NO_STACK
from gpuviz.data.columns import codes, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import DICTIONARIES

_KINDS = DICTIONARIES["activities", "kind"]
_WORK = ("kernel", "graph")
_COPIES = ("memcpy",)
_WHOLE_DEVICE = 0


def lines(recording: RecordingData, device: int | None = None) -> pa.Table:
    """Return one row for each line of the user's program, most bytes at the peak first.

    A line is the user's innermost line in a call stack. Columns: ``site``
    (``function (file:line)``), ``source`` (its text), ``stack`` (one of its call stacks);
    ``live_bytes``, ``total_bytes`` and ``total_count`` of its allocations, as in
    `Recording.sites`; ``kernel_ns`` and ``kernel_count`` of the kernels and graphs that it
    launched, on the GPU, concurrent ones counted separately; ``copy_ns`` and ``copy_bytes`` of its
    copies, without memsets; ``wait_ns``, in which it blocked the host; ``idle_ns``, in which the
    whole device was idle while the line ran, as far as that was sampled, else until work that it
    launched began. In a window of a recording, times are those
    in it. A line counts all of these only where call stacks of launches were recorded; what has
    none is in the row ``(no call stack)``.

    Args:
        recording: The recording.
        device: Ordinal; all devices if None. Waits of unknown devices count for all.

    Raises:
        ValueError: The recording has no such device.
    """
    found = _Lines(recording, device)
    table = pa.table(found.columns())
    order = ("live_bytes", "kernel_ns", "copy_ns", "wait_ns", "total_bytes", "idle_ns")
    keys = [(name, "descending") for name in order]
    return table.sort_by([*keys, ("site", "ascending")])


class _Lines:
    """The sums of lines, by a number for each."""

    def __init__(self, recording: RecordingData, device: int | None) -> None:
        self._recording = recording
        self._numbers: dict[str, int] = {}
        self._rows: list[dict[str, Any]] = []
        self._add_memory(device)
        self._add_activities(device)
        self._add_waits(device)

    def columns(self) -> dict[str, pa.Array]:
        kinds = {name: pa.int64() for name in _SUMS}
        kinds = {"site": pa.utf8(), "source": pa.utf8(), "stack": pa.uint32()} | kinds
        return {
            name: pa.array([row[name] for row in self._rows], kind) for name, kind in kinds.items()
        }

    def _row(self, stack: int) -> dict[str, Any]:
        site, source = self._recording.call_stacks.call_site(stack)
        number = self._numbers.setdefault(site, len(self._rows))
        if number == len(self._rows):
            known = 0 if site == NO_STACK else stack
            self._rows.append({"site": site, "source": source, "stack": known} | dict(_NOTHING))
        return self._rows[number]

    def _add_memory(self, device: int | None) -> None:
        for row in sites(self._recording, "line", "peak", device).to_pylist():
            line = self._row(row["stack"])
            for name in ("live_bytes", "total_bytes", "total_count"):
                line[name] += row[name]

    def _add_activities(self, device: int | None) -> None:
        tables = self._recording.tables
        activities = tables["activities"]
        kinds = codes(activities["kind"], _KINDS)
        is_here = np.ones(len(kinds), bool) if device is None else self._on(activities, device)
        stacks = stacks_of(tables, calls_of(tables, plain(activities["correlation"])))
        lengths = durations(activities, self._recording.bounds)
        is_work, is_copy = (
            is_here & np.isin(kinds, [_KINDS.index(kind) for kind in chosen])
            for chosen in (_WORK, _COPIES)
        )
        self._add(stacks[is_work], kernel_ns=lengths[is_work], kernel_count=None)
        sizes = plain(activities["bytes"]).astype(np.int64)
        self._add(stacks[is_copy], copy_ns=lengths[is_copy], copy_bytes=sizes[is_copy])
        gaps = derived(self._recording)["idle_gaps"]
        chosen = (plain(gaps["stream"]) == _WHOLE_DEVICE) & (plain(gaps["activity"]) >= 0)
        if device is not None:
            chosen &= self._on(gaps, device)
        ended = plain(gaps["activity"])[chosen]
        self._add(stacks[ended], idle_ns=durations(gaps)[chosen])
        self._add_host_work(stacks, device)

    def _add_host_work(self, stacks: np.ndarray, device: int | None) -> None:
        """Move idle time from the line that launched at its end to the one that kept it waiting."""
        work = host_work_rows(self._recording)
        chosen = plain(work["stack"]) != 0
        if device is not None:
            chosen &= self._on(work, device)
        lengths = durations(work)[chosen]
        self._add(stacks[plain(work["activity"])[chosen]], idle_ns=-lengths)
        self._add(plain(work["stack"])[chosen], idle_ns=lengths)

    def _add_waits(self, device: int | None) -> None:
        waits = derived(self._recording)["host_waits"]
        chosen = np.ones(waits.num_rows, bool)
        if device is not None:
            chosen = self._on(waits, device) | (plain(waits["device"]) < 0)
        self._add(plain(waits["stack"])[chosen], wait_ns=durations(waits)[chosen])

    def _on(self, table: pa.Table, device: int) -> np.ndarray:
        on_device: np.ndarray = plain(table["device"]) == device
        return on_device

    def _add(self, stacks: np.ndarray, **values: np.ndarray | None) -> None:
        """Add values of rows with these call stacks; None counts the rows."""
        groups = Groups([stacks])
        distinct = stacks[groups.first_rows].tolist()
        for name, each in values.items():
            counted = np.ones(len(stacks), np.int64) if each is None else each
            sums = groups.totals(counted)["sum"]
            for stack, added in zip(distinct, sums.tolist(), strict=True):
                self._row(stack)[name] += added


_SUMS = (
    "live_bytes",
    "total_bytes",
    "total_count",
    "kernel_ns",
    "kernel_count",
    "copy_ns",
    "copy_bytes",
    "wait_ns",
    "idle_ns",
)
_NOTHING = dict.fromkeys(_SUMS, 0)
