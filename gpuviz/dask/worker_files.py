"""Recordings on a worker's disk: where they are, which are finished, their pieces.

The functions with a ``dask_worker`` run on workers, called by the client.
"""

import asyncio
import errno
import fcntl
import hashlib
import os
import shutil
import stat
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BufferedReader
from pathlib import Path
from typing import IO, TYPE_CHECKING
from urllib.parse import quote

from gpuviz.errors import RecordingError
from gpuviz.formats.output_path import part_of

if TYPE_CHECKING:
    from distributed import Worker

_SUFFIX = ".gpuviz"
_LOCK = ".lock"
# A worker's name is quoted, so it contains no such character.
_BEFORE_TIME = "@"


@dataclass(frozen=True, slots=True)
class Entry:
    """A recording on a worker's disk.

    Attributes:
        run: The name of its folder, which is that of a call of `gpuviz.dask.record`.
        name: Its file name, with the quoted name of its worker and the time of its start.
    """

    run: str
    name: str

    @property
    def worker(self) -> str:
        """The quoted name of its worker."""
        return self.name.partition(_BEFORE_TIME)[0]

    @property
    def is_plain(self) -> bool:
        """Whether run and name are file names, and not paths to elsewhere."""
        return is_plain_name(self.run) and is_plain_name(self.name)


@dataclass(frozen=True, slots=True)
class Member:
    """A file of a recording.

    Attributes:
        name: Its name in the ``.gpuviz.part`` folder; empty for a recording in one file.
        size: Its size in bytes.
        sha256: The digest of its content, as hexadecimal text.
    """

    name: str
    size: int
    sha256: str


def run_folder(worker: "Worker", run: str) -> Path:
    """Return the folder of the recordings of a run on a worker's disk.

    It is in Dask's scratch folder, beside that of the worker, which Dask removes with the worker.
    """
    return _runs(worker) / run


def new_path(folder: Path, worker: "Worker") -> Path:
    """Return a path in a folder for a recording of a worker that starts now."""
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
    name = quote(str(worker.name), safe="", errors="backslashreplace")
    # Files whose names begin with a dot are hidden, and no recordings.
    name = f"%2E{name[1:]}" if name.startswith(".") else name
    return folder / f"{name}{_BEFORE_TIME}{now}{_SUFFIX}"


def is_plain_name(name: str) -> bool:
    """Return whether a name is that of a file in a folder, and of no hidden one."""
    is_part = Path(name).name == name and name.isprintable() and name.isascii()
    return is_part and name[:1] not in ("", ".")


class RecordingLock:
    """Marks a recording as being written, until `release` or the end of this process."""

    def __init__(self, path: Path) -> None:
        self._path = _lock_of(path)
        self._file: IO[bytes] = self._path.open("xb")
        # A client that lists the recordings may hold it for a moment.
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def release(self) -> None:
        """Mark the recording as complete; may be called repeatedly."""
        self._path.unlink(missing_ok=True)
        self._file.close()


def ended(run: str | None, dask_worker: "Worker") -> list[Entry]:
    """Return the recordings of a run, or of all, that no process is writing."""
    runs = _runs(dask_worker)
    folders = runs.glob("*") if run is None else [runs / run]
    found = {
        Entry(folder.name, path.name.removesuffix(".part"))
        for folder in folders
        if not folder.is_symlink()
        for path in folder.glob(f"*{_SUFFIX}*")
        if _is_recording(path)
    }
    return [entry for entry in found if not _is_being_written(_path(dask_worker, entry))]


async def members(entry: Entry, dask_worker: "Worker") -> list[Member]:
    """Return the files of a recording, with their digests."""
    return await asyncio.to_thread(_members, _path(dask_worker, entry))


async def read_piece(
    entry: Entry, member: str, offset: int, length: int, dask_worker: "Worker"
) -> bytes:
    """Return up to ``length`` bytes of a file of a recording."""
    return await asyncio.to_thread(_read, _file(_path(dask_worker, entry), member), offset, length)


async def remove(entry: Entry, dask_worker: "Worker") -> None:
    """Remove a recording that has been fetched, and its folder if it was the last."""
    await asyncio.to_thread(_remove, _path(dask_worker, entry))


def _runs(worker: "Worker") -> Path:
    return Path(worker.local_directory).parent / "gpuviz"


def _path(worker: "Worker", entry: Entry) -> Path:
    return run_folder(worker, entry.run) / entry.name


def _lock_of(path: Path) -> Path:
    return path.with_name(path.name + _LOCK)


def _is_recording(path: Path) -> bool:
    if path.is_symlink():
        return False
    if path.name.endswith(_SUFFIX):
        return path.is_file()
    return path.name.endswith(part_of(Path(_SUFFIX)).name) and path.is_dir()


def _open(path: Path) -> BufferedReader:
    """Open a file to read it; never wait for one that is no plain file, nor follow a link.

    Raises:
        RecordingError: It is no plain file.
    """
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise RecordingError(f"{path.name} is not a plain file") from None
        raise
    file = os.fdopen(number, "rb")
    if not stat.S_ISREG(os.fstat(number).st_mode):
        file.close()
        raise RecordingError(f"{path.name} is not a plain file")
    return file


def _is_being_written(path: Path) -> bool:
    try:
        with _open(_lock_of(path)) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (FileNotFoundError, RecordingError):
        return False
    except BlockingIOError:
        return True
    return False


def _members(path: Path) -> list[Member]:
    # A process that was killed while it ended its recording may leave both.
    files = [path] if path.exists() else sorted(part_of(path).glob("[!.]*"))
    found = []
    for file in files:
        with _open(file) as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
            found.append(Member("" if file == path else file.name, content.tell(), digest))
    return found


def _file(path: Path, member: str) -> Path:
    return part_of(path) / member if member else path


def _read(path: Path, offset: int, length: int) -> bytes:
    with _open(path) as file:
        file.seek(offset)
        return file.read(length)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    shutil.rmtree(part_of(path), ignore_errors=True)
    _lock_of(path).unlink(missing_ok=True)
    try:
        path.parent.rmdir()
    except OSError:
        return  # others are left
