"""`Differences`: what changed from one recording to another."""

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gpuviz.advice.finding import Finding
from gpuviz.analysis.statistics import statistics
from gpuviz.comparison.alignment import CodeLine, Pair, align, line_of
from gpuviz.comparison.environment import changed_settings, limits_of_comparison
from gpuviz.comparison.kernels import changed_kernels, kernel_times
from gpuviz.comparison.memory import UNKNOWN_LINE, changes_of_peak, held_at_peak, stacks_in_use
from gpuviz.comparison.regressions import regressions
from gpuviz.comparison.totals import changed, idle_time, totals
from gpuviz.data.columns import plain
from gpuviz.data.marks import TABLE_MARK
from gpuviz.data.recording_data import RecordingData

if TYPE_CHECKING:
    from collections import Counter


class Differences:
    """What changed from one recording to another; every table is empty if nothing did.

    Lines of the programs are compared by function and text, so that edits above a line do not
    matter. Sizes are in bytes, times in ns. A ``change`` is the value after less that before.

    Attributes:
        before: The first recording.
        after: The second recording.
    """

    def __init__(self, before: RecordingData, after: RecordingData) -> None:
        self.before, self.after = before, after

    def __repr__(self) -> str:
        if self.is_empty:
            return f"<{type(self).__name__}: no difference>"
        lines, kernels = self.waterfall.num_rows, self.kernels.num_rows
        return f"<{type(self).__name__}: {lines} lines at the peak, {kernels} kernels>"

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs."""
        tables = (self.waterfall, self.totals, self.kernels, self.settings, self.copies)
        others = (self.waits, self.idle, self.modules)
        return not any(each.num_rows for each in (*tables, *others))

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What cannot be compared, or only with care, in sentences."""
        return tuple(limits_of_comparison(self.before, self.after))

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What costs more than before and because of what: peaks, kernels, copies, calls.

        Any increase of a peak counts, as memory is exact. Kernels and copies count from 5 % of
        their time before on, kernels only if in `kernels`; less than that is noise. More memsets
        and more synchronizations count always.
        """
        return tuple(regressions(self))

    @cached_property
    def quantities(self) -> pa.Table:
        """The totals of both recordings, also those that are equal.

        Columns: ``name`` (as in `gpuviz.comparison.totals.QUANTITIES`), ``device`` (null for all
        devices together), ``unit`` (``B``, ``ns`` or empty), ``before``, ``after``, ``change``.
        ``peak`` and ``reserved`` have a row for each device in both recordings.
        """
        rows: list[dict[str, Any]] = []
        for device in self.devices:
            sides = [
                {
                    "peak": held[device][0],
                    "reserved": statistics(each, device)["reserved_bytes.all.peak"],
                }
                for each, held in zip((self.before, self.after), self._held, strict=True)
            ]
            rows += changed(sides[0], sides[1], device)
        rows += changed(totals(self.before), totals(self.after))
        kinds = {"name": "utf8", "device": "int16", "unit": "utf8"}
        return _table(rows, kinds | _CHANGE)

    @cached_property
    def totals(self) -> pa.Table:
        """The rows of `quantities` that differ."""
        found: pa.Table = self.quantities.filter(pa.array(plain(self.quantities["change"]) != 0))
        return found

    @cached_property
    def waterfall(self) -> pa.Table:
        """The lines that hold more or less at the peak of a device, largest change first.

        Their changes add up to the change of the device's peak of allocated bytes. Columns:
        ``device``, ``status`` (``new``, ``gone``, ``edited``, ``grown`` or ``shrunk``), ``site``
        and ``source`` of the line, ``before_site`` and ``before_source`` (those before; a side
        without the line has empty ones), ``before_bytes``, ``after_bytes``, ``change``.
        """
        rows: list[dict[str, Any]] = []
        for device in self.devices:
            before, after = (held[device][1] for held in self._held)
            found = changes_of_peak(self.lines, before, after)
            rows += ({"device": device, **row} for row in found)
        kinds = {"device": "int16", "status": "utf8"} | _LINE
        kinds |= {"before_bytes": "int64", "after_bytes": "int64", "change": "int64"}
        return _table(_by_size(rows, "change"), kinds)

    @cached_property
    def kernels(self) -> pa.Table:
        """The kernels that changed, largest change of total time first.

        A kernel is ``new``, ``gone``, has ``more launches`` or ``fewer launches``, or is ``slower``
        or ``faster``: its median differs by 5 % or more, and the medians' 99 % intervals
        (``before_low_ns`` to ``before_high_ns``, and likewise after) do not meet. Fewer than eight
        launches give no interval, and so no conclusion. Kernels that only differ by less than that
        have no row.
        """
        rows = list(changed_kernels(kernel_times(self.before), kernel_times(self.after)))
        names = ("count", "ns", "median_ns", "low_ns", "high_ns")
        kinds = {f"{side}_{name}": "int64" for side in ("before", "after") for name in names}
        return _table(
            _by_size(rows, "change_ns"),
            {"name": "utf8", "status": "utf8"} | kinds | {"change_ns": "int64"},
        )

    @cached_property
    def modules(self) -> pa.Table:
        """Modules of a neural network whose memory at the peak or launches differ.

        A module is known by its path, which stays the same when its lines are edited or moved. The
        largest change of memory is first, then by path. Columns: ``module``, and the columns of
        `Recording.modules` for both sides. Empty if neither recording has modules.
        """
        values = ("peak_bytes", "activation_bytes", "forward_ns", "backward_ns", "launches")
        found = self._joined("modules", ("module",), values, ("peak_bytes", "launches"))
        if not any(found["module"].to_pylist()):
            return found.slice(0, 0)
        change = plain(found["after_peak_bytes"]) - plain(found["before_peak_bytes"])
        return found.take(np.argsort(-np.abs(change), kind="stable"))

    @cached_property
    def copies(self) -> pa.Table:
        """Copies by kind and host memory whose number or bytes differ."""
        keys, values = ("copy_kind", "host_memory"), ("count", "bytes", "total_ns")
        return self._joined("copies", keys, values, ("count", "bytes"))

    @cached_property
    def waits(self) -> pa.Table:
        """Host waits by kind and CUDA call whose number differs."""
        return self._joined("synchronizations", ("kind", "name"), ("count", "total_ns"), ("count",))

    @cached_property
    def idle(self) -> pa.Table:
        """Idle time of whole devices by cause, where it differs: one measurement on each side."""
        before, after = idle_time(self.before), idle_time(self.after)
        rows = [
            {
                "cause": cause,
                "before": value,
                "after": after[cause],
                "change": after[cause] - value,
            }
            for cause, value in before.items()
            if value != after[cause]
        ]
        return _table(_by_size(rows, "change"), {"cause": "utf8"} | _CHANGE)

    @cached_property
    def settings(self) -> pa.Table:
        """Settings, versions, devices and the command line, where they differ."""
        rows = list(changed_settings(self.before, self.after))
        return _table(rows, {"name": "utf8", "before": "utf8", "after": "utf8"})

    @cached_property
    def devices(self) -> list[int]:
        """The devices that are in both recordings."""
        return sorted(set(self.before.devices) & set(self.after.devices))

    @cached_property
    def _held(self) -> "list[dict[int, tuple[int, Counter[CodeLine]]]]":
        return [
            {device: held_at_peak(each, device) for device in self.devices}
            for each in (self.before, self.after)
        ]

    @cached_property
    def lines(self) -> list[Pair]:
        """The lines of both programs, each once."""
        always = {CodeLine(), UNKNOWN_LINE}
        return align(
            *(
                always | {line_of(each, stack) for stack in stacks_in_use(each)}
                for each in (self.before, self.after)
            )
        )

    def _joined(
        self, name: str, keys: tuple[str, ...], values: tuple[str, ...], compared: tuple[str, ...]
    ) -> pa.Table:
        """Return the rows of a table of both recordings whose compared values differ."""
        sides = [
            {tuple(row[key] for key in keys): row for row in getattr(each, name)().to_pylist()}
            for each in (self.before, self.after)
        ]
        rows = []
        for key in sorted(sides[0].keys() | sides[1].keys()):
            found = [side.get(key, dict.fromkeys(values, 0)) for side in sides]
            if any(found[0][value] != found[1][value] for value in compared):
                pairs = zip(("before", "after"), found, strict=True)
                sums = {f"{s}_{value}": row[value] for s, row in pairs for value in values}
                rows.append(dict(zip(keys, key, strict=True)) | sums)
        kinds = {f"{side}_{value}": "int64" for side in ("before", "after") for value in values}
        return _table(rows, dict.fromkeys(keys, "utf8") | kinds)


_CHANGE = {"before": "int64", "after": "int64", "change": "int64"}
_LINE = dict.fromkeys(("site", "source", "before_site", "before_source"), "utf8")


def _by_size(rows: list[dict[str, Any]], column: str) -> list[dict[str, Any]]:
    """Return rows by the size of a change, equal ones by their texts."""
    return sorted(rows, key=lambda row: (-abs(row[column]), str(row)))


def _table(rows: Iterable[dict[str, Any]], kinds: dict[str, str]) -> pa.Table:
    schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in kinds.items()])
    return pa.Table.from_pylist(list(rows), schema=schema.with_metadata({TABLE_MARK: b""}))
