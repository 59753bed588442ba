"""Reduction of a recording to a maximum size."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from gpuviz.analysis.classification import with_own
from gpuviz.analysis.derived_tables import derived
from gpuviz.analysis.moments import as_ns
from gpuviz.data.arrays import with_columns
from gpuviz.data.columns import plain
from gpuviz.data.tables import schemas
from gpuviz.formats.gpuviz import DERIVED_FOLDER
from gpuviz.hazards.known import affordable_hazards, known_hazards
from gpuviz.quantities import format_bytes, format_count, format_duration

if TYPE_CHECKING:
    from gpuviz.recording import Recording

# Shares of the time around the peak, of which the first that fits is kept.
_SHARES = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.003, 0.001, 0.0)
# Base64 encodes 3 bytes as 4 letters.
_LETTERS = 4 / 3
# Tables whose size hardly depends on the window of the recording.
_NAMES = ("stacks", "frames", "strings", "launch_configurations", "devices", "pools", "threads")


@dataclass(frozen=True, slots=True)
class Shown:
    """A recording to show, and the window to show first; None for all of it."""

    recording: "Recording"
    window: tuple[int, int] | None = None


class WrittenPage(Protocol):
    """A page of known size."""

    @property
    def size(self) -> int:
        """Size of the page in bytes."""

    @property
    def archive_size(self) -> int:
        """Size of the archive in bytes, which is known before that of the page."""

    @property
    def least_around(self) -> int:
        """Smallest possible size of the rest of the page in bytes."""

    @property
    def tables(self) -> Mapping[str, int]:
        """Size of each table in the archive, in bytes."""

    def close(self) -> None:
        """Release the page."""


P = TypeVar("P", bound=WrittenPage)


def cut(recording: "Recording", start: int, end: int) -> Shown:
    """Return a window of a recording, with a note; all of it if the window holds all.

    Raises:
        ValueError: The window ends before it begins, or begins after the recording's end, or a
            bound is not an integer.
    """
    start, end = as_ns(start, "window's start"), as_ns(end, "window's end")
    whole = recording.duration_ns
    if not 0 <= start < end:
        raise ValueError(f"window must be (start, end) in ns, 0 <= start < end, got {start}, {end}")
    if start >= whole > 0:
        raise ValueError(f"window starts at {start} ns, the recording ends at {whole} ns")
    end = min(end, whole)
    if start == 0 and end == whole:
        return Shown(recording)
    sentence = (
        f"Only {format_duration(start)} to {format_duration(end)} of the recording's "
        f"{format_duration(whole)} are here; every number is of this part."
    )
    return Shown(recording.window(start, end).with_note(sentence), (start, end))


def reduce(shown: Shown, write: Callable[[Shown], P], largest: int) -> P:
    """Return a page with as much of a recording as fits, and a note for each omission.

    Links from launches to blocks are omitted first, then CUDA calls with the call stacks of
    launches, then time far from the peak of allocated bytes, in fixed steps. Steps that cannot
    suffice, by the sizes of the tables, are left out; usually the first page written then fits.

    Args:
        shown: The recording to show.
        write: Writes a page.
        largest: Maximum size of the page in bytes.

    Raises:
        ValueError: Not even the peak alone fits.
    """
    page = write(shown)
    if _fits(page, largest):
        return page
    whole, tables = shown.recording, dict(page.tables)
    for step, sentence, emptied, shrunk in _STEPS:
        rows = shown.recording.tables[emptied].num_rows
        if not rows:
            continue
        note = f"To fit into {format_bytes(largest)}, the {format_count(rows)} {sentence}"
        shown = replace(shown, recording=step(shown.recording).with_note(note))
        tables.pop(emptied, None)
        least = sum(size for name, size in tables.items() if name not in shrunk)
        if _LETTERS * least > largest:
            continue
        page.close()
        page = write(shown)
        if _fits(page, largest):
            return page
        tables = dict(page.tables)
    page.close()
    return _around_peak(shown, whole, _Sizes(page.least_around, tables), write, largest)


def _fits(page: WrittenPage, largest: int) -> bool:
    return _LETTERS * page.archive_size <= largest and page.size <= largest


def _without_launch_blocks(recording: "Recording") -> "Recording":
    reduced = _with_empty(recording, "launch_blocks")
    derived.keep(
        reduced, with_own(recording.derived, reduced.tables, named=recording.derived["names"])
    )
    known_hazards.keep(reduced, affordable_hazards(recording))
    return reduced


def _without_calls(recording: "Recording") -> "Recording":
    reduced = _with_empty(recording, "api_calls")
    waits = _without_calls_of_waits(recording.derived["host_waits"])
    kept = {**recording.derived, "host_waits": waits}
    derived.keep(reduced, with_own(kept, reduced.tables, named=recording.derived["names"]))
    return _without_unused(reduced)


def _without_calls_of_waits(waits: pa.Table) -> pa.Table:
    kept = waits.filter(plain(waits["synchronization"]) >= 0)
    none = np.zeros(len(kept), np.int64)
    return with_columns(kept, name=none, call=none - 1, stack=none)


@dataclass(frozen=True, slots=True)
class _Sizes:
    """What a page with a share of the time is expected to need.

    Attributes:
        around: Bytes of the rest of the page.
        tables: Bytes of each table of the whole time.
    """

    around: int
    tables: Mapping[str, int]

    def of(self, share: float) -> float:
        """Return the expected bytes of a page with a share of the time."""
        names = sum(self.tables.get(name, 0) for name in _NAMES)
        rest = sum(self.tables.values()) - names
        return self.around + _LETTERS * (names + share * rest)


def _around_peak(
    shown: Shown,
    whole: "Recording",
    sizes: _Sizes,
    write: Callable[[Shown], P],
    largest: int,
) -> P:
    """Return the page of the longest window around the peak that fits, of a few lengths.

    Args:
        shown: The recording without what is omitted before time.
        whole: The same with it, from which causes of idle time in a window are computed.
        sizes: What pages are expected to need.
        write: Writes a page.
        largest: Maximum size of the page in bytes.
    """
    first, last = shown.window or whole.time_range
    peak = min(max(whole.peak().time_ns, first), last)
    size, error = 0, 1.0
    for share in _SHARES:
        if share and sizes.of(share) * error > largest:
            continue
        start = int(peak - (peak - first) * share)
        end = max(int(peak + (last - peak) * share), start + 1)
        page = write(_part(shown, whole, (start, end), largest))
        if _fits(page, largest):
            return page
        size = page.size
        error = max(size / sizes.of(share), 1.0)
        page.close()
    raise ValueError(
        f"max_size is {largest} bytes, too few for this recording: with the moment of the peak "
        f"alone, the report has {size} bytes",
    )


def _part(shown: Shown, whole: "Recording", window: tuple[int, int], largest: int) -> Shown:
    start, end = window
    sentence = (
        f"To fit into {format_bytes(largest)}, only {format_duration(start)} to "
        f"{format_duration(end)} of the recording's {format_duration(whole.duration_ns)} "
        "are included, around the peak; all numbers are of this part."
    )
    part = whole.window(start, end)
    for step, *_ in _STEPS:
        part = step(part)
    manifest = replace(part.manifest, notes=shown.recording.manifest.notes)
    return Shown(part.with_manifest(manifest).with_note(sentence), window)


# What is omitted before time: a function, a sentence on the rows, the table it empties, and the
# tables it shrinks.
_STEPS = (
    (
        _without_launch_blocks,
        "links between launches and the blocks they touched were left out.",
        "launch_blocks",
        (f"{DERIVED_FOLDER}accessed_blocks",),
    ),
    (
        _without_calls,
        (
            "CUDA calls and the call stacks of launches were left out: the lines that launched "
            "kernels and copies are unknown, and the only times of a blocked host are those that "
            "CUPTI reports separately."
        ),
        "api_calls",
        ("stacks", "frames", "strings", f"{DERIVED_FOLDER}host_waits"),
    ),
)


def _with_empty(recording: "Recording", name: str) -> "Recording":
    tables = {**recording.tables, name: schemas()[name].empty_table()}
    return type(recording)(tables, recording.manifest)


def _without_unused(recording: "Recording") -> "Recording":
    """Return the recording without unreferenced call stacks and names."""
    import pyarrow.compute as pc

    tables = dict(recording.tables)
    users = (
        *("memory_events", "host_memory_events", "host_accesses"),
        *("api_calls", "host_samples"),
    )
    tables["stacks"] = _used(tables["stacks"], *(tables[name]["stack"] for name in users))
    flat = pa.chunked_array([pc.list_flatten(tables["stacks"]["frames"])], pa.uint32())
    own = (tables["stacks"][name] for name in ("user_frame", "forward_frame"))
    tables["frames"] = _used(tables["frames"], flat, *own)
    names = (
        ("activities", "name"),
        ("api_calls", "name"),
        ("memory_operations", "source"),
        ("ranges", "name"),
        ("tensors", "name"),
    )
    tables["strings"] = _used(tables["strings"], *(tables[name][column] for name, column in names))
    reduced = type(recording)(tables, recording.manifest)
    derived.keep(
        reduced, with_own(recording.derived, reduced.tables, named=recording.derived["names"])
    )
    return reduced


def _used(table: pa.Table, *columns: pa.ChunkedArray) -> pa.Table:
    import pyarrow.compute as pc

    ids = pa.concat_arrays([pc.unique(column) for column in columns])
    return table.filter(pc.is_in(table["id"], value_set=ids.unique()))
