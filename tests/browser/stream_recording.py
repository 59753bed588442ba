"""A recording of a small program on several streams, created without a GPU.

The program processes batches on an upload, a compute and a download stream with double buffering:
copies overlap kernels, events synchronize the streams, ranges and cells mark the steps.
"""

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from gpuviz.data.manifest import Manifest
from gpuviz.data.tables import schemas
from gpuviz.recording import Recording

MIB = 1 << 20
US = 1_000
SEGMENT = 0x7F00_0000_0000
UPLOAD, COMPUTE, DOWNLOAD = 2, 3, 4
CALL_NS = 8 * US
KERNEL = "void smooth<float, 4>(float const*, float*, int)"
SCALE = "cupy_multiply__float32_float_float32"
REDUCE = "void cub::DeviceReduceKernel<Policy, float*, int>(float*, int)"


@dataclass(slots=True)
class Program:
    """Runs operations on a simulated clock, and collects the rows that would be recorded."""

    text: str
    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    host_ns: int = 20 * US
    stream_ns: dict[int, int] = field(default_factory=dict)
    correlation: int = 0
    strings: dict[str, int] = field(default_factory=dict)

    def add(self, table: str, **columns: Any) -> dict[str, Any]:
        self.tables.setdefault(table, []).append(columns)
        return columns

    def name(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings) + 1)

    def call(self, name: str, duration_ns: int = CALL_NS, stack: int = 1) -> int:
        """Record a CUDA call; return its correlation id."""
        self.correlation += 1
        begin, self.host_ns = self.host_ns, self.host_ns + duration_ns
        self.add(
            "api_calls",
            time=begin,
            end=self.host_ns,
            name=self.name(name),
            thread=1,
            correlation=self.correlation,
            stack=stack,
            range=0,
            framework="",
        )
        return self.correlation

    def run(self, stream: int, duration_ns: int, name: str, **columns: Any) -> int:
        """Queue an activity on a stream; return its correlation id."""
        kind = columns.get("kind", "kernel")
        correlation = self.call("cuLaunchKernel" if kind == "kernel" else "cudaMemcpyAsync")
        begin = max(self.host_ns + 4 * US, self.stream_ns.get(stream, 0))
        self.stream_ns[stream] = begin + duration_ns
        plain = {
            "kind": kind,
            "device": 0,
            "context": 1,
            "bytes": 0,
            "copy_kind": "",
            "source": "",
            "destination": "",
            "graph": 0,
            "graph_node": 0,
            "launch": 1 if kind == "kernel" else 0,
        }
        here = {"time": begin, "end": begin + duration_ns, "name": self.name(name)}
        here |= {"stream": stream, "correlation": correlation}
        self.add("activities", **plain | here | columns)
        return correlation

    def touch(self, correlation: int, block: int, mode: str) -> None:
        row = {"correlation": correlation, "block": block, "address": block, "mode": mode}
        self.add("launch_blocks", **row)

    def wait(self, waiting: int, recorded: int, sync_id: int) -> None:
        """Make a stream wait for the work queued on another so far."""
        ready = self.stream_ns.get(recorded, self.host_ns)
        for kind, stream, time in (
            ("event_record", recorded, ready),
            ("stream_wait_event", waiting, self.host_ns),
        ):
            correlation = self.call("cudaEventRecord" if stream == recorded else "cudaStreamWait")
            self.synchronization(kind, stream, (time, time), correlation, sync_id=sync_id)
        self.stream_ns[waiting] = max(self.stream_ns.get(waiting, 0), ready)

    def synchronize(self, stream: int) -> None:
        begin = self.host_ns
        done = max(self.stream_ns.get(stream, 0), begin + CALL_NS)
        correlation = self.call("cudaStreamSynchronize", done - begin, stack=2)
        times = (begin + US, done - US)
        self.synchronization("stream_synchronize", stream, times, correlation)

    def synchronization(
        self, kind: str, stream: int, times: tuple[int, int], correlation: int, *, sync_id: int = 0
    ) -> None:
        self.add(
            "synchronizations",
            time=times[0],
            end=times[1],
            kind=kind,
            device=0,
            context=1,
            stream=stream,
            event=sync_id,
            event_sync_id=sync_id,
            correlation=correlation,
        )

    def memory(self, action: str, address: int, size: int, stack: int = 1) -> None:
        self.host_ns += 2 * US
        self.add(
            "memory_events",
            time=self.host_ns,
            action=action,
            address=address,
            size=size,
            requested_size=0 if action.startswith("segment") else size - 100,
            device=0,
            stream=COMPUTE,
            pool=1,
            stack=stack,
            thread=1,
            range=0,
        )

    def open(self, name: str, kind: str, parent: int = 0) -> dict[str, Any]:
        number = len(self.tables.get("ranges", [])) + 1
        begin = {"id": number, "time": self.host_ns, "end": -1, "name": self.name(name)}
        return self.add("ranges", **begin, kind=kind, thread=1, parent=parent)

    def close(self, opened: dict[str, Any]) -> None:
        self.host_ns += 10 * US
        opened["end"] = self.host_ns


