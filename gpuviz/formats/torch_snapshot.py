"""Memory snapshots of PyTorch, as ``torch.cuda.memory._dump_snapshot`` writes them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuviz import _core
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.validation import NonconformingTableError
from gpuviz.errors import FormatError
from gpuviz.formats.load_limit import LoadLimit
from gpuviz.formats.torch_manifest import manifest_of
from gpuviz.formats.torch_tables import SnapshotTables

if TYPE_CHECKING:
    from collections.abc import Callable

_DIVISIONS = tuple(str(1 << power) for power in range(16))


def is_pickle(start: bytes) -> bool:
    """Return whether the first bytes of a file are those of a pickle of protocol 2 to 5."""
    return len(start) >= 2 and start[0] == 0x80 and 2 <= start[1] <= 5  # noqa: PLR2004


def read(
    path: Path,
    progress: "Callable[[int, int], None] | None" = None,
    *,
    limit: LoadLimit | None = None,
) -> RecordingData:
    """Return the recording of a torch memory snapshot.

    Nothing in the file is executed: the reader accepts plain values only. The state at the end is
    exactly the snapshot's. The state before the trace is inferred backwards from it; the
    recording's notes state what could not be inferred.

    Args:
        path: A pickle of protocol 2 to 5, of ``_snapshot()`` or of ``memory_snapshot()``.
        progress: Called with the bytes read and the total, at most 20 times a second.
        limit: Limits what the pickle's values may take; they need 2 to 4 times the file's size.

    Raises:
        FormatError: The file is damaged, rejected, or not a snapshot; the message names the part.
        OSError: The file cannot be read.
    """
    name = str(path)
    try:
        limit = limit or LoadLimit(path)
        snapshot = _core.TorchSnapshot.read(name, limit.max_bytes, progress)
    except ValueError as error:
        if len(error.args) != 2:  # noqa: PLR2004 - of what progress() raises
            raise
        place, problem = error.args
        raise FormatError(name, place, f"{problem}; expected a torch memory snapshot") from None
    return _recording(snapshot, name)


def _recording(snapshot: "_core.TorchSnapshot", name: str) -> RecordingData:
    settings = _values(snapshot.settings)
    history = snapshot.history(max_split_size(settings), divisions(settings))
    try:
        tables = SnapshotTables(snapshot, history, _values(snapshot.recorder))
        manifest = manifest_of(snapshot, tables, history, settings, _values(snapshot.recorder))
        finished = tables.finish()
        manifest = replace(manifest, events=finished["memory_events"].num_rows)
        return RecordingData(finished, manifest)
    except NonconformingTableError as error:
        raise FormatError(name, error.table, error.problem) from None
    except ValueError as error:
        raise FormatError(name, "device_traces", str(error)) from None


def _values(entries: dict[bytes, bytes]) -> dict[str, Any]:
    """Decode the values of a dict from JSON."""
    return {
        key.decode("utf-8", "replace"): json.loads(text.decode("utf-8", "replace"))
        for key, text in entries.items()
    }


def max_split_size(settings: dict[str, Any]) -> int | None:
    """Return ``max_split_size`` in bytes; None if unlimited or unknown."""
    size = settings.get("max_split_size")
    is_limit = isinstance(size, int) and not isinstance(size, bool) and 0 <= size < 1 << 63
    return size if is_limit else None


def divisions(settings: dict[str, Any]) -> list[int]:
    """Return ``roundup_power2_divisions`` by power of two; 0 where unset or unknown."""
    given = settings.get("roundup_power2_divisions")
    if not isinstance(given, dict):
        return [0] * len(_DIVISIONS)
    values = [given.get(name, 0) for name in _DIVISIONS]
    return [each if type(each) is int and 0 <= each <= 1 << 16 else 0 for each in values]
