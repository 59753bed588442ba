"""Which recordings are merged: those found by a name, and read without an error."""

import glob
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from gpuviz.analysis.unseen import is_whole
from gpuviz.data.columns import plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.errors import FormatError, GpuvizError
from gpuviz.formats.detection import read

# The name of a recording, and it, or why it cannot be merged.
Read = tuple[str, RecordingData | GpuvizError]

_MOST_THREADS = 4
_PART = ".part"
_SUFFIXES = (".gpuviz", f".gpuviz{_PART}")
# Some 70 years; hosts are not up for longer, and sums of times of damaged files must not overflow.
_MOST_NS = 2**61


@dataclass(frozen=True, slots=True)
class File:
    """A file to merge, and whether it was found by a pattern or in a folder."""

    path: Path
    is_found: bool


def files(path: Path) -> list[File]:
    """Return the recordings that a path or a pattern names, by name.

    Raises:
        GpuvizError: A folder has no recordings.
        OSError: A folder cannot be read.
    """
    if path.is_dir() and not (path / "manifest.json").exists():
        found = sorted(each for each in path.iterdir() if each.name.endswith(_SUFFIXES))
        if not found:
            raise GpuvizError(f"{path} has no recordings (*.gpuviz or *.gpuviz.part).")
        return [File(each, is_found=True) for each in found]
    is_there = os.path.lexists(path)
    matching = [] if is_there else sorted(map(Path, glob.glob(str(path))))  # noqa: PTH207
    return [File(each, is_found=True) for each in matching] or [File(path, is_found=False)]


def loaded(chosen: Sequence[File]) -> Iterator[Read]:
    """Yield the recordings in files with their paths, or why those found cannot be merged.

    Several are read at once.

    Raises:
        GpuvizError: A file that was named is damaged, no recording, or cannot be merged.
        OSError: A file that was named cannot be read.
    """
    names = {each.path for each in chosen}

    def read(file: File) -> Read:
        try:
            return _read(file.path)
        except (GpuvizError, OSError) as error:
            if not file.is_found:
                raise
            whole = file.path.with_name(file.path.name.removesuffix(_PART))
            if whole in names or not whole.exists():
                return str(file.path), _as_error(file.path, error)
        # The folder of a growing recording was replaced by its file.
        return read(File(whole, is_found=True))

    # Most of the time is decompression, which runs without Python's lock.
    with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1)) as threads:
        yield from threads.map(read, chosen)


def check(name: str, recording: RecordingData) -> None:
    """Check that a recording can be merged.

    Raises:
        GpuvizError: It is merged, a part of a longer one, or has impossible times.
    """
    if recording.tables["processes"].num_rows:
        raise GpuvizError(f"{name} is a merged recording; merge those that it was made of.")
    if recording.bounds is not None:
        raise GpuvizError(f"{name} is a part of a recording; merge whole ones.")
    if not is_whole(recording.tables):
        raise GpuvizError(f"{name} has streams in windows only; merge whole recordings.")
    clocks, manifest = recording.tables["clock_snapshots"], recording.manifest
    times = [manifest.start_monotonic_ns, manifest.start_unix_ns, recording.duration_ns]
    for column in ("time", "wall", "uncertainty"):
        found = plain(clocks[column])
        times += [int(found.min(initial=0)), int(found.max(initial=0))]
    if max(map(abs, times)) > _MOST_NS:
        raise GpuvizError(f"{name} cannot be merged: its clocks have times that are not possible.")


def _read(path: Path) -> Read:
    recording = read(path)
    check(str(path), recording)
    return str(path), recording


def _as_error(path: Path, error: GpuvizError | OSError) -> GpuvizError:
    if isinstance(error, GpuvizError):
        return error
    return FormatError(str(path), "", f"cannot be read ({error.strerror or error})")
