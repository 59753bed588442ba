"""Failures of processes that are killed, exit or were forked."""

import signal
import subprocess
import sys

import gpuviz


def test_what_fails_and_is_killed_leaves_the_page(tmp_path):
    program = f"""
import gpuviz, os, signal
gpu = gpuviz.SimulatedGPU(memory=1000 << 20, real_time=False)
gpuviz.record({str(tmp_path / "run.gpuviz")!r}, device=gpu).start()
held = [gpu.empty(100 << 20) for _ in range(9)]
try:
    gpu.empty(1234 << 18)
except MemoryError:
    os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = subprocess.run([sys.executable, "-c", program], timeout=60, check=False)
    page = gpuviz.load(tmp_path / "run.oom-1.html")
    part = gpuviz.load(tmp_path / "run.gpuviz.part")

    assert killed.returncode == -signal.SIGKILL
    assert [each.verdict for each in page.out_of_memory()] == ["full"]
    assert [each.verdict for each in part.out_of_memory()] == ["full"]
    assert page.out_of_memory()[0].allocated == 900 << 20


def test_a_failure_at_the_interpreters_end_is_only_raised():
    program = """
import atexit, gpuviz
gpu = gpuviz.SimulatedGPU(memory=1 << 20, real_time=False)
class Late:
    def __del__(self):
        try: gpu.empty(1 << 30)
        except MemoryError as error: print(str(error)[:24])
late = Late()
gpuviz.record(device=gpu).start()
import sys; sys.kept_for_ever = late
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )

    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_forked_child_says_what_the_allocator_says():
    program = """
import gpuviz, os
gpu = gpuviz.SimulatedGPU(memory=1 << 20, real_time=False)
def failing():
    try: gpu.empty(1 << 30)
    except MemoryError as error: return len(str(error).splitlines())
with gpuviz.record(device=gpu):
    inside, child = failing(), os.fork()
    if child == 0:
        os._exit(failing())
    print(inside, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )

    assert (ended.returncode, ended.stdout.split()) == (0, ["2", "1"])
