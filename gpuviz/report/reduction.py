"""Reduction of a recording to a maximum size."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpuviz.analysis.moments import as_ns
from gpuviz.quantities import format_bytes, format_count, format_duration
from gpuviz.recording.tables import schemas
from gpuviz.report.size_model import PageBytes, SizeModel

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from gpuviz.recording.recording import Recording

# Of the bytes allowed: what a page is tried for, and what it need not come closer to.
_AIM, _ENOUGH = 0.985, 0.96
# Facts and findings above the charts are shorter or longer than those of the whole by less.
_VARIABLE_TEXT = 20_000
_MOST_PAGES = 8


@dataclass(frozen=True, slots=True)
class Shown:
    """A recording to show, and the part of its time to show first; None for all of it."""

    recording: "Recording"
    window: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """A page that was written, and how its bytes are made up."""

    content: bytes
    sizes: PageBytes

    def fits(self, largest: int) -> bool:
        """Return whether the page has at most so many bytes."""
        return len(self.content) <= largest


def noted(recording: "Recording", sentence: str) -> "Recording":
    """Return the recording with one more note."""
    manifest = replace(recording.manifest, notes=(*recording.manifest.notes, sentence))
    return type(recording)(recording.tables, manifest)


def cut(recording: "Recording", start: int, end: int) -> Shown:
    """Return a window of a recording, with a note; all of it if the window holds all.

    Raises:
        ValueError: The window ends before it begins, or begins after the recording's end, or a
            bound is no whole number.
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
    return Shown(noted(recording.window(start, end), sentence), (start, end))


def reduce(shown: Shown, write: "Callable[[Shown], Page]", largest: int) -> Page:
    """Return a page with as much of a recording as fits, and a note for each thing left out.

    Left out first are links from launches to blocks, then CUDA calls with the call stacks of
    launches, then what is far from the moment at which most bytes were allocated. What cannot fit
    by the sizes of the tables in the page before is not written.

    Args:
        shown: What to show.
        write: What writes the page of it.
        largest: The bytes that the page may have.

    Raises:
        ValueError: Not even the peak alone fits.
    """
    page = write(shown)
    if page.fits(largest):
        return page
    known = page.sizes
    for step, emptied, shrunk in _STEPS:
        if not shown.recording.tables[emptied].num_rows:
            continue
        shown = replace(shown, recording=step(shown.recording, largest))
        known = known.without(emptied)
        if known.without(*shrunk).page > largest + _VARIABLE_TEXT:
            continue
        page = write(shown)
        if page.fits(largest):
            return page
        known = page.sizes
    return _around_peak(shown, known, write, largest)


def _without_launch_blocks(recording: "Recording", largest: int) -> "Recording":
    rows = recording.tables["launch_blocks"].num_rows
    sentence = (
        f"To fit into {format_bytes(largest)}, the {format_count(rows)} links between launches and "
        "the blocks they touched were left out."
    )
    return noted(_with_empty(recording, "launch_blocks"), sentence)


def _without_calls(recording: "Recording", largest: int) -> "Recording":
    rows = recording.tables["api_calls"].num_rows
    sentence = (
        f"To fit into {format_bytes(largest)}, the {format_count(rows)} CUDA calls and the call "
        "stacks of launches were left out: which lines launched kernels and copies is not here, "
        "and of the times in which the host was blocked only those that CUPTI reports apart."
    )
    return noted(_without_unused(_with_empty(recording, "api_calls")), sentence)


def _around_peak(
    shown: Shown, known: PageBytes, write: "Callable[[Shown], Page]", largest: int
) -> Page:
    """Return the page of the longest time around the peak that fits, but for a few percent."""
    recording = shown.recording
    first, last = shown.window or (0, recording.duration_ns)
    peak = min(max(recording.peak().time_ns, first), last)

    def window_at(share: float) -> tuple[int, int]:
        start = int(peak - (peak - first) * share)
        return start, max(int(peak + (last - peak) * share), start + 1)

    model = SizeModel(recording, known, (first, last))
    best: Page | None = None
    fitting, too_long = 0.0, 1.0
    for attempt in range(_MOST_PAGES):
        bounds = fitting, too_long
        is_lost = attempt >= _MOST_PAGES // 2
        share = sum(bounds) / 2 if is_lost else model.share(window_at, largest * _AIM, bounds)
        window = window_at(share)
        if best is not None and model.rows(*window) == model.rows(*window_at(fitting)):
            break
        page = write(_part(shown, window, largest))
        if page.fits(largest):
            best, fitting = page, share
            if len(page.content) >= largest * _ENOUGH:
                break
        elif share == 0:
            raise _too_small(page, largest)
        else:
            too_long = share
        model.learn(page.sizes, window)
    best = best or write(_part(shown, window_at(0), largest))
    if not best.fits(largest):
        raise _too_small(best, largest)
    return best


def _too_small(page: Page, largest: int) -> ValueError:
    return ValueError(
        f"max_size is {largest} bytes, too few for this recording: with the moment of the peak "
        f"alone, the report has {len(page.content)}",
    )


def _part(shown: Shown, window: tuple[int, int], largest: int) -> Shown:
    recording = shown.recording
    start, end = window
    sentence = (
        f"To fit into {format_bytes(largest)}, only {format_duration(start)} to "
        f"{format_duration(end)} of the recording's {format_duration(recording.duration_ns)} "
        "are here, around the peak; every number is of this part."
    )
    return Shown(noted(_without_unused(recording.window(start, end)), sentence), window)


# What is left out before time is, the table that is empty then, and those that it makes smaller.
_STEPS = (
    (_without_launch_blocks, "launch_blocks", ()),
    (_without_calls, "api_calls", ("stacks", "frames", "strings")),
)


def _with_empty(recording: "Recording", name: str) -> "Recording":
    tables = {**recording.tables, name: schemas()[name].empty_table()}
    return type(recording)(tables, recording.manifest)


def _without_unused(recording: "Recording") -> "Recording":
    """Return the recording without call stacks and names that nothing in it refers to."""
    import pyarrow as pa
    import pyarrow.compute as pc

    tables = dict(recording.tables)
    users = (("memory_events", "stack"), ("api_calls", "stack"))
    tables["stacks"] = _used(tables["stacks"], *(tables[name][column] for name, column in users))
    flat = pa.chunked_array([pc.list_flatten(tables["stacks"]["frames"])], pa.uint32())
    tables["frames"] = _used(tables["frames"], flat, tables["stacks"]["user_frame"])
    names = (
        ("activities", "name"),
        ("api_calls", "name"),
        ("memory_operations", "source"),
        ("ranges", "name"),
    )
    tables["strings"] = _used(tables["strings"], *(tables[name][column] for name, column in names))
    return type(recording)(tables, recording.manifest)


def _used(table: "pa.Table", *columns: "pa.ChunkedArray") -> "pa.Table":
    import pyarrow as pa
    import pyarrow.compute as pc

    ids = pa.concat_arrays([pc.unique(column) for column in columns])
    return table.filter(pc.is_in(table["id"], value_set=ids.unique()))
