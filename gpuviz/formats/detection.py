"""Format detection: files and folders by their content."""

import errno
import stat
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from shlex import quote
from typing import Any

from gpuviz.data.recording_data import RecordingData
from gpuviz.errors import FormatError
from gpuviz.formats import arrow_directory, html, rmm_csv, torch_snapshot
from gpuviz.formats.archive_members import MANIFEST, is_archive
from gpuviz.formats.input_files import check_regular
from gpuviz.formats.load_limit import LoadLimit

# Files by module of this package: whether its first bytes are those of one, and what it is.
_FILES = {
    "gpuviz": (is_archive, "a .gpuviz file"),
    "html": (html.is_page, "an HTML report"),
    "torch_snapshot": (torch_snapshot.is_pickle, "a torch memory snapshot (pickle)"),
    "rmm_csv": (rmm_csv.is_log, "an RMM CSV log"),
}
# Modules of this package; each has `read(path)`.
FORMATS = (*_FILES, "part", "arrow_directory")
# Formats whose `read` also accepts `progress`.
_WITH_PROGRESS = ("torch_snapshot", "rmm_csv")
# Its events take about as much memory as the lines that name them.
_WITHOUT_LIMIT = ("rmm_csv",)
_START_BYTES = 1024
_EXPECTED = (
    f"expected {', '.join(words for _, words in _FILES.values())}, a .gpuviz.part folder, "
    "or a folder of Arrow or Parquet files"
)


def read(
    path: Path,
    progress: Callable[[int, int], None] | None = None,
    max_bytes: int | None = None,
) -> RecordingData:
    """Return the recording in a file or folder of any of ``FORMATS``.

    Args:
        path: The file or folder.
        progress: Called repeatedly with the bytes read and the total, for slow formats.
        max_bytes: See `gpuviz.formats.load_limit.LoadLimit`.

    Raises:
        FormatError: The format is unknown, the file is damaged, or it needs too much memory.
        OSError: The file does not exist or cannot be read.
    """
    name = detect(path)
    module = import_module(f"gpuviz.formats.{name}")
    limit = LoadLimit(path, max_bytes)
    options: dict[str, Any] = {} if name in _WITHOUT_LIMIT else {"limit": limit}
    with_progress = (progress,) if name in _WITH_PROGRESS else ()
    recording: RecordingData = module.read(path, *with_progress, **options)
    recording.take_path(str(path))
    return recording


def detect(path: Path) -> str:
    """Return which of ``FORMATS`` a file or folder has, regardless of its name.

    Raises:
        FormatError: It has none of them.
        OSError: The file does not exist or cannot be read.
    """
    if _is_folder(path):
        return _detect_folder(path)
    check_regular(path)
    with path.open("rb") as file:
        start = file.read(_START_BYTES)
    for name, (is_one, _) in _FILES.items():
        if is_one(start):
            return name
    if path.suffix == ".py":
        command = f"gpuviz run {quote(str(path))}"
        raise FormatError(str(path), "", f"a Python program; this records it: {command}")
    raise FormatError(str(path), "", f"not a gpuviz recording; {_EXPECTED}")


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except ValueError as error:
        raise FormatError(str(path), "", f"not a path ({error})") from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise FormatError(str(path), "", "the path is too long") from None
        raise


def _detect_folder(path: Path) -> str:
    if not (path / MANIFEST).exists():
        if any(path.glob("*.gpuviz*")):
            merge = f"gpuviz merge {quote(str(path))} -o all.gpuviz"
            raise FormatError(
                str(path), "", f"a folder of recordings; name one of them, or merge them: {merge}"
            )
        raise FormatError(str(path), MANIFEST, f"missing; {_EXPECTED}")
    return "arrow_directory" if arrow_directory.layout(path) else "part"
