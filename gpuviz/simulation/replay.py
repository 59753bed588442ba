"""`gpuviz.replay`: repeats the memory operations of a recording on a simulated device."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gpuviz import _core
from gpuviz.analysis.notes import noted
from gpuviz.recorder.recorder import DEFAULT_MAX_EVENTS, Recorder
from gpuviz.recording.recording import Recording
from gpuviz.simulation.replayed_activities import (
    AT_OTHER_SPEED,
    Asked,
    has_activities,
    with_activities,
)

if TYPE_CHECKING:
    import pyarrow as pa


def replay(recording: Recording, *, speed: float = 1.0, settings: str | None = None) -> Recording:
    """Repeat the memory operations of a recording on a simulated device; return the new recording.

    Sizes, streams, call stacks, threads and, at ``speed`` 1, times are those of ``recording``;
    addresses and segments are the allocator's own. At ``speed`` 1 the recorded GPU activities and
    ranges are kept.

    Args:
        recording: The recording whose allocations, frees, stream uses and calls of empty_cache are
            repeated.
        speed: 2 halves the pauses between operations; 0 removes them.
        settings: As for `gpuviz.set_allocator_settings`; the recording's own by default.

    Raises:
        ValueError: ``speed`` is negative, ``settings`` has an unknown key or a bad value, or the
            recording lacks the description of a device or stream that its events use.
    """
    if not speed >= 0:  # also true for NaN
        raise ValueError(f"speed must be at least 0, got {speed}")
    source = _ReplaySource(recording, settings)
    recorder = Recorder(source, None, stacks=False, max_events=DEFAULT_MAX_EVENTS)
    with recorder:
        source.run(speed)
    return source.with_activities(recorder.recording, speed)


class _ReplaySource:
    """The operations of a recording, with an allocator and a simulated device per device."""

    allocator = "caching"
    allocator_name = "gpuviz caching allocator"
    framework = ""
    memory = "device"

    def __init__(self, recording: Recording, settings: str | None) -> None:
        self._recording = recording
        self._settings = recording.manifest.settings if settings is None else settings
        parsed = _core.AllocatorSettings.parse(self._settings)
        self._devices = recording.table("devices").to_pylist()
        _check_references(recording)
        self._replays = {row["id"]: _DeviceReplay(recording, row, parsed) for row in self._devices}
        self._names = sorted({row["name"] for row in self._devices})

    def tables(self) -> "dict[str, pa.Table]":
        """Return the recording's own stacks, frames and threads."""
        return {name: self._recording.table(name) for name in ("frames", "stacks", "threads")}

    def describe(self, session: _core.Session) -> None:
        """Push nothing: the allocators are new."""

    def begin(self, session: _core.Session) -> None:
        """Start recording the allocators."""
        for device, one in self._replays.items():
            one.allocator.attach(session.sink(device))

    def run(self, speed: float) -> None:
        """Execute the operations of all devices concurrently."""
        replayers = [one.replayer for one in self._replays.values()]
        with ThreadPoolExecutor(max_workers=max(1, len(replayers))) as threads:
            running = [threads.submit(replayer.run, speed) for replayer in replayers]
            try:
                for each in running:
                    each.result()
            except BaseException:
                for replayer in replayers:
                    replayer.stop()
                raise

    def with_activities(self, replayed: Recording, speed: float) -> Recording:
        """Return the replay with the recording's activities, or a note if they do not match."""
        if speed == 1:
            asked = {device: one.asked for device, one in self._replays.items()}
            return with_activities(replayed, self._recording, asked)
        if has_activities(self._recording):
            return noted(replayed, AT_OTHER_SPEED)
        return replayed

    def devices(self) -> list[dict[str, Any]]:
        """Return the simulated devices."""
        return [row | {"kind": "simulated"} for row in self._devices]

    def sample(self) -> list[tuple[int, int]]:
        """Return the used bytes of the simulated devices."""
        return [(device, one.device.used) for device, one in self._replays.items()]

    def now_ns(self) -> int | None:
        """Return None: the events are on the session's clock."""
        return None

    def end(self) -> tuple[str, ...]:
        """Detach the allocators."""
        for one in self._replays.values():
            one.allocator.detach()
        return ()

    def manifest_fields(self) -> Mapping[str, Any]:
        """Return the settings, the allocators' statistics, and what was replayed."""
        origin = self._recording.manifest
        return {
            "settings": self._settings,
            "memory_stats": {
                device: one.allocator.memory_stats() for device, one in self._replays.items()
            },
            "simulated": True,
            "label": "Replayed on the simulated device from a recording made on "
            + (", ".join(self._names) or "no device"),
            "program": origin.program,
            "cupy": origin.cupy,
            "driver": origin.driver,
            "runtime": origin.runtime,
        }


