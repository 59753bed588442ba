"""``python -m tests.gpu.memcheck_litmus`` compares verdicts on litmus programs with memcheck's.

Each program that consists of kernels, events, waits, allocations and frees runs with CuPy under
``compute-sanitizer --tool memcheck``, with its memory announced. memcheck knows which blocks are
allocated when a kernel runs, and no order between streams. So it judges the programs in which a
kernel is launched with a block that was freed before, and those that have no hazard. The others are
listed as not judged. Exits with 1 if it disagrees.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.litmus.program import Program, programs, read

ROOT = Path(__file__).parents[2]
FILE = ROOT / "tests" / "litmus" / "data" / "litmus.json.xz"
TOOLS = ("compute-sanitizer", "/usr/local/cuda/bin/compute-sanitizer")
KINDS = {
    "launch",
    "event_record",
    "stream_wait_event",
    "event_synchronize",
    "stream_synchronize",
    "device_synchronize",
    "malloc",
    "free",
    "record_stream",
}
_S = {"op": "malloc", "block": "A", "bytes": 4000, "stream": "s", "id": "m"}
_FREE = {"op": "free", "id": "f", "block": "A"}
_READ = {"op": "launch", "id": "r", "stream": "s", "reads": ["A"]}
_WRITE = {"op": "launch", "id": "w", "stream": "s", "writes": ["A"]}
_BEFORE = {"op": "malloc", "block": "X", "bytes": 4000, "stream": "s", "id": "x"}
_AFTER = {"op": "malloc", "block": "Y", "bytes": 4000, "stream": "s", "id": "y"}


def _case(name: str, *ops: dict[str, Any], has_hazard: bool = False) -> dict[str, Any]:
    hazard = {"kind": "use_after_free", "first": "f", "second": "any", "block": "A"}
    verdict = [hazard | {"tier": "certain", "bytes": []}] if has_hazard else []
    return {"name": name, "streams": {"s": "blocking"}, "ops": list(ops), "hazards": verdict}


# A launch with a freed block is none of the shared programs, since arrays keep their blocks.
OWN = {
    "format": 1,
    "programs": [
        _case("read_before_free", _S, _WRITE, _READ, _FREE),
        _case("read_after_free", _S, _WRITE, _FREE, _READ, has_hazard=True),
        _case("write_after_free", _S, _FREE, _WRITE, has_hazard=True),
        _case("neighbours_live", _BEFORE, _S, _AFTER, _WRITE, _FREE, _READ, has_hazard=True),
        _case("neighbour_merged", _BEFORE, _S, _FREE, {**_FREE, "block": "X", "id": "g"}, _READ,
              has_hazard=True),
        _case("allocated_again", _S, _WRITE, _FREE, {**_AFTER, "reuses": "A"},
              {**_READ, "reads": ["Y"]}),
        _case("cut_from_a_freed_block", {**_S, "bytes": 4096}, _FREE,
              {**_AFTER, "bytes": 512, "reuses": "A"}, {**_WRITE, "writes": ["Y"]}),
        _case("behind_the_new_block", {**_S, "bytes": 4096}, _FREE,
              {**_AFTER, "bytes": 512, "reuses": "A"}, {**_WRITE, "writes": [["A", 1024, 2048]]},
              has_hazard=True),
        _case("freed_twice_over", _S, _FREE, {**_S, "block": "B", "id": "b"},
              {**_FREE, "block": "B", "id": "g"}, {**_READ, "reads": ["A"]}, has_hazard=True),
    ],
}  # fmt: skip


def sanitizer() -> str | None:
    """Return the path of compute-sanitizer, or None."""
    return next(filter(None, map(shutil.which, TOOLS)), None)


def candidates() -> list[Program]:
    """Return the programs that consist of what this runner knows."""
    return [each for each in (*programs(OWN), *read(FILE)) if is_known(each)]


def is_known(program: Program) -> bool:
    """Whether every operation of a program can be done here."""
    return (
        all(each.op in KINDS and each.thread == 0 for each in program.operations)
        and not program.graphs
        and not any(pinned for _, pinned in program.blocks.values())
        and "per_thread" not in program.streams.values()
        and not any(
            each.op == "malloc" and (each.pool or each.memory) for each in program.operations
        )
        and not any(each.op == "launch" and each.programmatic for each in program.operations)
    )


def launches_with_freed_blocks(program: Program) -> bool:
    """Whether a launch was given a block that was free when it was launched."""
    freed: set[str] = set()
    for each in program.operations:
        if each.op == "free":
            freed.add(each.block)
        elif each.op == "launch" and any(place.block in freed for _, place in each.accesses()):
            return True
    return False


def kernel_of(program: Program) -> str:
    return f"litmus_{program.name}"


_CODE = r"""
extern "C" __global__ void %s(char* p, long long n, int writes) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) { if (writes) p[i] = 1; else if (((volatile char*)p)[i] == 77) __trap(); }
}
"""


class _Run:
    """One run of a program, with blocks of gpuviz's allocator by address."""

    def __init__(self, program: Program, module: Any) -> None:
        import cupy as cp

        self.cp = cp
        self.program = program
        self.kernel = module.get_function(kernel_of(program))
        self.streams: dict[str, Any] = {"legacy": cp.cuda.Stream.null}
        for name, kind in program.streams.items():
            self.streams[name] = cp.cuda.Stream(non_blocking=kind == "non_blocking")
        self.events: dict[str, Any] = {}
        self.blocks: dict[str, tuple[int, int]] = {}
        self.live: dict[str, Any] = {}

    def allocate(self, name: str, size: int, stream: str) -> None:
        with self.streams[stream]:
            self.live[name] = self.cp.empty(size, self.cp.uint8)
        self.blocks[name] = (self.live[name].data.ptr, size)

    def run(self) -> bool:
        """Run; False if a block did not reuse the memory that it should."""
        for name, (size, _) in self.program.blocks.items():
            self.allocate(name, size, "legacy")
        reuses_all = True
        for each in self.program.operations:
            reuses_all &= self.step(each)
        self.cp.cuda.Device().synchronize()
        self.live.clear()
        return reuses_all

    def step(self, each: Any) -> bool:
        if each.op == "launch":
            self.launch(each)
        elif each.op == "malloc":
            self.allocate(each.block, each.bytes, each.stream or "legacy")
            if each.reuses:
                start = self.blocks[each.reuses][0] + (each.offset or 0)
                return bool(self.blocks[each.block][0] == start)
        elif each.op == "free":
            del self.live[each.block]
        else:
            self.order(each)
        return True

    def launch(self, each: Any) -> None:
        for mode, place in each.accesses():
            address, size = self.blocks[place.block]
            stop = size if place.stop in (None, -1) else place.stop
            count = stop - place.start
            start, writes = self.cp.uint64(address + place.start), self.cp.int32(mode != "read")
            with self.streams[each.stream]:
                grid = (-(-count // 256),)
                self.kernel(grid, (256,), (start, self.cp.int64(count), writes))

    def order(self, each: Any) -> None:
        import gpuviz

        if each.op == "event_record":
            event = self.events.setdefault(each.event, self.cp.cuda.Event(disable_timing=True))
            event.record(self.streams[each.stream])
        elif each.op == "stream_wait_event" and each.event in self.events:
            self.streams[each.stream].wait_event(self.events[each.event])
        elif each.op == "event_synchronize" and each.event in self.events:
            self.events[each.event].synchronize()
        elif each.op == "stream_synchronize":
            self.streams[each.stream].synchronize()
        elif each.op == "device_synchronize":
            self.cp.cuda.Device().synchronize()
        elif each.op == "record_stream":
            gpuviz.record_stream(self.live[each.block], self.streams[each.stream])


def run_all() -> None:
    """Run each program in this process, and print those whose memory was not reused as meant."""
    import cupy as cp

    import gpuviz

    cp.cuda.set_allocator(gpuviz.malloc)
    found = candidates()
    module = cp.RawModule(code="".join(_CODE % kernel_of(each) for each in found))
    for each in found:
        if not _Run(each, module).run():
            print(f"NOT REUSED {each.name}")
    print("FINISHED", flush=True)


def reported(*, announced: bool = True) -> tuple[set[str], str]:
    """Return the kernels in which memcheck reports an access, and its whole output."""
    command = [sanitizer(), "--tool", "memcheck", "--destroy-on-device-error", "kernel"]
    command += ["--print-limit", "10000", "--show-backtrace", "no"]
    command += [sys.executable, "-m", "tests.gpu.memcheck_litmus", "run"]
    ran = subprocess.run(
        list(map(str, command)),
        cwd=ROOT,
        env=os.environ | {"GPUVIZ_NVTX_MEMORY": str(int(announced))},
        capture_output=True,
        text=True,
        check=False,
    )
    text = ran.stdout + ran.stderr
    kernels = re.findall(r"Invalid __global__ \w+ of size.*\n.*?at (?:.*:)?(\w+)", text)
    return set(kernels), text


def verdicts() -> tuple[list[tuple[str, str]], str]:
    """Return each program with what memcheck says to its verdict, and memcheck's output."""
    kernels, text = reported()
    rows = []
    for each in candidates():
        is_reported = kernel_of(each) in kernels
        if f"NOT REUSED {each.name}\n" in text:
            verdict = "not judged: the allocator placed a block elsewhere"
        elif each.hazards and not launches_with_freed_blocks(each):
            verdict = "not judged: every block was allocated when its kernels were launched"
            verdict = "DISAGREES: reported" if is_reported else verdict
        elif is_reported == bool(each.hazards):
            verdict = f"agrees: {'reported' if is_reported else 'silent'}"
        else:
            verdict = f"DISAGREES: {'reported' if is_reported else 'silent'}"
        rows.append((each.name, verdict))
    return rows, text


def main() -> int:
    """Print the verdicts, and return the exit status."""
    rows, text = verdicts()
    if "FINISHED" not in text:
        print(text[-4000:])
        return 1
    for name, verdict in rows:
        print(f"{name:34} {verdict}")
    kinds = [verdict.partition(":")[0] for _, verdict in rows]
    print({kind: kinds.count(kind) for kind in sorted(set(kinds))})
    return 1 if "DISAGREES" in kinds else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["run"]:
        run_all()
    else:
        sys.exit(main())
