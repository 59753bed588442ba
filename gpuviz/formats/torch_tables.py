"""The tables of a recording from the columns of a torch memory snapshot."""

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gpuviz.data.columns import distinct
from gpuviz.data.implied_columns import origin
from gpuviz.data.stream_handle import stream_row
from gpuviz.data.tables import ACTIONS, DICTIONARIES, FRAMEWORKS, schemas
from gpuviz.formats.torch_ranges import SnapshotRanges
from gpuviz.formats.torch_times import event_times

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuviz._core import TorchSnapshot

_CELL = re.compile(r"In \[(\d{1,9})\]")


class SnapshotTables:
    """Builds the tables; ``before`` and ``after`` count the events added around the trace.

    ``devices`` are those with events or memory.

    Raises:
        ValueError: The trace's times are impossible.
    """

    def __init__(
        self,
        snapshot: "TorchSnapshot",
        history: dict[str, Any],
        recorder: dict[str, Any],
    ) -> None:
        events = snapshot.take_events()
        texts = [text.decode("utf-8", "replace") for text in snapshot.texts]
        self.times = event_times(
            events.pop("time_us"),
            events["device"],
            snapshot.annotations["time_us"],
            recorder.get("start_unix_ns"),
        )
        self._ranges = SnapshotRanges(snapshot.annotations, texts, self.times)
        ranges = self._ranges.of_events(events.pop("metadata"), events["device"], self.times.events)
        events |= {"size": history["size"], "pool": history["pool"], "range": ranges}
        self.devices = np.unique(
            np.concatenate([history["before"]["device"], events["device"]])
        ).tolist()
        order = _device_order(recorder.get("device_order"), events["device"])
        if order is not None:
            events = {name: values[order] for name, values in events.items()}
            self.times = replace(self.times, events=self.times.events[order])
        self._parts = [history["before"], events, history["after"]]
        self.before = len(history["before"]["action"])
        self.after = len(history["after"]["action"])
        self.count = len(events["action"])
        self._frames = _frames(snapshot, texts)
        self._stacks = _stacks(snapshot)

    def finish(self) -> "dict[str, pa.Table]":
        """Return the tables, and release the columns."""
        columns = self._columns()
        handles = columns.pop("stream")
        columns["stream"], streams = _numbered_streams(columns["device"], handles)
        events = _event_table(columns)
        return {
            "memory_events": events,
            "streams": _table("streams", streams),
            "devices": _table("devices", _device_rows(columns["device"])),
            "pools": _table("pools", _pool_rows(columns["pool"])),
            "frames": self._frames,
            "stacks": self._stacks,
            **self._ranges.tables(),
        }

    def _columns(self) -> dict[str, Any]:
        parts, self._parts = self._parts, []
        times = [0, None, self.times.end]
        columns: dict[str, Any] = {}
        for name in ("address", "requested_size", "size", "device", "stream", "pool", "stack"):
            columns[name] = np.concatenate([part.pop(name) for part in parts])
        columns["action"] = np.concatenate([part["action"] for part in parts])
        rows = [len(part["action"]) for part in parts]
        columns["time"] = np.concatenate(
            [
                self.times.events if time is None else np.full(count, time, np.int64)
                for time, count in zip(times, rows, strict=True)
            ],
        )
        columns["range"] = np.zeros(sum(rows), np.uint32)
        columns["range"][rows[0] : rows[0] + rows[1]] = parts[1]["range"]
        _keep_conventions(columns)
        return columns


def _device_order(given: Any, devices: "NDArray[Any]") -> "NDArray[Any] | None":
    """Return the rows in the order of an exported recording; None if it is unknown.

    Args:
        given: Devices of successive events, each followed by how many there are.
        devices: The device of each row.
    """
    if not isinstance(given, list) or len(given) % 2 or not all(type(n) is int for n in given):
        return None
    pairs = np.clip(np.array(given, np.int64).reshape(-1, 2), -1, len(devices) + 1)
    if not len(pairs) or pairs.min() < 0 or pairs[:, 1].sum() != len(devices):
        return None
    wanted = np.repeat(pairs[:, 0], pairs[:, 1])
    if not np.array_equal(np.sort(wanted), np.sort(devices)):
        return None
    order = np.empty(len(devices), np.int64)
    for device in np.unique(devices):
        order[wanted == device] = np.flatnonzero(devices == device)
    return order


