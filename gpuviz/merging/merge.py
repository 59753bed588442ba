"""`merge`: the recordings of several processes as one."""

import glob
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpuviz.errors import GpuvizError
from gpuviz.merging.placement import Placement, placements
from gpuviz.merging.problems import notes_of, without_duplicates
from gpuviz.merging.rows import Merged
from gpuviz.recording.manifest import Manifest
from gpuviz.recording.recording import Recording, load

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Source = Recording | str | os.PathLike[str]

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


def merge(sources: "Source | Iterable[Source]") -> Recording:
    """Return the recordings of several processes as one, on one time axis.

    Each GPU of each process is a device of the result; the table ``processes`` relates them. Times
    of processes of one host are exact. Those of other hosts are aligned by the wall clocks, with a
    bound of the error (``clock_error``). What is unusual about the recordings, such as missing
    ranks, is in `Recording.notes`.

    Args:
        sources: Recordings, files that `gpuviz.load` reads, patterns such as ``"ranks/*.gpuviz"``,
            or folders of recordings.

    Raises:
        FileNotFoundError: A file does not exist.
        FormatError: A file is damaged, or no recording.
        GpuvizError: There is no recording, or one is merged, a part of a longer one, or has
            impossible times.
    """
    given = [sources] if isinstance(sources, Recording | str | os.PathLike) else list(sources)
    found: list[tuple[str, Recording]] = []
    for each in given:
        if isinstance(each, Recording):
            found.append((f"recording {len(found) + 1}", each))
        else:
            found += loaded(files(Path(each)))
    return merged(found)


def loaded(paths: "Sequence[Path]") -> "Iterator[tuple[str, Recording]]":
    """Yield the recordings in files with their paths; several are read at once.

    Raises:
        FileNotFoundError: A file does not exist.
        FormatError: A file is damaged, or no recording.
    """
    # Most of the time is decompression, which runs without Python's lock.
    with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1)) as threads:
        yield from zip(map(str, paths), threads.map(load, paths), strict=True)


def files(path: Path) -> list[Path]:
    """Return the recordings that a path or a pattern names, by name.

    Raises:
        FileNotFoundError: There is no such file.
        GpuvizError: A folder has no recordings.
    """
    if path.is_dir() and not (path / "manifest.json").exists():
        found = sorted(each for each in path.iterdir() if each.name.endswith(_SUFFIXES))
        if not found:
            raise GpuvizError(f"{path} has no recordings (*.gpuviz or *.gpuviz.part).")
        return found
    matching = [] if path.exists() else sorted(map(Path, glob.glob(str(path))))  # noqa: PTH207
    return matching or [path]


def merged(named: "Iterable[tuple[str, Recording]]") -> Recording:
    """Return recordings as one; their names are used in errors and notes.

    Raises:
        GpuvizError: There is none, or one is merged or a part of a longer one.
    """
    given = list(named)
    if not given:
        raise GpuvizError("There are no recordings to merge.")
    for name, each in given:
        if each.tables["processes"].num_rows:
            raise GpuvizError(f"{name} is a merged recording; merge those that it was made of.")
        if each.bounds is not None:
            raise GpuvizError(f"{name} is a part of a recording; merge whole ones.")
    kept, duplicates = without_duplicates(given)
    placed = placements(kept)
    rows = Merged(placed)
    return Recording(rows.tables(), _manifest(placed, rows, notes_of(placed, duplicates)))


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