def _check_references(recording: Recording) -> None:
    for column, table, needed in (
        ("device", "devices", "total_memory"),
        ("stream", "streams", "handle"),
    ):
        used = set(recording.table("memory_events")[column].unique().to_pylist())
        known = set(recording.table(table)["id"].to_pylist())
        unknown = sorted(used - known - ({0} if column == "stream" else set()))
        if unknown:
            raise ValueError(
                f"{column} {unknown[0]} has events, but the table {table} has no row for it; "
                f"expected one with its {needed}, which the replay needs",
            )


class _DeviceReplay:
    """The operations of one device, with its allocator and simulated device."""

    def __init__(
        self,
        recording: Recording,
        row: Mapping[str, Any],
        settings: _core.AllocatorSettings,
    ) -> None:
        self.device = _core.SimulatedDevice(row["total_memory"], ordinal=row["id"])
        self.allocator = _core.CachingAllocator(self.device, settings)
        program = operations(recording, row["id"])
        self.asked = program.asked()
        self.replayer = _core.Replayer(program.finish(), self.device, self.allocator)


@dataclass(slots=True)
class _Operations:
    """The columns of an operation stream under construction."""

    operation: list[int] = field(default_factory=list)
    id: list[int] = field(default_factory=list)
    argument: list[int] = field(default_factory=list)
    stream: list[int] = field(default_factory=list)
    stack: list[int] = field(default_factory=list)
    thread: list[int] = field(default_factory=list)
    time_ns: list[int] = field(default_factory=list)
    row: list[int] = field(default_factory=list)

    def add(
        self, name: str, row: Mapping[str, Any], block: int, argument: int, stream: int
    ) -> None:
        self.operation.append(_core.Operation[name].value)
        self.id.append(block)
        self.argument.append(argument)
        self.stream.append(stream)
        self.stack.append(row["stack"])
        self.thread.append(row["thread"])
        self.time_ns.append(row["time"])
        self.row.append(row["row"])

    def finish(self) -> _core.ReplayProgram:
        import numpy as np

        first = self.time_ns[0] if self.time_ns else 0
        # Events are in the order in which they happened, even if their times are not.
        time_ns = np.maximum.accumulate(np.array(self.time_ns, np.int64)) - first
        return _core.ReplayProgram(
            operation=np.array(self.operation, np.uint8),
            id=np.array(self.id, np.uint32),
            argument=np.array(self.argument, np.uint64),
            stream=np.array(self.stream, np.uint64),
            stack=np.array(self.stack, np.uint32),
            thread=np.array(self.thread, np.uint32),
            time_ns=time_ns,
        )

    def asked(self) -> Asked:
        """Return the rows of the recording that the operations on blocks repeat."""
        import numpy as np

        made = np.array(self.operation, np.uint8)
        others = ("begin_pool", "end_pool", "empty_cache")
        of_block = ~np.isin(made, [_core.Operation[name].value for name in others])
        return Asked(
            rows=np.array(self.row, np.int64)[of_block],
            blocks=np.array(self.id, np.int64)[of_block],
            allocates=made[of_block] == _core.Operation.malloc.value,
        )


def operations(recording: Recording, device: int) -> _Operations:
    """Return the program's operations on one device: allocations, frees, stream uses, empty_cache.

    A failed request is followed by a free, in case it succeeds in the replay.
    """
    handles = {0: 0} | {row["id"]: row["handle"] for row in recording.table("streams").to_pylist()}
    events = recording.table("memory_events").select(
        [
            "time",
            "action",
            "address",
            "requested_size",
            "device",
            "stream",
            "pool",
            "stack",
            "thread",
        ],
    )
    made = _Operations()
    live: dict[int, int] = {}
    blocks = 0
    rows_before = 0
    for batch in events.to_batches():
        for position, row in enumerate(batch.to_pylist(), rows_before):
            if row["device"] != device:
                continue
            row["row"] = position
            action, address, stream = row["action"], row["address"], handles[row["stream"]]
            if action in {"alloc", "oom"}:
                _add_allocation(made, row, blocks, stream)
                if action == "oom":
                    made.add("free", row, blocks, 0, stream)
                else:
                    live[address] = blocks
                blocks += 1
            elif action == "free_requested" and address in live:
                made.add("free", row, live.pop(address), 0, stream)
            elif action == "record_stream" and address in live:
                made.add("record_stream", row, live[address], 0, stream)
            elif action == "empty_cache":
                made.add("empty_cache", row, 0, 0, 0)
        rows_before += batch.num_rows
    return made


def _add_allocation(made: _Operations, row: Mapping[str, Any], block: int, stream: int) -> None:
    private = row["pool"] // 2
    if private:
        made.add("begin_pool", row, 0, private - 1, stream)
    made.add("malloc", row, block, row["requested_size"], stream)
    if private:
        made.add("end_pool", row, 0, private - 1, stream)
