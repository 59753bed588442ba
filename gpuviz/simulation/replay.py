"""`gpuviz.replay`: repeats the memory operations of a recording on a simulated device."""

import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa

from gpuviz import _core
from gpuviz.analysis.allocator_settings import CUPY
from gpuviz.analysis.described import check_described
from gpuviz.analysis.device_replay import DeviceReplay
from gpuviz.analysis.torch_alone import by_torch_alone
from gpuviz.data.manifest import Manifest
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import ACTIONS, schemas
from gpuviz.quantities import format_bytes
from gpuviz.recorder.environment import environment_fields, iso_time
from gpuviz.recorder.options import DEFAULT_MAX_EVENTS
from gpuviz.recorder.recorder import Recorder
from gpuviz.recorder.row_batches import batch, pool_rows
from gpuviz.recording import Recording
from gpuviz.simulation.replayed_activities import (
    AT_OTHER_SPEED,
    Asked,
    has_activities,
    with_activities,
    with_aligned_activities,
)

CUPY_POOL = "cupy.cuda.memory.MemoryPool"


def replay(
    recording: RecordingData,
    *,
    speed: float = 0,
    settings: str | None = None,
    capacity: int | None = None,
) -> Recording:
    """Repeat the memory operations of a recording on a simulated device; return the new recording.

    Sizes, streams, call stacks, threads and times are those of ``recording``; addresses and
    segments are the allocator's own, which are the recorded ones as long as it does the same. GPU
    activities and ranges are kept, except at a ``speed`` other than 0 and 1.

    A block that was used by another stream is reusable after the time at which its free completed
    in ``recording``. Recordings of torch's allocator lack calls of ``empty_cache``: memory that was
    released without need counts as one, and a note states how many there were.

    Args:
        recording: The recording whose allocations, frees, stream uses, memory limits and calls of
            empty_cache are repeated.
        speed: 0 does not wait. At 1 the operations are executed at the recorded times, at 2 twice
            as fast, so that live views can follow.
        settings: As for `gpuviz.set_allocator_settings`; by default the recording's own, without
            those that gpuviz does not know. ``cupy`` is CuPy's own memory pool.
        capacity: Memory of each device in bytes; by default that of the recorded device. If this is
            unknown, memory is unlimited, or limited to what failed requests imply, and a note
            states it.

    Raises:
        ValueError: ``speed`` is negative, ``capacity`` is less than 1, or ``settings`` has an
            unknown key or a bad value.
        FormatError: The recording lacks the description of a device or stream that its events use.
    """
    if not speed >= 0:  # also true for NaN
        raise ValueError(f"speed must be at least 0, got {speed}")
    if capacity is not None and capacity < 1:
        raise ValueError(f"capacity must be at least 1 byte, got {capacity}")
    program = _Program(recording, settings, capacity)
    if speed == 0:
        return _replay_at_once(program)
    recorder = Recorder(_ReplaySource(program), None, stacks=False, max_events=DEFAULT_MAX_EVENTS)
    with recorder:
        program.run(speed)
    return _with_activities_at(recorder.recording, program, speed)


