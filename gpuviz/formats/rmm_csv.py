"""The CSV log that RMM's ``logging_resource_adaptor`` writes."""

import csv
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from gpuviz.data.recording_data import RecordingData
from gpuviz.data.validation import NonconformingTableError
from gpuviz.errors import FormatError
from gpuviz.formats.rmm_rows import LogRows, RowError

COLUMNS = ("thread", "time", "action", "pointer", "size", "stream")
# A table without these columns is not a log of RMM.
_TELLING = {"action", "pointer", "size"}
# Columns of rmmWriteLog, from before RMM had memory resources.
_OLDEST = {"event type", "device id", "address"}
_DEVICE = re.compile(r"\.dev(\d{1,3})(?=\.|$)")
_LONGEST_LINE = 4096
_BETWEEN_REPORTS_S = 0.05


def is_log(start: bytes) -> bool:
    """Return whether a file's first bytes are those of a log of RMM, even one `read` rejects."""
    header = start.removeprefix(b"\xef\xbb\xbf").splitlines()[:1]
    names = header[0].decode("utf-8", "replace").split(",") if header else []
    known = {_plain(name) for name in names}
    return known >= _TELLING or known >= _OLDEST


def read(path: Path, progress: Callable[[int, int], None] | None = None) -> RecordingData:
    """Return the recording of RMM's log: allocations and frees, without segments.

    The device is taken from a name such as ``log.dev1.csv``, else 0. Blocks freed without being
    allocated are assumed to exist before the log. Threads are unknown if the log has no column for
    them.

    Args:
        path: The log.
        progress: Called with the bytes read and the total, at most 20 times a second.

    Raises:
        FormatError: A line is invalid; the message contains its number.
        OSError: The file cannot be read.
    """
    name = str(path)
    device = _DEVICE.search(path.name)
    rows = LogRows(int(device[1]) if device else 0)
    with path.open("rb") as file:
        reader = csv.reader(_lines(file, path.stat().st_size, progress), strict=True)
        try:
            order = _column_order(next(reader, []))
            for values in reader:
                if values:
                    rows.add(["" if column is None else values[column] for column in order])
        except IndexError:
            problem = f"too few values; expected {', '.join(COLUMNS)}"
            raise FormatError(name, f"line {max(reader.line_num, 1)}", problem) from None
        except (RowError, csv.Error) as error:
            raise FormatError(name, f"line {max(reader.line_num, 1)}", str(error)) from None
    try:
        return RecordingData(rows.tables(), rows.manifest())
    except NonconformingTableError as error:
        raise FormatError(name, error.table, error.problem) from None


def _plain(name: str) -> str:
    return name.strip().strip('"').lower()


def _column_order(header: list[str]) -> list[int | None]:
    """Return the position of each of ``COLUMNS``; None for a missing optional column."""
    names = [_plain(name.removeprefix("\ufeff")) for name in header]
    if set(names) >= _OLDEST:
        raise RowError(
            "the log of an RMM without memory resources (rmmWriteLog), which is not read; expected "
            f"{', '.join(COLUMNS)}, as the logging_resource_adaptor of newer versions writes"
        )
    missing = [name for name in COLUMNS[1:] if name not in names]
    if missing:
        has = ", ".join(name[:40] for name in names[:20])
        raise RowError(f"no column {missing[0]} in {has}; expected {', '.join(COLUMNS)}")
    return [names.index(name) if name in names else None for name in COLUMNS]


def _lines(file: BinaryIO, size: int, progress: Callable[[int, int], None] | None) -> Iterator[str]:
    reported = time.monotonic()
    while line := file.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE:
            raise RowError(f"longer than {_LONGEST_LINE} bytes")
        yield line.decode("utf-8", "replace")
        if progress is not None and time.monotonic() - reported >= _BETWEEN_REPORTS_S:
            reported = time.monotonic()
            progress(file.tell(), size)
