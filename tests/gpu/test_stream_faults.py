"""Failures of CUPTI, in separate processes."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.gpu

START = """
import threading, warnings, cupy, numpy, gpuviz
a = cupy.arange(1000)
a + 1
def work(n=50):
    for _ in range(n):
        cupy.add(a, 1)
    cupy.cuda.Device().synchronize()
"""


def run(program, *before, timeout=100):
    """Return the lines that a program prints; it must exit with 0."""
    ran = subprocess.run(
        [*before, sys.executable, "-c", START + program],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout.splitlines()


def test_another_tool_that_has_cupti_is_named_and_memory_goes_on():
    lines = run("""
import torch
torch.ones(10, device="cuda")
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as other:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with gpuviz.record() as recorder:
            work()
        with gpuviz.record() as again:
            work()
print(len(told), told[0].message)
print(recorder.status().streams, *recorder.status().notes)
print(recorder.recording.table("memory_events").num_rows > 50, again.status().streams)
print(any("cupy_add" in event.key for event in other.key_averages()))
""")
    assert lines[0].startswith("1 Only memory is recorded, streams are not: CUPTI serves one tool")
    assert lines[1].startswith("False Only memory is recorded")
    assert lines[2] == "True False"
    assert lines[3] == "True"


def test_a_tool_that_comes_later_breaks_nothing():
    lines = run("""
import torch
torch.ones(10, device="cuda")
with gpuviz.record() as recorder:
    work()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as other:
        work()
    work()
print(recorder.recording.table("memory_events").num_rows > 150)
print(recorder.status().activities, recorder.status().notes)
with gpuviz.record() as after:
    work()
print(after.status().activities)
""")
    print(lines)
    assert lines[0] == "True"


def test_under_ncu_memory_is_recorded_and_the_reason_told():
    ncu = shutil.which("ncu")
    assert ncu is not None
    lines = run(
        """
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    with gpuviz.record() as recorder:
        work(5)
print("told", [str(warning.message) for warning in told])
print("events", recorder.recording.table("memory_events").num_rows)
print("streams", recorder.status().streams)
""",
        ncu,
        "--launch-count",
        "1",
        "--clock-control",
        "none",
    )
    print([line for line in lines if line.startswith(("told", "events", "streams"))])
    assert any(line.startswith("events ") and int(line.split()[1]) >= 5 for line in lines)
    streams = next(line for line in lines if line.startswith("streams"))
    told = next(line for line in lines if line.startswith("told"))
    assert (streams == "streams True") == (told == "told []")


def test_starting_and_stopping_while_other_threads_launch():
    lines = run("""
stop = threading.Event()
def launch():
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        while not stop.is_set():
            cupy.add(a, 1)
threads = [threading.Thread(target=launch) for _ in range(4)]
for thread in threads:
    thread.start()
counts = []
for _ in range(20):
    with gpuviz.record() as recorder:
        work()
    counts.append(recorder.status().activities)
stop.set()
for thread in threads:
    thread.join()
print(min(counts) >= 50, recorder.status().dropped_activities)
""")
    assert lines[0].startswith("True")


def test_a_context_that_is_reset_ends_nothing():
    lines = run("""
with gpuviz.record(allocator="observe") as recorder:
    work()
    del a
    cupy.get_default_memory_pool().free_all_blocks()
    import ctypes
    ctypes.CDLL("libcuda.so.1").cuDevicePrimaryCtxReset_v2(0)
print(recorder.status().activities >= 50)
import os
os._exit(0) if recorder.recording else None
""")
    assert lines == ["True"]


def test_a_process_that_exits_without_stop_leaves_a_whole_recording(tmp_path):
    path = tmp_path / "run.gpuviz"
    lines = run(f"""
recorder = gpuviz.record({str(path)!r})
recorder.start()
work()
print("done")
""")
    assert lines == ["done"]
    import gpuviz

    assert gpuviz.load(path).table("activities").num_rows >= 50


def test_a_killed_process_loses_at_most_the_last_second(tmp_path):
    path = tmp_path / "run.gpuviz"
    program = f"""
import os, signal, time
recorder = gpuviz.record({str(path)!r})
recorder.start()
work()
time.sleep(1.2)
os.kill(os.getpid(), signal.SIGKILL)
"""
    ran = subprocess.run([sys.executable, "-c", START + program], check=False, timeout=100)
    assert ran.returncode == -9
    import gpuviz

    recording = gpuviz.load(Path(str(path) + ".part"))
    assert recording.table("activities").num_rows >= 50


def test_a_forked_child_records_nothing_and_ends():
    lines = run("""
import os
with gpuviz.record() as recorder:
    work()
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    work()
print(recorder.status().activities >= 100)
""")
    assert lines == ["True"]
