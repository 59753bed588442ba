"""`merge`: the recordings of several processes as one."""

import glob
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpuviz.data.manifest import Manifest
from gpuviz.data.recording_data import RecordingData
from gpuviz.errors import FormatError, GpuvizError
from gpuviz.formats.detection import read
from gpuviz.merging.placement import Placement, placements
from gpuviz.merging.problems import notes_of, without_duplicates
from gpuviz.merging.rows import Merged

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Source = RecordingData | str | os.PathLike[str]
    # The name of a recording, and it, or why it cannot be read.
    Read = tuple[str, RecordingData | FormatError]

_MOST_THREADS = 4
_SUFFIXES = (".gpuviz", ".gpuviz.part")
# Facts that are kept where all processes agree.
_COMMON = (
    *("host", "host_hash", "boot_id", "gpuviz_version", "python", "platform", "program", "cupy"),
    *("driver", "runtime", "allocator_name", "settings", "record_stream", "label"),
)
_SUMS = (
    *("events", "dropped", "dropped_oldest", "dropped_activities", "dropped_oldest_activities"),
    "own_cost_ns",
)


def merge(sources: "Source | Iterable[Source]") -> RecordingData:
    """Return the recordings of several processes as one; see `gpuviz.merge`."""
    given = [sources] if isinstance(sources, RecordingData | str | os.PathLike) else list(sources)
    found: list[Read] = []
    for each in given:
        if isinstance(each, RecordingData):
            found.append((f"recording {len(found) + 1}", each))
        else:
            found += loaded(files(Path(each)))
    return merged(found)


@dataclass(frozen=True, slots=True)
class File:
    """A file to merge, and whether it was found by a pattern or in a folder."""

    path: Path
    is_found: bool


def loaded(chosen: "Sequence[File]") -> "Iterator[Read]":
    """Yield the recordings in files with their paths, or why those found cannot be read.

    Several are read at once.

    Raises:
        FileNotFoundError: A file does not exist.
        FormatError: A file that was named is damaged, or no recording.
    """
    # Most of the time is decompression, which runs without Python's lock.
    with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1)) as threads:
        yield from threads.map(_read, chosen)


def _read(file: File) -> "Read":
    try:
        return str(file.path), read(file.path)
    except FormatError as error:
        if not file.is_found:
            raise
        return str(file.path), error


def files(path: Path) -> list[File]:
    """Return the recordings that a path or a pattern names, by name.

    Raises:
        GpuvizError: A folder has no recordings.
    """
    if path.is_dir() and not (path / "manifest.json").exists():
        found = sorted(each for each in path.iterdir() if each.name.endswith(_SUFFIXES))
        if not found:
            raise GpuvizError(f"{path} has no recordings (*.gpuviz or *.gpuviz.part).")
        return [File(each, is_found=True) for each in found]
    matching = [] if path.exists() else sorted(map(Path, glob.glob(str(path))))  # noqa: PTH207
    return [File(each, is_found=True) for each in matching] or [File(path, is_found=False)]


def merged(sources: "Iterable[Read]") -> RecordingData:
    """Return recordings as one; their names are used in errors and notes.

    Raises:
        FormatError: None could be read.
        GpuvizError: There is none, or one is merged or a part of a longer one.
    """
    given: list[tuple[str, RecordingData]] = []
    unreadable: list[FormatError] = []
    for name, each in sources:
        if isinstance(each, RecordingData):
            given.append((name, each))
        else:
            unreadable.append(each)
    if unreadable and not given:
        raise unreadable[0]
    if not given:
        raise GpuvizError("There are no recordings to merge.")
    for name, each in given:
        if each.tables["processes"].num_rows:
            raise GpuvizError(f"{name} is a merged recording; merge those that it was made of.")
        if each.bounds is not None:
            raise GpuvizError(f"{name} is a part of a recording; merge whole ones.")
    kept, left_out = without_duplicates(given)
    left_out += [f"A file was left out: {str(error).rstrip('.')}." for error in unreadable]
    placed = placements(kept)
    rows = Merged(placed)
    return RecordingData(rows.tables(), _manifest(placed, rows, notes_of(placed, left_out)))


def _manifest(placed: "list[Placement]", rows: Merged, notes: tuple[str, ...]) -> Manifest:
    manifests = [each.recording.manifest for each in placed]
    first = placed[0].recording.manifest
    zero = min(placed, key=lambda each: each.start)
    different = [name for name in _COMMON if any(_differ(name, first, m) for m in manifests)]
    return replace(
        Manifest(),
        **{name: getattr(first, name) for name in _COMMON if name not in different},
        **{name: sum(getattr(each, name) for each in manifests) for name in _SUMS},
        created=zero.recording.manifest.created,
        start_unix_ns=zero.recording.manifest.start_unix_ns,
        start_monotonic_ns=zero.recording.manifest.start_monotonic_ns,
        duration_ns=max(each.end for each in placed),
        complete=all(each.complete for each in manifests),
        allocator="caching" if all(m.allocator == "caching" for m in manifests) else "observe",
        hazards=any(each.hazards for each in manifests),
        forbid_default_stream=any(each.forbid_default_stream for each in manifests),
        simulated=any(each.simulated for each in manifests),
        initial_events=sum(each.initial_events for each in manifests),
        notes=notes,
        **rows.facts(),
    )


def _differ(name: str, one: Manifest, other: Manifest) -> bool:
    return bool(getattr(one, name) != getattr(other, name))
