"""`Recording`, its tables and analyses; `load` and `merge`."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from gpuviz.advice.arrays.peak_chain import peak_chain
from gpuviz.advice.finding import Finding, Findings
from gpuviz.advice.findings import findings
from gpuviz.advice.replay.compensation import RecordingCost, compensated, recording_cost
from gpuviz.advice.waits.hidden_collectives import hidden_collectives
from gpuviz.analysis.collectives import known_collectives
from gpuviz.analysis.compilations import compilations
from gpuviz.analysis.copies import copies
from gpuviz.analysis.default_stream import default_stream_work
from gpuviz.analysis.delayed_frees import delayed_frees
from gpuviz.analysis.derived_tables import derived, derived_for_file
from gpuviz.analysis.device_links import DeviceLink, device_links
from gpuviz.analysis.fragmentation import Fragmentation, fragmentation
from gpuviz.analysis.graph_pools import graph_pools
from gpuviz.analysis.host_memory import HostMemory, host_memory
from gpuviz.analysis.host_work import works
from gpuviz.analysis.kernels import kernels
from gpuviz.analysis.leaks import leaks
from gpuviz.analysis.levels import memory_levels
from gpuviz.analysis.lines import lines
from gpuviz.analysis.modules import modules
from gpuviz.analysis.other_memory import other_memory
from gpuviz.analysis.overlap import Overlap, of_device, overlap, whole_overlap
from gpuviz.analysis.packing import Packing, packing
from gpuviz.analysis.peak import Peak, peak
from gpuviz.analysis.processes import Process, processes
from gpuviz.analysis.sites import sites
from gpuviz.analysis.snapshot import snapshot
from gpuviz.analysis.statistics import statistics
from gpuviz.analysis.steady_state import SteadyState, steady_state
from gpuviz.analysis.synchronizations import synchronizations
from gpuviz.analysis.what_if import what_if
from gpuviz.analysis.window import window
from gpuviz.analysis.writes_after_free import writes_after_free
from gpuviz.conclusions.ranking import known_findings
from gpuviz.conclusions.store import (
    conclusion_table,
    for_file,
    known_iterations,
    known_what_if,
)
from gpuviz.data.conclusions import schemas as conclusion_schemas
from gpuviz.data.manifest import Manifest
from gpuviz.data.marks import formatted
from gpuviz.data.recording_data import Moment, RecordingData
from gpuviz.exports.writers import writer
from gpuviz.formats import gpuviz
from gpuviz.hazards.described import described
from gpuviz.hazards.hazard import Hazard
from gpuviz.hazards.known import known_hazards
from gpuviz.out_of_memory.failures import OutOfMemory, out_of_memory

if TYPE_CHECKING:
    import pyarrow as pa

Source = RecordingData | str | os.PathLike[str]


def load(path: str | os.PathLike[str], *, max_bytes: int | None = None) -> "Recording":
    """Return the recording in a file or folder; the format is detected by its content.

    Supported are ``.gpuviz`` files, ``.gpuviz.part`` folders, HTML reports, PyTorch memory
    snapshots (pickles, of which nothing is executed), RMM CSV logs, and Arrow or Parquet folders.

    Args:
        path: The file or folder.
        max_bytes: Most bytes that its tables may take in memory. By default the value of the
            environment variable ``GPUVIZ_LOAD_MAX_BYTES``, else 100 times the size on disk (5 to 30
            in practice), at least 64 MiB, and at most 16 GiB or half of the machine's memory.

    Raises:
        FileNotFoundError: The file does not exist.
        FormatError: The file is damaged, unknown or too new, or would take more memory than
            allowed, which is found before it is expanded; the text names the part.
    """
    # Programs that only record need no reader of other formats.
    from gpuviz.formats.detection import read

    return Recording.of(read(Path(path), max_bytes=max_bytes))


def merge(sources: Source | Iterable[Source]) -> "Recording":
    """Return the recordings of several processes as one, on one time axis.

    Each GPU of each process is a device of the result; the table ``processes`` relates them. Times
    of processes of one host are exact. Those of other hosts are aligned by the wall clocks and by
    NCCL's collectives, with a bound of the error (``clock_error``). What is unusual about the
    recordings, such as missing ranks, is in `Recording.notes`.

    Args:
        sources: Recordings, files that `gpuviz.load` reads, patterns such as ``"ranks/*.gpuviz"``,
            or folders of recordings. Files of a pattern or a folder that are damaged, cannot be
            read or cannot be merged are left out, with a note.

    Raises:
        OSError: A file that was named does not exist or cannot be read.
        FormatError: A file that was named is damaged or no recording.
        GpuvizError: There is no recording, or one is merged, a part of a longer one, or has
            impossible times.
    """
    from gpuviz.merging.merge import merge as merged

    return Recording.of(merged(sources))


class Recording(RecordingData):
    """A recording: immutable Arrow tables, and analyses of them.

    Times are nanoseconds since the recording's start, sizes are bytes.

    Args:
        tables: The tables of ``gpuviz.data.tables``; missing ones are empty.
        manifest: Facts about the recording as a whole.
        derived: What `gpuviz.data.derived.marked` and `gpuviz.data.conclusions.marked` returned for
            these tables; other tables are ignored, and computed on first use.

    Raises:
        NonconformingTableError: A table has unexpected columns, types, ids or values.
    """

    def __repr__(self) -> str:
        events = self.tables["memory_events"].num_rows - self.manifest.initial_events
        start, end = self.time_range
        seconds = (end - start) / 1e9
        state = "" if self.is_complete else ", incomplete"
        simulated = ", simulated" if self.manifest.simulated else ""
        return f"<Recording of {seconds:.3f} s, {events} memory events{simulated}{state}>"

    def _repr_html_(self) -> str:
        from gpuviz.notebook.values import recording_html

        return str(recording_html(self))

    def __reduce__(self) -> tuple[Any, ...]:
        # The derived tables of a window come from the whole recording.
        kept = None if self.bounds is None else dict(self.derived)
        return _restored, (type(self), self.tables, self.manifest, kept)

    @property
    def derived(self) -> "Mapping[str, pa.Table]":
        """The tables of `gpuviz.data.derived`, computed on first use."""
        return derived(self)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the recording to ``path`` as a ``.gpuviz`` file; return the path.

        The file is written completely or not at all. It contains the findings, the hazards and the
        other settings that have been asked for, and the findings of a recording of at most 10,000
        memory events and activities. What a recorder writes itself contains at most the hazards.

        Raises:
            RecordingError: ``path`` has the suffix of a web page.
            RecordingExistsError: ``path`` exists and ``overwrite`` is False.
            OSError: The file cannot be written.
        """
        stored = derived_for_file(self) | for_file(self)
        return gpuviz.write(self, Path(path), stored, overwrite=overwrite)

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

        The file embeds the recording that it shows: `load` returns it.

        Args:
            path: Path of the file.
            overwrite: Whether to replace an existing file.
            redact: Whether to remove names, paths, source lines and the command line, also from the
                embedded recording; numbers are kept, and the page states it.
            window: Begin and end of the time to show, in ns; see `window`.
            max_size: Maximum size in bytes. Links from launches to blocks are removed first,
                then CUDA calls with their stacks, then time far from the peak; the page states it.

        Raises:
            RecordingError: ``path`` has the suffix of a recording.
            RecordingExistsError: ``path`` exists and ``overwrite`` is False.
            ValueError: The window is outside the recording, or ``max_size`` is too small.
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
            format: ``perfetto``, ``perfetto_archive``, ``chrome_trace``, ``torch_snapshot``,
                ``arrow`` or ``parquet``; if None, the one with the suffix of ``path``.
            overwrite: Whether to replace an existing file or folder.

        Raises:
            ValueError: The format or suffix is unknown; the text lists the known ones.
            RecordingExistsError: ``path`` exists and ``overwrite`` is False.
            OSError: The file cannot be written.
        """
        path = Path(path)
        return writer(path, format)(self, path, overwrite=overwrite)

    def table(self, name: str) -> "pa.Table":
        """Return a table by name: also derived ones, conclusions, ``memory_levels``.

        Raises:
            KeyError: The table does not exist; the text lists the tables.
        """
        return formatted(self._table(name))

    def _table(self, name: str) -> "pa.Table":
        if name == "memory_levels":
            return self.memory_levels
        if name not in self.tables and name in self.derived:
            return self.derived[name]
        if name not in self.tables and name in conclusion_schemas():
            return conclusion_table(self, name)
        if name not in self.tables:
            derived = [*self.derived, *conclusion_schemas(), "memory_levels"]
            names = ", ".join(sorted([*self.tables, *derived]))
            raise KeyError(f"the recording has no table {name!r}; its tables are {names}")
        return self.tables[name]

    def memory_stats(self, device: int | None = None) -> dict[str, int]:
        """Return the statistics at the end, with the keys of ``torch.cuda.memory_stats``, sorted.

        Args:
            device: Ordinal; the recording's first device if None.
        """
        return statistics(self, device)

    def memory_snapshot(self, at: Moment = None, device: int | None = None) -> list[dict[str, Any]]:
        """Return segments and their blocks in the shape of ``torch.cuda.memory_snapshot()``.

        Args:
            at: The moment; the end if None. Events at exactly that time are included.
            device: Ordinal; all devices if None.
        """
        return snapshot(self, at, device)

    def sites(
        self,
        by: Literal["stack", "line"] = "stack",
        *,
        at: Moment = "peak",
        device: int | None = None,
    ) -> "pa.Table":
        """Return bytes and counts by call site, most live bytes first.

        Args:
            by: One row for each call stack, or for each line of the user's program.
            at: The moment of ``live_bytes`` and ``live_count``.
            device: Ordinal; all devices if None.
        """
        return formatted(sites(self, by, at, device))

    def fragmentation(self, at: Moment = None, device: int | None = None) -> Fragmentation:
        """Return how unused reserved memory is distributed, at a moment.

        Args:
            at: The moment; the end if None.
            device: Ordinal; the recording's first device if None.
        """
        return fragmentation(self, at, device)

    def packing(self, device: int | None = None, *, seconds: float = 10.0) -> Packing:
        """Return bounds of the memory that the recorded blocks need, and a packing of them.

        Args:
            device: Ordinal; the recording's first device if None.
            seconds: Time limit of the search, which usually ends earlier.
        """
        return packing(self, device, seconds=seconds)

    def what_if(
        self,
        settings: str | Iterable[str] | None = None,
        *,
        capacity: int | None = None,
        device: int | None = None,
    ) -> "pa.Table":
        """Return the memory of this program under other settings of the allocator.

        One row for the recording itself (``recorded``), and one for each setting, computed by a
        replay. ``gpuviz.replay(recording, settings=...)`` returns the recording of a row.

        Columns: ``settings``; ``peak_allocated``, ``peak_reserved``, ``peak_reserved_lower`` (bytes
        at their peaks; the last differs only where the peak is not known exactly);
        ``num_alloc_retries``, ``num_ooms`` (failed requests); ``first_failure`` (row of
        ``memory_events`` whose request failed first; null if none), ``first_failure_ns`` (its
        time); ``segments`` (most at once); ``fragmentation`` (share of reserved bytes that is not
        in use at the peak of allocated bytes); ``driver_calls``, ``driver_ns`` (calls that allocate
        or release memory, and their estimated time without waiting for the GPU). What is unknown is
        null.

        Args:
            settings: As for `gpuviz.set_allocator_settings`; the empty string has torch's defaults.
                ``cupy`` is CuPy's own memory pool. ``cudaMallocAsync`` gives bounds of the peak,
                because the driver's rules are not public. By default, those that matter.
            capacity: Memory of the device in bytes; by default that of the recorded one.
            device: Ordinal; the recording's first device if None.
        """
        if settings is None and capacity is None:
            return formatted(known_what_if(self, self.device_or_first(device)))
        return formatted(what_if(self, settings, capacity=capacity, device=device))

    def out_of_memory(self) -> tuple[OutOfMemory, ...]:
        """Return the failed requests for memory, with the reason and the state of memory."""
        return out_of_memory(self)

    def findings(self, *, small: bool = False) -> tuple[Finding, ...]:
        """Return what costs memory or time, with what to change, most saving first, trades last.

        They are computed once, or read from the file.

        Args:
            small: Whether to include what saves less than 1 % of the peak (and 8 MiB) or of the
                time, or saves nothing after the findings before it.
        """
        return Findings(findings(self, small=True) if small else known_findings(self))

    def hazards(self) -> tuple[Hazard, ...]:
        """Return unordered operations on the same memory that conflict, with the fix.

        Those that showed in this run come first. Nothing is returned about a recording that lacks
        the blocks that launches touch or the order of its operations; ``gpuviz hazards`` prints
        the reason. They are computed once, or read from the file.
        """
        found = known_hazards(self)
        return () if isinstance(found, str) else described(self, found)

    def default_stream_work(self) -> "pa.Table":
        """Return the launches, copies and memsets on the legacy default stream, most first.

        One row for each device, line of the program and kind of work, with ``count`` and
        ``total_ns``; see `gpuviz.analysis.default_stream.default_stream_work`. Per-thread default
        streams are others.
        """
        return formatted(default_stream_work(self))

    def peak(self, device: int | None = None) -> Peak:
        """Return time and size of the peak of allocated bytes.

        Args:
            device: Ordinal; the sum of all devices if None.
        """
        return peak(self, device)

    def peak_chain(self, device: int | None = None, *, seconds: float | None = 1.0) -> "pa.Table":
        """Return how the peak of memory comes about, from what the largest operation must hold.

        Args:
            device: Ordinal; the recording's first device if None.
            seconds: Time limit of the search for a packing; no search if None.

        Returns:
            One row for each level, with its ``bytes`` and what it ``added`` to the one before; see
            `gpuviz.advice.arrays.peak_chain.peak_chain`.
        """
        return formatted(peak_chain(self, device, seconds=seconds))

    def overlap(
        self,
        device: int | None = None,
        start: int | None = None,
        end: int | None = None,
    ) -> Overlap:
        """Return busy time, overlap and the causes of idle time, by device and by stream.

        Args:
            device: Ordinal; all devices with activities if None.
            start: Start of the window in ns; each device's first activity if None.
            end: End of the window in ns; the end of each device's last activity if None.
        """
        if start is None and end is None:
            whole = whole_overlap(self)
            return whole if device is None else of_device(whole, self.device_or_first(device))
        return overlap(self, device, start, end)

    def steady_state(self, device: int | None = None) -> SteadyState | None:
        """Return how long a device was busy and idle while the program neither prepared nor waited.

        Without idle time in which the host compiled, imported, loaded code or used it for the first
        time, without what is before the first regular iteration, and without the time between
        notebook cells; see `gpuviz.analysis.steady_state.steady_state`.

        Args:
            device: Ordinal; the recording's first device if None.

        Raises:
            ValueError: The recording has no such device.
        """
        return steady_state(self, self.device_or_first(device))

    def compensated(self) -> "Recording":
        """Return the recording as if the program had not been recorded, with the same rows.

        Calls and allocations take less time on their threads, by what recording them cost; what
        waited for them moves, GPU durations and all orders stay. The headline and `findings` are
        those of it. It is this recording if its costs are not known, as in older files.
        See `gpuviz.advice.replay.compensation.compensated`.
        """
        return Recording.of(compensated(self))

    def recording_cost(self) -> RecordingCost | None:
        """Return how long the program took, how long it would have unrecorded, and what cost it.

        None if the costs are not known.
        """
        return recording_cost(self)

    def window(self, start: int, end: int) -> "Recording":
        """Return the part of the recording after ``start`` and until ``end``, in ns.

        The time axis stays the same. Blocks that exist at ``start`` become initial events. Rows
        that overlap the window are kept as a whole, with the calls, waits and ranges that they
        refer to. Analyses count only the part of a row in the window, and causes and waits are as
        classified in the whole recording.
        """
        return Recording.of(window(self, start, end))

    def kernels(
        self, by: Literal["name", "name_and_line", "line", "stack", "module"] = "name"
    ) -> "pa.Table":
        """Return counts, times and launch sites of kernels, most time first.

        Args:
            by: One row for each name, for each name and line of the user's program that launched
                it, for each line, for each call stack, or for each module of a neural network.
        """
        return formatted(kernels(self, by))

    def lines(self, device: int | None = None) -> "pa.Table":
        """Return the memory, GPU time, copies, waits and idle time of each line of the program.

        Args:
            device: Ordinal; all devices if None.
        """
        return formatted(lines(self, device))

    def modules(self, device: int | None = None) -> "pa.Table":
        """Return the memory and GPU time of each module of a neural network.

        Args:
            device: Ordinal; all devices if None.
        """
        return formatted(modules(self, device))

    def iterations(self, device: int | None = None) -> "pa.Table":
        """Return the iterations of the program's main loop, each with its time, peak and work.

        They are the ranges of one name that repeat, or found by what the host launched; the table
        has no rows if there is no clear period. See `gpuviz.analysis.iterations.iterations`. They
        are computed once, or read from the file.

        Args:
            device: Ordinal; the recording's first device if None.
        """
        return formatted(known_iterations(self, self.device_or_first(device)))

    def leaks(self, device: int | None = None) -> "pa.Table":
        """Return the lines whose live memory grows with the iterations, or with runs of a cell.

        One row for each, with the growth in bytes an iteration and its confidence interval, and
        with the bytes that nothing has used again; see `gpuviz.analysis.leaks.leaks`.

        Args:
            device: Ordinal; all devices if None.

        Raises:
            ValueError: The recording has no such device.
        """
        return formatted(leaks(self, device))

    def copies(self, by: Literal["kind", "line", "stack"] = "kind") -> "pa.Table":
        """Return counts, bytes, times and bandwidth of copies, most time first.

        Args:
            by: One row for each kind and host memory, or for each of these and line or stack.
        """
        return formatted(copies(self, by))

    def compilations(self) -> "pa.Table":
        """Return the kernels that CuPy and Numba compiled or loaded, with their times and lines.

        See `gpuviz.analysis.compilations.compilations`.
        """
        return formatted(compilations(self))

    def host_work(self, device: int | None = None) -> "pa.Table":
        """Return the idle time of devices by what the host did meanwhile, most first.

        As far as threads were sampled (``host_samples``), prepared or collected garbage; see
        `gpuviz.analysis.host_work.works`.
        """
        return formatted(works(self, device))

    def collectives(self) -> "pa.Table":
        """Return the collectives of NCCL, those of all ranks matched, and who came last.

        See `gpuviz.analysis.collectives.collectives`. A recording of one process has the ranks of
        that process; `gpuviz.merge` joins those of all.
        """
        return formatted(known_collectives(self))

    def hidden_collectives(self) -> "pa.Table":
        """Return how much of the time of NCCL's collectives other work hides, by rank and bucket.

        See `gpuviz.advice.waits.hidden_collectives.hidden_collectives`.
        """
        return formatted(hidden_collectives(self))

    def other_memory(self, by: Literal["library", "time"] = "library") -> "pa.Table":
        """Return what was used of devices outside the recorded allocators, in bytes.

        See `gpuviz.analysis.other_memory.other_memory`.

        Args:
            by: One row for each library that allocated from CUDA itself, or for each sample of the
                memory that was used of a device.
        """
        return formatted(other_memory(self, by))

    def graph_pools(self) -> "pa.Table":
        """Return the private pools of captured graphs: their memory, graphs and replays.

        See `gpuviz.analysis.graph_pools.graph_pools`.
        """
        return formatted(graph_pools(self))

    def delayed_frees(self) -> "pa.Table":
        """Return the frees that ``record_stream="auto"`` delayed, or would have delayed.

        See `gpuviz.analysis.delayed_frees.delayed_frees`. The table has no rows unless
        ``record_stream`` was ``"auto"`` or ``"report"``.
        """
        return formatted(delayed_frees(self))

    def writes_after_free(self) -> "pa.Table":
        """Return the writes to freed memory that ``poison=True`` found.

        See `gpuviz.analysis.writes_after_free.writes_after_free`.
        """
        return formatted(writes_after_free(self))

    def synchronizations(self, by: Literal["kind", "line", "stack"] = "kind") -> "pa.Table":
        """Return how often, how long and by what the host was blocked, most time first.

        Args:
            by: One row for each kind and CUDA call, or for each of these and line or stack.
        """
        return formatted(synchronizations(self, by))

    @property
    def host_memory(self) -> HostMemory:
        """The pinned host memory; all other functions are about the memory of devices."""
        return host_memory(self)

    @property
    def processes(self) -> tuple[Process[Self], ...]:
        """The processes of a merged recording (`gpuviz.merge`); none of a recording of one."""
        return cast("tuple[Process[Self], ...]", processes(self))

    @property
    def device_links(self) -> tuple[DeviceLink, ...]:
        """What joins each pair of GPUs (NVLink or PCIe), and whether each can access the other.

        Empty for a single GPU, for simulated GPUs, and if the recording was not stopped properly.
        """
        return device_links(self)

    @property
    def memory_levels(self) -> "pa.Table":
        """The memory totals of each device, one row per change."""
        return memory_levels(self)


def _restored(
    kind: type[Recording],
    tables: "Mapping[str, pa.Table]",
    manifest: Manifest,
    derived_tables: "Mapping[str, pa.Table] | None",
) -> Recording:
    """Return the recording of a pickle."""
    recording = kind(tables, manifest)
    if derived_tables is not None:
        derived.keep(recording, derived_tables)
    return recording
