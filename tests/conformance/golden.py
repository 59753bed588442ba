"""An acceptance file, decoded to the input of the native replay and its expected output."""

import json
import lzma
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gpuviz import _core

# Streams' internal ids if a file does not contain them: torch's first three pool streams.
STREAM_IDS = (0, 3, 35, 67)
HANDLE_STEP = 1 << 20


@dataclass(frozen=True, slots=True)
class Golden:
    """The content of a file; see the README next to the files."""

    name: str
    conf: str
    fraction: float | None
    total_memory: int
    stream_handles: tuple[int, ...]
    stream_ids: tuple[int, ...]
    ops: list[list[Any]]
    trace: list[dict[str, Any]]
    segments: list[dict[str, Any]]

    @classmethod
    def read(cls, path: Path) -> "Golden":
        """Return the file's contents.

        Raises:
            ValueError: The file is not an acceptance file; the message names it.
        """
        try:
            content = json.loads(lzma.decompress(path.read_bytes()))
            ops = content["ops"]
            handles = content.get("stream_handles")
            return cls(
                name=path.name.removesuffix(".json.xz"),
                conf=content["conf"],
                fraction=content["fraction"],
                total_memory=content["total_memory"],
                stream_handles=tuple(handles or (i * HANDLE_STEP for i in range(len(STREAM_IDS)))),
                stream_ids=tuple(content.get("stream_ids") or STREAM_IDS),
                ops=ops,
                trace=content["trace"],
                segments=content["segments"],
            )
        except (lzma.LZMAError, json.JSONDecodeError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is not an acceptance file: {error!r}") from error

    def device(self) -> _core.RecordedDevice:
        """Return a device that returns the file's addresses."""

        def addresses(action: str) -> np.ndarray:
            found = [entry["addr"] for entry in self.trace if entry["action"] == action]
            return np.array(found, np.uint64)

        return _core.RecordedDevice(
            self.total_memory,
            addresses("segment_alloc"),
            addresses("segment_map"),
        )

    def program(self) -> _core.ReplayProgram:
        """Return the operations as columns; a reused id gets a new dense id."""
        settings = [op[1] for op in self.ops if op[0] == "settings"]
        rows = np.array(list(self._rows()), np.uint64).reshape(-1, 4)
        return _core.ReplayProgram(
            operation=np.ascontiguousarray(rows[:, 0], np.uint8),
            id=np.ascontiguousarray(rows[:, 1], np.uint32),
            argument=np.ascontiguousarray(rows[:, 2], np.uint64),
            stream=np.ascontiguousarray(rows[:, 3], np.uint64),
            settings=settings,
        )

    def _rows(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield operation, dense id, argument and stream handle of every operation."""
        dense: dict[Any, int] = {}
        settings = 0
        for number, op in enumerate(self.ops):
            kind, *arguments = op
            code = _core.Operation[kind].value
            if kind == "malloc":
                dense[arguments[0]] = number
                yield code, number, arguments[1], self.stream_handles[arguments[2]]
            elif kind == "free":
                yield code, dense.pop(arguments[0]), 0, 0
            elif kind == "record_stream":
                yield code, dense[arguments[0]], 0, self.stream_handles[arguments[1]]
            elif kind == "busy":
                yield code, 0, 0, self.stream_handles[arguments[0]]
            elif kind in {"begin_pool", "end_pool"}:
                yield code, 0, arguments[0], 0
            elif kind == "settings":
                yield code, 0, settings, 0
                settings += 1
            else:
                yield code, 0, 0, 0