class _Program:
    """The operations of a recording, with an allocator and a simulated device per device.

    Attributes:
        allocator: As in the manifest of the new recording.
        allocator_name: As in the manifest of the new recording.
    """

    def __init__(
        self, recording: RecordingData, settings: str | None, capacity: int | None
    ) -> None:
        self.recording = recording = by_torch_alone(recording)
        own = recording.manifest.settings
        self.settings = own if settings is None else settings
        self.is_cupy = settings == CUPY
        self.allocator = "observe" if self.is_cupy else "caching"
        self.allocator_name = CUPY_POOL if self.is_cupy else "gpuviz caching allocator"
        check_described(recording, "device", "stream")
        self.devices = {
            row["id"]: _LoggedReplay(recording, row["id"], settings, capacity)
            for row in recording.tables["devices"].to_pylist()
        }

    def run(self, speed: float) -> None:
        """Execute the operations of all devices concurrently, and until an exception occurs."""
        replayers = [one.replayer for one in self.devices.values()]
        with ThreadPoolExecutor(max_workers=max(1, len(replayers))) as threads:
            running = [threads.submit(replayer.run, speed) for replayer in replayers]
            try:
                for each in running:
                    each.result()
            except BaseException:
                for replayer in replayers:
                    replayer.stop()
                raise

    def device_rows(self) -> list[dict[str, Any]]:
        """Return the rows of ``devices``; the memory of an unlimited device is 0, unknown."""
        return [
            row | {"kind": "simulated", "total_memory": self.devices[row["id"]].capacity}
            for row in self.recording.tables["devices"].to_pylist()
        ]

    def manifest_fields(self) -> Mapping[str, Any]:
        """Return the settings, the allocators' statistics, and what was replayed."""
        origin = self.recording.manifest
        return {
            "settings": "" if self.is_cupy else self.settings,
            "memory_stats": {
                device: one.allocator.memory_stats() for device, one in self.devices.items()
            },
            "simulated": True,
            "label": _label(self.recording),
            "program": origin.program,
            "cupy": origin.cupy,
            "libraries": origin.libraries,
            "driver": origin.driver,
            "runtime": origin.runtime,
        }

    def notes(self) -> Iterator[str]:
        """Yield what was inferred, and what is unknown."""
        for device, one in self.devices.items():
            place = f" of device {device}" if len(self.devices) > 1 else ""
            limit = one.operations.inferred_limit
            if limit is not None:
                yield (
                    f"The capacity{place} is unknown. Memory is limited to {format_bytes(limit)}, "
                    "which follows from the requests that failed."
                )
            elif one.capacity == 0:
                yield f"The capacity{place} is unknown: the replay has unlimited memory."
            if one.operations.inferred_calls:
                yield (
                    f"{one.operations.inferred_calls} calls of empty_cache{place} were inferred "
                    "from memory that was released although no request needed it."
                )


def _label(recording: RecordingData) -> str:
    names = sorted({row["name"] for row in recording.tables["devices"].to_pylist()} - {""})
    if names:
        return f"Replayed on the simulated device from a recording made on {', '.join(names)}"
    allocator = recording.manifest.allocator_name
    origin = f" from a recording of {allocator}" if allocator else ""
    return f"Replayed on the simulated device{origin}"


class _LoggedReplay(DeviceReplay):
    """A replay of one device whose events are kept."""

    def __init__(
        self,
        recording: RecordingData,
        device: int,
        settings: str | None,
        capacity: int | None,
    ) -> None:
        super().__init__(recording, device, settings, capacity)
        program = self.operations.program
        self.log = _core.ReplayLog(self.events, self.operations)
        self.replayer = _core.Replayer(program, self.device, self.allocator, self.log)


def _asked(replayed: DeviceReplay) -> Asked:
    """Return the rows of the recording that the operations on blocks repeat."""
    names = ("malloc", "free", "free_pending", "record_stream")
    program = replayed.operations.program
    operations = program.operation
    of_block = np.isin(operations, [_core.Operation[name].value for name in names])
    return Asked(
        rows=program.origin[of_block],
        blocks=program.id[of_block].astype(np.int64),
        allocates=operations[of_block] == _core.Operation.malloc.value,
    )


def _replay_at_once(program: _Program) -> Recording:
    """Return the replay on the clock of the recording."""
    for one in program.devices.values():
        one.allocator.attach(one.log)
    program.run(0)
    events = _joined({device: one.log.take() for device, one in program.devices.items()})
    recording = program.recording
    kept = ("frames", "stacks", "threads", "streams")
    rows = {
        "devices": program.device_rows(),
        "pools": pool_rows(_distinct(events["pool"]), memory=_ReplaySource.memory),
    }
    tables = {name: recording.tables[name] for name in kept} | {
        name: pa.Table.from_pylist(each, schemas()[name]) for name, each in rows.items()
    }
    tables["memory_events"] = pa.Table.from_batches([batch("memory_events", events)])
    tables["device_memory"] = _device_memory(events)
    start_unix_ns = time.time_ns()
    manifest = Manifest(
        **environment_fields()
        | dict(program.manifest_fields())
        | {
            "created": iso_time(start_unix_ns),
            "start_unix_ns": start_unix_ns,
            "duration_ns": recording.manifest.duration_ns,
            "allocator": program.allocator,
            "allocator_name": program.allocator_name,
            "events": len(events["time"]),
            "notes": tuple(program.notes()),
        }
    )
    return with_aligned_activities(Recording(tables, manifest), recording, events["origin"])