def _keep_conventions(columns: dict[str, Any]) -> None:
    """Convert sizes from the conventions of torch's trace to those of ``memory_events``."""
    action = columns["action"]
    requested = columns["requested_size"]
    segments = (action >= ACTIONS.index("segment_alloc")) & (
        action <= ACTIONS.index("segment_unmap")
    )
    requested[segments] = 0
    columns["size"] = np.maximum(columns["size"], requested)


def _event_table(columns: dict[str, Any]) -> "pa.Table":
    schema = schemas()["memory_events"]
    count = len(columns["action"])
    columns = columns | {
        "thread": np.zeros(count, np.uint32),
        "framework": np.full(count, FRAMEWORKS.index("torch"), np.int8),
    }
    arrays = [
        pa.DictionaryArray.from_arrays(
            pa.array(columns[field.name]), pa.array(DICTIONARIES["memory_events", field.name])
        )
        if ("memory_events", field.name) in DICTIONARIES
        else pa.array(columns[field.name], field.type)
        for field in schema
    ]
    return pa.table(arrays, schema=schema)


def _numbered_streams(
    devices: "NDArray[Any]", handles: "NDArray[Any]"
) -> "tuple[NDArray[Any], list[dict[str, Any]]]":
    """Return the id of each event's stream, and the rows of ``streams``."""
    numbers = np.zeros(len(handles), np.uint32)
    rows: list[dict[str, Any]] = []
    for device in np.unique(devices).tolist():
        chosen = devices == device
        known, inverse = np.unique(handles[chosen], return_inverse=True)
        numbers[chosen] = inverse + len(rows) + 1
        rows += [
            stream_row(len(rows) + position, device, handle)
            for position, handle in enumerate(known.tolist(), 1)
        ]
    return numbers, rows


def _device_rows(devices: "NDArray[Any]") -> list[dict[str, Any]]:
    return [
        {"id": device, "name": "", "total_memory": 0, "kind": "cuda"}
        for device in np.unique(devices).tolist()
    ]


def _pool_rows(pools: "NDArray[Any]") -> list[dict[str, Any]]:
    return [
        {
            "id": pool,
            "owner": pool // 2,
            "segment_type": "large" if pool % 2 else "small",
            "framework": "torch",
            "memory": "device",
        }
        for pool in np.unique(pools).tolist()
    ]


def _table(name: str, rows: list[dict[str, Any]]) -> "pa.Table":
    return pa.Table.from_pylist(rows, schema=schemas()[name])


def _frames(snapshot: "TorchSnapshot", texts: list[str]) -> "pa.Table":
    known = ["", *texts]
    lines = np.asarray(snapshot.frame_lines)
    count = len(lines)
    files = _words(known, np.asarray(snapshot.frame_files))
    cells = [_CELL.fullmatch(name) for name in files.dictionary.to_pylist()]
    numbers = np.array([int(cell[1]) if cell else 0 for cell in cells], np.int32)
    installed = np.array([origin(name) for name in files.dictionary.to_pylist()], np.uint8)
    places = files.indices.to_numpy()
    unknown = pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), [""])
    columns = {
        "id": np.arange(1, count + 1, dtype=np.uint32),
        "name": _words(known, np.asarray(snapshot.frame_names)),
        "filename": files,
        "line": lines,
        "cell": numbers[places] if count else np.zeros(0, np.int32),
        "source": unknown,
        "installed": installed[places] if count else np.zeros(0, np.uint8),
        "assigned": unknown,
        "context": unknown,
        "context_line": np.zeros(count, np.int32),
    }
    return pa.table(columns, schema=schemas()["frames"])


def _words(known: list[str], indices: "NDArray[Any]") -> "pa.DictionaryArray":
    """Return the known texts at some indices, without an import of ``pyarrow.compute``."""
    used = distinct(indices)
    places = np.searchsorted(used, indices)
    words = pa.array([known[index] for index in used.tolist()], pa.utf8())
    return pa.DictionaryArray.from_arrays(places.astype(np.int32), words)


def _stacks(snapshot: "TorchSnapshot") -> "pa.Table":
    offsets = pa.array(snapshot.stack_offsets)
    frames = pa.ListArray.from_arrays(offsets, pa.array(snapshot.stack_frames))
    ids = np.arange(1, len(frames) + 1, dtype=np.uint32)
    return pa.table({"id": ids, "frames": frames})
