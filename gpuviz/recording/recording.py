"""`Recording`, its tables and analyses; `load`."""

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gpuviz.recording.derived import fitting
from gpuviz.recording.manifest import Manifest
from gpuviz.recording.validation import check_references, conform

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from gpuviz._core import MemoryColumns, MemoryState
    from gpuviz.analysis.callstacks import CallStacks
    from gpuviz.analysis.fragmentation import Fragmentation
    from gpuviz.analysis.overlap import Overlap
    from gpuviz.analysis.peak import Peak
    from gpuviz.out_of_memory.failures import OutOfMemory

Moment = int | Literal["peak", "end"] | None
"""A time in ns, ``peak`` (most bytes allocated), or ``end`` (None is the same)."""


def load(path: str | os.PathLike[str]) -> "Recording":
    """Return the recording in a file or a folder, whose content tells which format it has.

    Read are ``.gpuviz`` files, ``.gpuviz.part`` folders, HTML reports, PyTorch's memory snapshots
    (pickles, of which nothing is executed), RMM's CSV logs, and exported Arrow or Parquet folders.

    Raises:
        FileNotFoundError: There is no such file.
        FormatError: The file is damaged, foreign, or of a newer version; the text names the part.
    """
    from gpuviz.formats.detection import read

    return read(Path(path))


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Recording:
    """What was recorded: immutable Arrow tables, and questions about them.

    Times are nanoseconds since the recording's start, sizes are bytes.

    Args:
        tables: The tables of ``gpuviz.recording.tables``; absent ones are taken as empty.
        manifest: What is true of the recording as a whole.
        derived: What `gpuviz.recording.derived.marked` returned for these tables; anything else is
            left out, and made anew when it is asked for.

    Raises:
        NonconformingTableError: A table has other columns, types or ids than expected.
    """

    tables: "Mapping[str, pa.Table]"
    manifest: Manifest

    def __init__(
        self,
        tables: "Mapping[str, pa.Table]",
        manifest: Manifest,
        derived: "Mapping[str, pa.Table] | None" = None,
    ) -> None:
        tables = conform(tables)
        check_references(tables)
        object.__setattr__(self, "tables", tables)
        object.__setattr__(self, "manifest", manifest)
        known = None if derived is None else fitting(derived, tables)
        if known is not None:
            self.__dict__["derived"] = known

    def __repr__(self) -> str:
        events = self.tables["memory_events"].num_rows - self.manifest.initial_events
        seconds = self.duration_ns / 1e9
        state = "" if self.is_complete else ", incomplete"
        simulated = ", simulated" if self.manifest.simulated else ""
        return f"<Recording of {seconds:.3f} s, {events} memory events{simulated}{state}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.tables, self.manifest)

    @cached_property
    def derived(self) -> "Mapping[str, pa.Table]":
        """What the rows mean: the tables of `gpuviz.recording.derived`, each made at first use."""
        from gpuviz.analysis.classification import DerivedTables

        return DerivedTables(self.tables)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the recording to ``path`` as a ``.gpuviz`` file; return the path.

        The file appears whole or not at all.

        Raises:
            RecordingExistsError: Something is at ``path`` and ``overwrite`` is False.
            OSError: The file cannot be written.
        """
        from gpuviz.formats import gpuviz

        return gpuviz.write(self, Path(path), overwrite=overwrite)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        overwrite: bool = False,
        redact: bool = False,
        window: tuple[int, int] | None = None,
        max_size: int | None = None,
    ) -> Path:
        """Write the recording as one HTML file that opens offline, and return its path.

        The file embeds what it shows of the recording: `load` gives it back.

        Args:
            path: Where the file goes.
            overwrite: Whether to replace what is at ``path``.
            redact: Whether to remove names, paths, source lines and the command line, also from the
                embedded recording; numbers stay, and the page says so.
            window: Begin and end of the time to show, in ns; see `window`.
            max_size: The most bytes that the file may have. Links from launches to blocks go first,
                then CUDA calls with their stacks, then time far from the peak; the page says so.

        Raises:
            RecordingExistsError: There is a file at ``path`` and ``overwrite`` is false.
            ValueError: The window is not in the recording, or ``max_size`` is too small for it.
        """
        from gpuviz.report.page import write_report

        return write_report(
            self, path, overwrite=overwrite, redact=redact, window=window, max_size=max_size
        )

    def export(
        self,
        path: str | os.PathLike[str],
        format: str | None = None,  # noqa: A002 - the word of Matplotlib's and Pandas' users
        *,
        overwrite: bool = False,
    ) -> Path:
        """Write the recording in the format of another tool; return the path.

        Args:
            path: A file; for ``arrow`` and ``parquet`` a folder.
            format: ``perfetto``, ``chrome_trace``, ``torch_snapshot``, ``arrow`` or ``parquet``;
                if None, the one that has the suffix of ``path``.
            overwrite: Whether to replace what is at ``path``.

        Raises:
            ValueError: There is no such format, or none with that suffix; the text lists them.
            RecordingExistsError: Something is at ``path`` and ``overwrite`` is False.
            OSError: The file cannot be written.
        """
        from gpuviz.formats.exports import writer

        path = Path(path)
        return writer(path, format)(self, path, overwrite=overwrite)

    def table(self, name: str) -> "pa.Table":
        """Return a table by name, a derived one or ``memory_levels`` too.

        Raises:
            KeyError: There is no such table; the text lists those there are.
        """
        if name == "memory_levels":
            return self.memory_levels
        if name not in self.tables and name in self.derived:
            return self.derived[name]
        if name not in self.tables:
            names = ", ".join(sorted([*self.tables, *self.derived, "memory_levels"]))
            raise KeyError(f"no table {name!r} in the recording; there are {names}")
        return self.tables[name]

    def memory_stats(self, device: int | None = None) -> dict[str, int]:
        """Return the statistics at the end, with the keys of ``torch.cuda.memory_stats``, sorted.

        Args:
            device: Ordinal; the recording's first device if None.
        """
        from gpuviz.analysis.statistics import statistics

        return statistics(self, device)

    def memory_snapshot(self, at: Moment = None, device: int | None = None) -> list[dict[str, Any]]:
        """Return segments and their blocks in the shape of ``torch.cuda.memory_snapshot()``.

        Args:
            at: The moment; the end if None. Events of exactly that time have happened.
            device: Ordinal; all devices if None.
        """
        from gpuviz.analysis.snapshot import snapshot

        return snapshot(self, at, device)

    def sites(
        self,
        by: Literal["stack", "line"] = "stack",
        *,
        at: Moment = "peak",
        device: int | None = None,
    ) -> "pa.Table":
        """Return bytes and counts by the place that allocated, most live bytes first.

        Args:
            by: One row for each call stack, or for each line of the user's.
            at: The moment that ``live_bytes`` and ``live_count`` are of.
            device: Ordinal; all devices if None.
        """
        from gpuviz.analysis.sites import sites

        return sites(self, by, at, device)

    def fragmentation(self, at: Moment = None, device: int | None = None) -> "Fragmentation":
        """Return where reserved memory went that is not in use, at a moment.

        Args:
            at: The moment; the end if None.
            device: Ordinal; the recording's first device if None.
        """
        from gpuviz.analysis.fragmentation import fragmentation

        return fragmentation(self, at, device)

    def out_of_memory(self) -> "tuple[OutOfMemory, ...]":
        """Return the requests for memory that failed, what each met, and why."""
        from gpuviz.out_of_memory.failures import out_of_memory

        return out_of_memory(self)

    def peak(self, device: int | None = None) -> "Peak":
        """Return when most bytes were allocated, and how many.

        Args:
            device: Ordinal; the sum of all devices if None.
        """
        from gpuviz.analysis.peak import peak

        return peak(self, device)

    def overlap(
        self,
        device: int | None = None,
        start: int | None = None,
        end: int | None = None,
    ) -> "Overlap":
        """Return busy time, overlap and the causes of idle time, by device and by stream.

        Args:
            device: Ordinal; all devices that have activities if None.
            start: Begin of the window in ns; each device's first activity if None.
            end: End of the window in ns; the end of each device's last activity if None.
        """
        from gpuviz.analysis.overlap import overlap

        return overlap(self, device, start, end)

    def window(self, start: int, end: int) -> "Recording":
        """Return what happened after ``start`` and until ``end``, in ns, on the same time axis.

        What lived at ``start`` counts as what existed before, as at the start of a recording.
        """
        from gpuviz.analysis.window import window

        return window(self, start, end)

    def kernels(self, by: Literal["name", "line", "stack"] = "name") -> "pa.Table":
        """Return counts and times of kernels, and what launched them, most time first.

        Args:
            by: One row for each name, line of the user's, or call stack.
        """
        from gpuviz.analysis.kernels import kernels

        return kernels(self, by)

    def copies(self, by: Literal["kind", "line", "stack"] = "kind") -> "pa.Table":
        """Return counts, bytes, times and bandwidth of copies, most time first.

        Args:
            by: One row for each kind and memory of the host, or of these for each line or stack.
        """
        from gpuviz.analysis.copies import copies

        return copies(self, by)

    def synchronizations(self, by: Literal["kind", "line", "stack"] = "kind") -> "pa.Table":
        """Return how often and how long the host was blocked, and by what, most time first.

        Args:
            by: One row for each kind and CUDA call, or of these for each line or stack.
        """
        from gpuviz.analysis.synchronizations import synchronizations

        return synchronizations(self, by)

    @property
    def memory_levels(self) -> "pa.Table":
        """The totals of each device, one row whenever one of them changed."""
        return self._levels_and_end[0]

    @property
    def final_state(self) -> "MemoryState":
        """The memory of every device at the end; nothing may be applied to it."""
        return self._levels_and_end[1]

    @cached_property
    def _levels_and_end(self) -> "tuple[pa.Table, MemoryState]":
        from gpuviz.analysis.levels import levels_and_end

        return levels_and_end(self)

    @cached_property
    def memory_columns(self) -> "MemoryColumns":
        """The memory events as the native core reads them."""
        from gpuviz.analysis.state import memory_columns

        return memory_columns(self.tables["memory_events"])

    @cached_property
    def call_stacks(self) -> "CallStacks":
        """The call stacks by id."""
        from gpuviz.analysis.callstacks import CallStacks

        return CallStacks(self)

    @cached_property
    def duration_ns(self) -> int:
        """Nanoseconds from the start to the end of the recording, and of all that is in it."""
        import pyarrow.compute as pc

        columns = (("memory_events", "time"), ("activities", "end"), ("api_calls", "end"))
        ends = (pc.max(self.tables[table][column]).as_py() for table, column in columns)
        return max(self.manifest.duration_ns, *(end or 0 for end in ends))

    @cached_property
    def devices(self) -> tuple[int, ...]:
        """The ordinals of the devices that were seen, ascending."""
        columns = (("devices", "id"), ("memory_events", "device"), ("activities", "device"))
        seen = (self.tables[table][column].unique().to_pylist() for table, column in columns)
        return tuple(sorted(set[int]().union(*seen)))

    @property
    def dropped(self) -> int:
        """Events and activities that are missing: lost, or discarded as the oldest."""
        manifest = self.manifest
        activities = manifest.dropped_activities + manifest.dropped_oldest_activities
        return manifest.dropped + manifest.dropped_oldest + activities

    @property
    def is_complete(self) -> bool:
        """Whether the recording was stopped in order and no event is missing."""
        return self.manifest.complete and self.dropped == 0

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that a reader of any number of this recording should know."""
        from gpuviz.analysis.notes import notes

        return notes(self.manifest)

    def device_or_first(self, device: int | None) -> int:
        """Return ``device``, or the first device if None.

        Raises:
            ValueError: The recording has no such device.
        """
        if device is None:
            return self.devices[0] if self.devices else 0
        if device not in self.devices:
            there_are = ", ".join(map(str, self.devices)) or "none"
            raise ValueError(f"device {device} is not in the recording; devices: {there_are}")
        return device
