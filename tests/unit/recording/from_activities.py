"""Recordings created from activities, CUDA calls and synchronizations, without a GPU."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from gpuviz.analysis.overlap import DeviceOverlap
from gpuviz.data.manifest import Manifest
from gpuviz.data.tables import IMPLIED, schemas
from gpuviz.recording import Recording


def rows_of(name: str, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Return a table from rows; missing values are 0, empty, or computed by the recording."""
    implied = [field.name for field in schemas()[name] if (name, field.name) in IMPLIED]
    schema = pa.schema([field for field in schemas()[name] if field.name not in implied])
    empty = {
        field.name: ""
        if pa.types.is_dictionary(field.type) or pa.types.is_string(field.type)
        else []
        if pa.types.is_list(field.type)
        else 0
        for field in schema
    }
    return pa.Table.from_pylist([empty | dict(row) for row in rows], schema=schema)


class Timeline:
    """Rows of a recording, one call each; ids of names, stacks and launches are assigned."""

    def __init__(self) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self._strings: dict[str, int] = {}
        self._lines: dict[tuple[str, int], int] = {}
        self._launches: dict[tuple[int, ...], int] = {}

    def kernel(self, time: int, end: int, name: str = "kernel", **columns: Any) -> None:
        """Add a kernel; ``launch`` may be given as (grid_x, block_x)."""
        launch = self._launches.setdefault(columns.pop("launch", (1, 1)), len(self._launches) + 1)
        self._activity("kernel", time, end, {"name": self.text(name), "launch": launch} | columns)

    def copy(self, time: int, end: int, **columns: Any) -> None:
        """Add a memcpy, by default from pinned host memory to the device."""
        pinned = {"copy_kind": "host_to_device", "source": "pinned", "destination": "device"}
        self._activity("memcpy", time, end, pinned | columns)

    def activity(self, kind: str, time: int, end: int, **columns: Any) -> None:
        """Add an activity of another kind."""
        self._activity(kind, time, end, columns)

    def call(self, time: int, end: int, name: str = "cuLaunchKernel", **columns: Any) -> None:
        """Add a CUDA call, made by the user's ``line`` through a ``library``."""
        line, library = columns.pop("line", None), columns.pop("library", "wrap")
        row = {"time": time, "end": end, "name": self.text(name), "thread": 1} | columns
        if line is not None:
            row["stack"] = self.stack(line, library)
        self.add("api_calls", row)

    def synchronization(self, kind: str, time: int = 0, end: int = 0, **columns: Any) -> None:
        """Add a row of ``synchronizations``."""
        self.add("synchronizations", {"kind": kind, "time": time, "end": end} | columns)

    def add(self, table: str, row: dict[str, Any]) -> None:
        """Add a row to any table."""
        self.rows.setdefault(table, []).append(row)

    def text(self, text: str) -> int:
        """Return the id of a string."""
        return self._strings.setdefault(text, len(self._strings) + 1)

    def stack(self, line: int, library: str) -> int:
        """Return the stack in which the user's line called a library."""
        return self._lines.setdefault((library, line), len(self._lines) + 1)

    def recording(self, **manifest: Any) -> Recording:
        """Return the recording of all rows."""
        rows = dict(self.rows)
        strings = [{"id": n, "text": text} for text, n in self._strings.items()]
        rows["strings"] = strings + rows.get("strings", [])
        rows["launch_configurations"] = [
            {"id": n, "grid_x": grid, "grid_y": 1, "grid_z": 1, "block_x": block}
            | {"block_y": 1, "block_z": 1}
            for (grid, block), n in self._launches.items()
        ]
        rows |= self._stacks()
        return Recording(
            {name: rows_of(name, each) for name, each in rows.items()}, Manifest(**manifest)
        )

    def _activity(self, kind: str, time: int, end: int, columns: dict[str, Any]) -> None:
        row = {"kind": kind, "time": time, "end": end, "stream": 1}
        self.add("activities", row | columns)

    def _stacks(self) -> dict[str, list[dict[str, Any]]]:
        frames = []
        stacks = []
        for (library, line), number in self._lines.items():
            inner, own = 2 * number - 1, 2 * number
            stacks.append({"id": number, "frames": [inner, own]})
            package = f"/x/site-packages/{library}.py"
            frames.append({"id": inner, "name": library, "filename": package, "line": 1})
            frames.append({"id": own, "name": "step", "filename": "run.py", "line": line})
            frames[-1]["source"] = f"line {line}"
        return {"stacks": stacks, "frames": frames}


def only_device(timeline: Timeline, **window: int) -> DeviceOverlap:
    """Return the overlap of a recording with one device."""
    (device,) = timeline.recording().overlap(**window).devices
    return device
