"""Forks of a recording process with busy threads: neither process ever hangs; needs no GPU."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FORKS = 120
# `busy` runs on threads while others fork; `child` runs in each child, which must end in time.
PRELUDE = """
import os, signal, sys, threading
import gpuviz
from gpuviz.errors import RecorderError

def used(recorder):
    '''Call everything of a recorder; in a child of a fork, part of it is refused.'''
    refused = 0
    for use in (
        recorder.status,
        recorder.read_statistics,
        lambda: recorder.statistics,
        lambda: recorder.elapsed_ns,
        recorder.follow_statistics(lambda: None),
        lambda: recorder.subscribe(lambda _: None)(),
    ):
        try:
            use()
        except RecorderError as error:
            assert "is a fork of the recording one" in str(error)
            refused += 1
    return refused

def check(recorder, busy, child, forks, forking=2):
    stopping = threading.Event()
    failed = []

    def run(work):
        while not stopping.is_set():
            work()

    def fork_often():
        for number in range(forks // forking):
            process = os.fork()
            if process == 0:
                signal.alarm(20)
                try:
                    child(number)
                except BaseException:
                    sys.excepthook(*sys.exc_info())
                    os._exit(1)
                os._exit(7)
            status = os.waitpid(process, 0)[1]
            if os.waitstatus_to_exitcode(status) != 7:
                failed.append(status)
                return

    with recorder:
        used(recorder)
        works = [busy, busy, busy, lambda: used(recorder)]
        threads = [threading.Thread(target=run, args=(work,)) for work in works]
        forkers = [threading.Thread(target=fork_often) for _ in range(forking)]
        for each in (*threads, *forkers):
            each.start()
        for each in forkers:
            each.join()
        stopping.set()
        for each in threads:
            each.join()
    print(failed, recorder.recording.table("memory_events").num_rows > 0)
"""
SIMULATED = """
gpu = gpuviz.SimulatedGPU(memory=1 << 30, real_time={real_time})

def busy():
    stream = gpu.Stream(non_blocking=True)
    with stream, gpuviz.range("busy"):
        array = gpu.empty(1 << 20)
        gpu.launch("k", reads=[array], duration=1e-6)
        event = stream.record()
    event.synchronize()
    gpu.memory_stats()

def child(number):
    busy()
    gpu.synchronize()
    gpu.empty_cache()
    assert used(recorder) == 2
    if number % 8 == 0:
        with gpuviz.record(device=gpu) as again:
            busy()
        assert again.recording.table("activities").num_rows

recorder = gpuviz.record({path}, device=gpu)
check(recorder, busy, child, {forks})
"""
CUPY = """
from gpuviz.recorder.recorder import Recorder
from tests.unit.frameworks.simulated_cupy import ClientSource

source = ClientSource()
os.register_at_fork(after_in_child=source.client.abandon)

def busy():
    pointers = [source.malloc(1 << size) for size in range(8, 22)]
    source.allocators[0].memory_stats()
    source.allocators[0].empty_cache()

def child(number):
    try:
        source.malloc(100)
    except RuntimeError as error:
        assert "forked child" in str(error)
    source.allocators[0].memory_stats()
    source.allocators[0].memory_snapshot()
    assert used(recorder) == 2

recorder = Recorder(source, None, stacks=True, max_events=100_000)
check(recorder, busy, child, {forks})
"""
# While a long kernel runs, the allocator waits with its lock.
WAITING = """
gpu = gpuviz.SimulatedGPU(memory=64 << 20)
other = gpu.Stream(non_blocking=True)
array = gpu.empty(30 << 20)
with other:
    gpu.launch("long", reads=[array], duration=600)
gpu.record_stream(array, other)
del array
threading.Thread(target=gpu.empty_cache, daemon=True).start()
is_waiting = False
while not is_waiting:
    probe = threading.Thread(target=gpu.memory_stats, daemon=True)
    probe.start()
    probe.join(1)
    is_waiting = probe.is_alive()
process = os.fork()
if process == 0:
    signal.alarm(20)
    try:
        gpu.empty(1000)
    except RuntimeError as error:
        print(error, flush=True)
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
os._exit(0)
"""


def run(program, **values):
    text = PRELUDE + textwrap.dedent(program).format(forks=FORKS, **values)
    # Python 3.12 and later warn of any fork of a process with threads.
    quiet = ["-W", "ignore:This process:DeprecationWarning"]
    return subprocess.run(
        [sys.executable, *quiet, "-c", text],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("real_time", [True, False])
@pytest.mark.parametrize("to_disk", [True, False])
def test_forks_while_threads_use_a_simulated_gpu(tmp_path, real_time, to_disk):
    path = repr(str(tmp_path / "run.gpuviz")) if to_disk else None

    done = run(SIMULATED, real_time=real_time, path=path)

    assert (done.stdout, done.stderr) == ("[] True\n", "")


def test_forks_while_threads_allocate_for_cupy():
    done = run(CUPY)

    assert (done.stdout, done.stderr) == ("[] True\n", "")


def test_an_allocator_that_waits_for_the_gpu_is_refused_in_the_child():
    done = run(WAITING)

    refusal = "This memory allocator cannot be used in this forked process: another thread was"
    assert done.stdout.startswith(refusal)
    assert done.stdout.endswith("\n7\n")