def run_batch(program: Program, number: int, cell: int) -> None:
    """Upload a batch, process it, and download the result."""
    step = program.open(f"batch {number}", "range", cell)
    device_in = SEGMENT + (number % 2) * 32 * MIB
    device_out = device_in + 16 * MIB
    for block in (device_in, device_out):
        program.memory("alloc", block, 16 * MIB, stack=1 + number % 2)
    copy = {"kind": "memcpy", "bytes": 16 * MIB, "source": "pinned", "destination": "device"}
    up = program.run(UPLOAD, 300 * US, "", copy_kind="host_to_device", **copy)
    program.touch(up, device_in, "write")
    program.wait(COMPUTE, UPLOAD, 2 * number + 1)
    for part in range(6):
        kernel = program.run(COMPUTE, (40 + 9 * part) * US, SCALE if part % 2 else KERNEL)
        program.touch(kernel, device_in, "read")
        program.touch(kernel, device_out, "write")
    program.touch(program.run(COMPUTE, 25 * US, REDUCE), device_out, "read")
    program.wait(DOWNLOAD, COMPUTE, 2 * number + 2)
    back = copy | {"source": "device", "destination": "pageable"}
    down = program.run(DOWNLOAD, 340 * US, "", copy_kind="device_to_host", **back)
    program.touch(down, device_out, "read")
    if number % 2:
        program.synchronize(DOWNLOAD)
    for block in (device_in, device_out):
        program.memory("free_requested", block, 16 * MIB)
        program.memory("free_completed", block, 16 * MIB)
    program.close(step)


def make_stream_recording(text: str = "pipeline.py", batches: int = 6) -> Recording:
    """Return the recording; every name and path starts with ``text``."""
    program = Program(text)
    program.memory("segment_alloc", SEGMENT, 80 * MIB, stack=0)
    for number in range(batches):
        if number % 3 == 0:
            cell = program.open(f"In [{number // 3 + 1}]", "cell")
        run_batch(program, number, cell["id"])
        if number % 3 == 2:
            program.run(1, 30 * US, "", kind="memset", bytes=4 * MIB)
            for _ in range(40):
                program.run(1, 2 * US, f"{text} tiny")
            program.run(1, 60 * US, "", kind="memcpy", bytes=2 * MIB, copy_kind="device_to_device")
            program.synchronize(1)
            program.close(cell)
            program.host_ns += 200 * US
    return Recording(_tables(program), _manifest(program))


def _tables(program: Program) -> dict[str, pa.Table]:
    known = schemas()
    rows = program.tables | _dictionaries(program)
    return {name: pa.Table.from_pylist(part, schema=known[name]) for name, part in rows.items()}


def _dictionaries(program: Program) -> dict[str, list[dict[str, Any]]]:
    text = program.text
    line = {"cell": 0, "filename": text}
    streams = {1: "default stream", UPLOAD: "upload", COMPUTE: f"compute {text}", DOWNLOAD: ""}
    plain = {"device": 0, "kind": "non_blocking", "priority": 0, "created": 0, "destroyed": -1}
    launch = {f"{part}_{axis}": 1 for part in ("grid", "block") for axis in "xyz"}
    launch |= {"grid_x": 4096, "block_x": 256, "registers": 32}
    return {
        "devices": [{"id": 0, "name": "GPU", "total_memory": 80 << 30, "kind": "simulated"}],
        "streams": [
            plain | {"id": number, "name": name, "handle": 0x55D0_C8A0_0000 + number}
            for number, name in streams.items()
        ],
        "pools": [{"id": 1, "owner": 0, "segment_type": "large"}],
        "stacks": [{"id": 1, "frames": [1, 2]}, {"id": 2, "frames": [2]}],
        "frames": [
            line | {"id": 1, "name": "work", "line": 12, "source": "y = smooth(x)"},
            line | {"id": 2, "name": "main", "line": 34, "source": "stream.synchronize()"},
        ],
        "threads": [{"id": 1, "name": "MainThread"}],
        "strings": [{"id": number, "text": name} for name, number in program.strings.items()],
        "launch_configurations": [
            launch | {"id": 1, "static_shared_memory": 1024, "dynamic_shared_memory": 0},
        ],
    }


def _manifest(program: Program) -> Manifest:
    return Manifest(
        created="2026-11-20T14:03:22+00:00",
        duration_ns=program.host_ns + 100 * US,
        gpuviz_version="0.1.0",
        program=(program.text,),
        settings="",
        events=len(program.tables["memory_events"]) - 1,
        initial_events=1,
        own_cost_ns=41_000,
        simulated=True,
    )