def _joined(parts: dict[int, dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Return the events of all devices, ordered by time."""
    names = ("origin", *(field.name for field in schemas()["memory_events"]))
    for device, part in parts.items():
        part["device"] = np.full(len(part["time"]), device, np.int16)
    if len(parts) == 1:
        return next(iter(parts.values()))
    if not parts:
        return {name: np.zeros(0, np.int64) for name in names}
    joined = {name: np.concatenate([part[name] for part in parts.values()]) for name in names}
    order = np.argsort(joined["time"], kind="stable")
    return {name: values[order] for name, values in joined.items()}


def _distinct(values: np.ndarray) -> list[int]:
    return [int(each) for each in np.unique(values)]


def _device_memory(events: Mapping[str, np.ndarray]) -> pa.Table:
    """Return the used memory of each device after each change."""
    added = [ACTIONS.index(name) for name in ("segment_alloc", "segment_map")]
    removed = [ACTIONS.index(name) for name in ("segment_free", "segment_unmap")]
    rows = np.flatnonzero(np.isin(events["action"], [*added, *removed]))
    change = np.where(np.isin(events["action"][rows], added), 1, -1) * events["size"][rows]
    device = events["device"][rows]
    used = np.zeros(len(rows), np.int64)
    for each in np.unique(device):
        used[device == each] = np.cumsum(change[device == each])
    columns = {"time": events["time"][rows], "device": device, "used": used}
    return pa.table(columns, schema=schemas()["device_memory"])


def _with_activities_at(replayed: Recording, program: _Program, speed: float) -> Recording:
    """Return a paced replay with the recording's activities, or a note if they do not match."""
    if speed == 1:
        asked = {device: _asked(one) for device, one in program.devices.items()}
        return with_activities(replayed, program.recording, asked)
    if has_activities(program.recording):
        return replayed.with_note(AT_OTHER_SPEED)
    return replayed


class _ReplaySource:
    """The allocators of a paced replay as the source of a recording.

    See `gpuviz.recorder.source.Source`.
    """

    framework = ""
    memory = "device"

    def __init__(self, program: _Program) -> None:
        self._program = program
        self.allocator = program.allocator
        self.allocator_name = program.allocator_name

    def tables(self) -> dict[str, pa.Table]:
        """Return the recording's own stacks, frames and threads."""
        recording = self._program.recording
        return {name: recording.tables[name] for name in ("frames", "stacks", "threads")}

    def describe(self, session: _core.Session) -> None:
        """Push nothing: the allocators are new."""

    def begin(self, session: _core.Session) -> None:
        """Start recording the allocators."""
        for device, one in self._program.devices.items():
            one.allocator.attach(session.sink(device))

    def devices(self, _active: Iterable[int], /) -> list[dict[str, Any]]:
        """Return the simulated devices."""
        return self._program.device_rows()

    def sample(self) -> list[tuple[int, int]]:
        """Return the used bytes of the simulated devices."""
        return [(device, one.device.used) for device, one in self._program.devices.items()]

    def now_ns(self) -> int | None:
        """Return None: the events are on the session's clock."""
        return None

    def end(self) -> tuple[str, ...]:
        """Detach the allocators."""
        for one in self._program.devices.values():
            one.allocator.detach()
        return tuple(self._program.notes())

    def manifest_fields(self) -> Mapping[str, Any]:
        """Return the fields of the program."""
        return self._program.manifest_fields()
