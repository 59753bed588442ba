"""The columns of a torch memory snapshot from the tables of a recording."""

import io
import pickle
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from gpuviz import _core
from gpuviz.data.columns import codes
from gpuviz.data.escaping import as_unicode
from gpuviz.data.first_rows import first_rows
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import ACTIONS
from gpuviz.errors import FormatError
from gpuviz.formats.output_path import check_free
from gpuviz.formats.torch_snapshot import EXTRA
from gpuviz.formats.whole_file import write_whole

_NS = 1000
_BLOCK_UNIT = 512
_UNKNOWN_SEGMENT = 2
_OOM = ACTIONS.index("oom")
_FIRST_SEGMENT = ACTIONS.index("segment_alloc")
_LAST_SEGMENT = ACTIONS.index("segment_unmap")
_PROTOCOL = 3  # protocol 4 without framing
_NO_SEGMENT = -1


def write(recording: RecordingData, path: Path, *, overwrite: bool = False) -> Path:
    """Write a recording atomically as a torch memory snapshot; return its path.

    The pickle, of protocol 4, opens in torch's ``_memory_viz.py`` and in its viewer. `gpuviz.load`
    returns every event, without what torch's format cannot represent: fractions of a microsecond;
    times of initial events; threads; the text of source lines; the kind, parent and thread of
    ranges; names, kinds and lifetimes of streams and devices; GPU activities, CUDA calls,
    synchronizations and samples of device memory.

    torch's readers ignore the keys added here: ``block_size`` of an event whose block size differs
    from torch's rounding, ``pool_is_large`` of an event of another allocator, ``requested_size`` of
    ``oom``, the actions ``record_stream``, ``empty_cache`` and ``memory_limit``, ``synthetic`` on
    segments created for blocks outside all segments, and ``gpuviz`` with fields of the manifest and
    the order of events of several devices.

    Raises:
        RecordingExistsError: ``path`` exists and ``overwrite`` is False.
        OSError: The file cannot be written.
    """
    check_free(path, overwrite=overwrite)
    arguments = SnapshotColumns(recording).arguments()

    def pickle_to(file: BinaryIO) -> None:
        _core.write_torch_snapshot(file.write, **arguments)

    return write_whole(path, pickle_to, overwrite=overwrite)


