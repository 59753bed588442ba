"""Recordings of programs that end in every way a program can end."""

import signal
import subprocess
import sys
import time

import pytest

import gpuviz

pytestmark = pytest.mark.gpu


def run(program, *, environment=None):
    import os

    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **(environment or {})},
        check=False,
    )


def test_arrays_that_live_until_the_interpreter_exits_are_freed_quietly(tmp_path):
    path = tmp_path / "run.gpuviz"
    result = run(f"""
import cupy, gpuviz
recorder = gpuviz.record({str(path)!r})
recorder.start()
kept = [cupy.zeros(1000) for _ in range(10)]
class Late:
    def __del__(self): self.array = None
late = Late(); late.array = cupy.ones(5)
import sys; sys.kept_for_ever = (late, kept)
""")

    assert (result.returncode, result.stderr) == (0, "")
    assert gpuviz.load(path).memory_stats(device=0)["allocation.all.allocated"] == 11


def test_observed_arrays_that_live_until_exit_are_freed_quietly():
    result = run("""
import cupy, gpuviz, sys
with gpuviz.record(allocator="observe"):
    sys.kept_for_ever = [cupy.zeros(1000) for _ in range(10)]
""")

    assert (result.returncode, result.stderr) == (0, "")


def test_a_killed_process_loses_at_most_a_second(tmp_path):
    path = tmp_path / "run.gpuviz"
    program = f"""
import cupy, gpuviz, time
gpuviz.record({str(path)!r}).start()
began = time.monotonic()
while True:
    cupy.cuda.alloc(1000)
    time.sleep(0.001)
    if time.monotonic() - began > 3: print("ready", flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        killed = time.time_ns()
        process.send_signal(signal.SIGKILL)
    recording = gpuviz.load(tmp_path / "run.gpuviz.part")

    last = recording.table("memory_events")["time"].to_pylist()[-1]
    lost_ns = killed - recording.manifest.start_unix_ns - last
    assert lost_ns < 1_000_000_000
    assert not recording.is_complete
    assert recording.table("memory_events").num_rows > 1000


def test_a_forked_child_records_nothing_and_harms_nothing(tmp_path):
    path = tmp_path / "run.gpuviz"
    result = run(f"""
import cupy, gpuviz, os
with gpuviz.record({str(path)!r}) as recorder:
    array = cupy.arange(1000)
    child = os.fork()
    if child == 0:
        del array
        os._exit(7)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), int(array.sum()))
print(recorder.recording.memory_stats(device=0)["allocation.all.current"])
""")

    assert result.stdout.splitlines()[0] == "7 499500"
    assert result.returncode == 0


def test_per_thread_default_streams_are_streams_of_their_own():
    result = run(
        """
import cupy, gpuviz, threading
def work():
    for _ in range(100): cupy.full(1000, 1).sum()
with gpuviz.record() as recorder:
    threads = [threading.Thread(target=work) for _ in range(3)]
    [t.start() for t in threads]; [t.join() for t in threads]
print(recorder.recording.table("streams").num_rows)
print(set(recorder.recording.table("streams")["name"].to_pylist()) != set())
""",
        environment={"CUPY_CUDA_PER_THREAD_DEFAULT_STREAM": "1"},
    )

    assert (result.returncode, result.stdout.split()) == (0, ["3", "True"]), result.stderr


def test_a_host_callback_that_needs_the_gil_does_not_deadlock():
    result = run("""
import cupy, gpuviz, time
with gpuviz.record():
    stream = cupy.cuda.Stream(non_blocking=True)
    big = cupy.empty(100 << 20, dtype=cupy.int8)
    with stream:
        stream.launch_host_func(lambda _: time.sleep(0.5), None)
    del big
    gpuviz.empty_cache()
    stream.synchronize()
print("done")
""")

    assert (result.returncode, result.stdout) == (0, "done\n"), result.stderr
