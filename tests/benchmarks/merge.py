"""Cost of merging eight processes with many rows, and of merging and showing many with few."""

import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import gpuviz
from gpuviz.recording import Recording
from tests.benchmarks import recording
from tests.benchmarks.recording import Row

PROCESSES = 8
# Of few rows: seconds by number of processes.
LIMITS_S = {50: 1, 100: 2, 300: 4, 1000: 10}
REPORT_LIMITS_S = {50: 3, 100: 5, 200: 10, 400: 20}
# In a process of its own, whose peak is that of the merge.
MERGE = """
import json, resource, sys, time
import gpuviz
start, cpu_start = time.perf_counter(), time.process_time()
merged = gpuviz.merge(sys.argv[1])
seconds, cpu_s = time.perf_counter() - start, time.process_time() - cpu_start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert len(merged.tables["processes"]) == int(sys.argv[2])
print(json.dumps([seconds, cpu_s, peak / 2**20]))
"""
REPORT = """
import json, sys, time
from pathlib import Path
import gpuviz
merged = gpuviz.merge(sys.argv[1])
start, cpu_start = time.perf_counter(), time.process_time()
merged.report(Path(sys.argv[1], "merged.html"))
print(json.dumps([time.perf_counter() - start, time.process_time() - cpu_start]))
"""


def rows() -> list[Row]:
    """Measure everything; return the lines of the table."""
    seconds, _, peak_gib = _of_copies(MERGE, recording.recorded(), PROCESSES)
    text = f"{seconds:.1f} s, {peak_gib:.1f} GiB"
    is_met = seconds <= 5 and peak_gib <= 3
    found = [("merge of 8 files of a million events", "5 s, 3 GiB", text, is_met)]
    one = _small()
    for count, limit_s in LIMITS_S.items():
        seconds, cpu_s, _ = _of_copies(MERGE, one, count)
        text = f"{seconds:.1f} s, {cpu_s:.1f} s of CPU"
        what = f"merge of {count:,} files of some rows"
        found.append((what, f"{limit_s} s", text, seconds <= limit_s))
    for count, limit_s in REPORT_LIMITS_S.items():
        seconds, cpu_s = _of_copies(REPORT, one, count)
        text = f"{seconds:.1f} s, {cpu_s:.1f} s of CPU"
        what = f"report of {count:,} merged processes"
        found.append((what, f"{limit_s} s", text, seconds <= limit_s))
    return found


def _of_copies(program: str, one: Recording, count: int) -> list[float]:
    """Return what a program prints that gets the folder and number of copies of a recording."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            facts = {"process_id": number + 1, "boot_id": "one", "host": "node"}
            times = {"start_monotonic_ns": 10**9 + number * 12_345, "start_unix_ns": 10**18}
            launch = {"rank": number, "ranks": count}
            manifest = replace(one.manifest, launch=launch, **facts, **times)
            Recording(one.tables, manifest).save(Path(folder, f"{number}.gpuviz"))
        found = subprocess.run(
            [sys.executable, "-c", program, folder, str(count)],
            check=True,
            capture_output=True,
            text=True,
        )
    measured: list[float] = json.loads(found.stdout)
    return measured


def _small() -> Recording:
    gpu = gpuviz.SimulatedGPU(memory=1 << 30, real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        kept = [gpu.empty(1 << 20), gpu.empty_pinned(1 << 20)]
        for _ in range(10):
            gpu.launch("step", writes=kept[:1], duration=1e-5)
        gpu.synchronize()
    return recorder.recording