class SnapshotColumns:
    """Converts a recording to the arguments of `gpuviz._core.write_torch_snapshot`."""

    def __init__(self, recording: RecordingData) -> None:
        self._recording = recording
        self._texts: dict[str, int] = {}
        self._pools: dict[int, int] = {}

    def arguments(self) -> dict[str, Any]:
        """Return all keyword arguments except ``write``."""
        frames, stacks = self._frames(), self._stacks()
        devices, events = self._events()
        segments, blocks = self._memory()
        return {
            "devices": devices,
            "events": events,
            "segments": segments,
            "blocks": blocks,
            "frames": frames,
            "stacks": stacks,
            "texts": list(self._texts),
            "pools": [self._torch_pool(owner) for owner in self._pools],
            "rest": _without_memo(rest(self._recording)),
        }

    def _events(self) -> tuple[list[int], dict[str, Any]]:
        """Return the row count of each device, and the columns of all events, device by device."""
        recording = self._recording
        table = _exported(recording)
        device = table["device"].to_numpy()
        order = np.argsort(device, kind="stable")
        columns = {
            name: np.ascontiguousarray(table[name].to_numpy()[order])
            for name in ("address", "size", "requested_size", "time")
        }
        action = codes(table["action"], ACTIONS)[order]
        if (action < 0).any():
            problem = "an action that this version of gpuviz does not know cannot be exported"
            raise FormatError(recording.path, "table memory_events", problem)
        is_segment = (action >= _FIRST_SEGMENT) & (action <= _LAST_SEGMENT)
        sizes = np.where(is_segment, columns["size"], columns["requested_size"])
        has_block = ~is_segment & (columns["size"] > 0)
        implied = np.maximum(-(-sizes // _BLOCK_UNIT), 1) * _BLOCK_UNIT
        if recording.manifest.allocator == "caching":
            has_block &= (columns["size"] != implied) | (action == _OOM)
        counts = np.bincount(device, minlength=max(recording.devices, default=-1) + 1)
        return counts.tolist(), {
            "action": action,
            "address": columns["address"],
            "size": sizes,
            "block_size": np.where(has_block, columns["size"], 0),
            "stream": self._handles(table["stream"].to_numpy()[order]),
            "time_us": (columns["time"] + recording.manifest.start_unix_ns) // _NS,
            "pool": self._pool_positions(table["pool"].to_numpy()[order]),
            "stack": self._known_stacks(table["stack"].to_numpy()[order]),
            "metadata": self._metadata(table["range"].to_numpy()[order]),
            "kind": self._kinds(table["pool"].to_numpy()[order], action, columns["size"]),
            "needs_segment": self._needs_segment(device[order]),
        }

    def _kinds(self, pools: np.ndarray, actions: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Return small or large where torch's rules would not infer it, else unknown."""
        kinds = (pools % 2).astype("uint8")
        if self._recording.manifest.allocator == "caching":
            kinds[kinds == _core.are_large_by_size(actions, sizes)] = _UNKNOWN_SEGMENT
        return kinds

    def _needs_segment(self, devices: np.ndarray) -> np.ndarray:
        """Return 1 for each event of a device without known segments."""
        table = self._recording.tables["memory_events"]
        action = codes(table["action"], ACTIONS)
        chosen = np.isin(action, [ACTIONS.index("segment_alloc"), ACTIONS.index("segment_map")])
        with_segments = np.unique(table["device"].to_numpy()[chosen])
        return (~np.isin(devices, with_segments)).astype(np.uint8)

    def _memory(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the columns of the segments at the end, and of their blocks.

        Each block outside all segments gets its own segment.
        """
        state = _core.MemoryState()
        state.apply(self._recording.memory_columns)
        segments, blocks = state.segments(), state.blocks()
        outside = blocks["segment"] == _NO_SEGMENT
        known = len(segments["address"])
        kinds = np.where(segments["pool"] % 2, 1, 0)
        columns = {
            name: np.concatenate([segments[name], blocks[name][outside]])
            for name in ("device", "address", "size", "stream", "pool", "stack")
        }
        alone = np.zeros(int(outside.sum()), np.uint8)
        columns["kind"] = np.concatenate([kinds, alone + _UNKNOWN_SEGMENT]).astype(np.uint8)
        columns["is_expandable"] = np.concatenate([segments["is_expandable"], alone])
        homes = np.where(outside, known + np.cumsum(outside) - 1, blocks["segment"])
        order = np.lexsort((columns["address"], columns["device"]))
        columns = {name: column[order] for name, column in columns.items()}
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        columns["blocks"] = np.bincount(place[homes], minlength=len(order)).astype(np.uint64)
        columns["size"] = columns["size"].astype(np.int64)
        columns["pool"] = self._pool_positions(columns["pool"])
        columns["stream"] = self._handles(columns["stream"])
        columns["stack"] = self._known_stacks(columns["stack"])
        self._fill_in_stale_requests(blocks)
        rows = np.lexsort((blocks["address"], place[homes]))
        return columns, {
            "address": blocks["address"][rows],
            "size": blocks["size"][rows].astype(np.int64),
            "requested_size": blocks["requested_size"][rows].astype(np.int64),
            "state": blocks["state"][rows].astype(np.uint8),
            "stack": self._known_stacks(blocks["stack"][rows]),
        }

    def _fill_in_stale_requests(self, blocks: dict[str, Any]) -> None:
        """Set the requested sizes of free blocks to those in the snapshot that was read."""
        extra = self._recording.manifest.extra.get(EXTRA)
        known = extra.get("stale_requests", []) if isinstance(extra, dict) else []
        sizes = {
            (device, address, size): requested
            for device, address, size, requested in known
            if 0 <= requested < 1 << 59
        }
        if not sizes:
            return
        keys = zip(*(blocks[name].tolist() for name in ("device", "address", "size")), strict=True)
        for row, key in enumerate(keys):
            if blocks["state"][row] == 0 and key in sizes:
                blocks["requested_size"][row] = sizes[key]

    def _frames(self) -> dict[str, Any]:
        table = self._recording.tables["frames"]
        texts = {
            name: [self._text(each) for each in table[name].to_pylist()]
            for name in ("name", "filename")
        }
        columns: dict[str, Any] = {name: np.array(ids, np.uint32) for name, ids in texts.items()}
        return columns | {"line": np.ascontiguousarray(table["line"].to_numpy())}

    def _stacks(self) -> dict[str, Any]:
        table = self._recording.tables["stacks"]
        lists: Any = table["frames"].combine_chunks()
        lists = pa.concat_arrays(lists.chunks) if isinstance(lists, pa.ChunkedArray) else lists
        offsets = lists.offsets.to_numpy()
        frame_ids = self._recording.tables["frames"]["id"].to_numpy()
        frames = lists.values.to_numpy()
        return {
            "offsets": np.ascontiguousarray(offsets, np.int32),
            "frames": _positions(frames, frame_ids),
        }

    def _known_stacks(self, ids: np.ndarray) -> np.ndarray:
        return _positions(ids, self._recording.tables["stacks"]["id"].to_numpy())

    def _handles(self, ids: np.ndarray) -> np.ndarray:
        table = self._recording.tables["streams"]
        handles = np.concatenate([np.zeros(1, np.uint64), table["handle"].to_numpy()])
        chosen: np.ndarray = handles[_positions(ids, table["id"].to_numpy())]
        return chosen

    def _metadata(self, ids: np.ndarray) -> np.ndarray:
        """Return the number of the name of each event's range; 0 if there is none."""
        strings = self._recording.tables["strings"].to_pydict()
        names = dict(zip(strings["id"], strings["text"], strict=True))
        table = self._recording.tables["ranges"]
        texts = [self._text(names.get(name, "")) for name in table["name"].to_pylist()]
        rows = _positions(ids, table["id"].to_numpy())
        chosen: np.ndarray = np.array([0, *texts], np.uint32)[rows]
        return chosen

    def _pool_positions(self, pools: np.ndarray) -> np.ndarray:
        owners, inverse = np.unique(pools // 2, return_inverse=True)
        places = [self._pools.setdefault(owner, len(self._pools)) for owner in owners.tolist()]
        return np.array(places, np.uint32)[inverse].astype(np.uint32)

    def _torch_pool(self, owner: int) -> tuple[int, int]:
        """Return torch's id of a pool: its original id, else that of a MemPool."""
        known = self._recording.manifest.extra.get(EXTRA)
        pools = known.get("pools", {}) if isinstance(known, dict) else {}
        match pools.get(str(owner)) if isinstance(pools, dict) else None:
            case [int(first), int(second)]:
                return first, second
        return 0, owner

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts) + 1) if text else 0


def rest(recording: RecordingData) -> dict[str, Any]:
    """Return the parts of a snapshot other than its traces and segments."""
    manifest = recording.manifest
    known = manifest.extra.get(EXTRA)
    settings = known.get("allocator_settings") if isinstance(known, dict) else None
    kept: dict[str, Any] = {name: getattr(manifest, name) for name in _core.kept_manifest_texts()}
    kept |= {"program": list(manifest.program), "start_unix_ns": manifest.start_unix_ns}
    kept["memory_stats"] = {str(device): each for device, each in manifest.memory_stats.items()}
    kept["device_order"] = _device_order(recording)
    return {
        "allocator_settings": settings or _settings(as_unicode(manifest.settings)),
        "external_annotations": _annotations(recording),
        "gpuviz": kept | {"simulated": manifest.simulated},
    }


def _exported(recording: RecordingData) -> pa.Table:
    """Return the rows of ``memory_events`` that a trace contains: not those of initial memory."""
    table = recording.tables["memory_events"]
    first = recording.manifest.initial_events
    limits = codes(table["action"].slice(0, first), ACTIONS) == ACTIONS.index("memory_limit")
    if not limits.any():
        return table.slice(first)
    rows = np.concatenate([np.flatnonzero(limits), np.arange(first, table.num_rows)])
    return table.take(rows)


def _device_order(recording: RecordingData) -> list[int]:
    """Return the devices of successive events and how many each has; empty for one device."""
    device = _exported(recording)["device"].to_numpy()
    starts = np.flatnonzero(np.diff(device, prepend=-1))
    if len(starts) <= 1:
        return []
    counts = np.diff(starts, append=len(device))
    order: list[int] = np.column_stack([device[starts], counts]).ravel().tolist()
    return order


def _settings(text: str) -> dict[str, Any]:
    settings: dict[str, Any] = {"PYTORCH_CUDA_ALLOC_CONF": text}
    try:
        parsed = _core.AllocatorSettings.parse(text)
    except ValueError:
        return settings
    return settings | {
        "max_split_size": parsed.max_split_size,
        "garbage_collection_threshold": parsed.garbage_collection_threshold,
        "expandable_segments": parsed.expandable_segments,
        "roundup_power2_divisions": dict(parsed.roundup_power2_divisions),
    }


def _annotations(recording: RecordingData) -> list[dict[str, Any]]:
    """Return the starts and ends of ranges, ordered by time."""
    strings = recording.tables["strings"].to_pydict()
    names = dict(zip(strings["id"], strings["text"], strict=True))
    device = recording.devices[0] if recording.devices else 0
    moments = []
    for row in recording.tables["ranges"].to_pylist():
        for stage, time in (("START", row["time"]), ("END", row["end"])):
            if time >= 0:
                moments.append((time, stage, names.get(row["name"], "")))
    moments.sort(key=lambda moment: moment[0])
    start = recording.manifest.start_unix_ns
    return [
        {"stage": stage, "name": name, "device": device, "time_us": (time + start) // _NS}
        for time, stage, name in moments
    ]


def _without_memo(values: dict[str, Any]) -> bytes:
    """Return keys and values as pickle opcodes, to be placed inside a dict."""
    pieces = []
    for value in (part for item in values.items() for part in item):
        buffer = io.BytesIO()
        pickler = pickle.Pickler(buffer, _PROTOCOL)
        pickler.fast = True
        pickler.dump(value)
        pieces.append(buffer.getvalue()[2:-1])
    return b"".join(pieces)


def _positions(ids: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the 1-based position of each id in ``known``; 0 if it is absent."""
    return (first_rows(known, ids) + 1).astype("uint32")
