"""Each cause of a failure on a real GPU, and its page. The GPU's memory must be mostly free."""

import gc
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import gpuviz

pytestmark = pytest.mark.gpu

MIB, GIB = 1 << 20, 1 << 30
PATH = re.compile(r"Details: (.*)$", re.MULTILINE)


def give_back():
    """Release memory left by tests: in frames kept by exceptions, and in the cache."""
    import cupy as cp

    for name in ("last_exc", "last_type", "last_value", "last_traceback"):
        # pytest stores the last failure there.
        vars(sys).pop(name, None)
    gc.collect()
    gpuviz.set_per_process_memory_fraction(1.0, 0)
    cp.cuda.Device(0).synchronize()
    cp.get_default_memory_pool().free_all_blocks()
    cp.get_default_pinned_memory_pool().free_all_blocks()
    cp.cuda.runtime.memPoolTrimTo(cp.cuda.runtime.deviceGetDefaultMemPool(0), 0)
    gpuviz.empty_cache()


def free_memory(at_least=0):
    """Return the free memory of device 0, after waiting for processes that have just ended."""
    deadline = time.monotonic() + 20
    while (free := gpuviz.mem_get_info(0)[0]) < at_least and time.monotonic() < deadline:
        time.sleep(0.1)
    return free


@pytest.fixture(autouse=True)
def room():
    """Return the number of free GiB on device 0. A test must release what it allocates."""
    give_back()
    free, total = gpuviz.mem_get_info(0)
    assert free > 0.8 * total, f"device 0 must be mostly free, {free} of {total} bytes are"
    yield free // GIB
    give_back()
    assert free_memory(at_least=free - GIB) >= free - GIB


def empty(size):
    import cupy as cp

    return cp.empty(size, dtype=cp.int8)


def failing(size):
    """Return the text of CuPy's exception for a request that fails."""
    import cupy as cp

    # `pytest.raises(...) as` would create a reference cycle with this frame and its callers.
    try:
        empty(size)
    except cp.cuda.memory.OutOfMemoryError as error:
        return str(error)
    raise AssertionError(f"{size} bytes were allocated")


def failure_on_page(text):
    """Return the failure in the page whose path is in a text."""
    return gpuviz.load(PATH.search(text)[1]).out_of_memory()[-1]


def test_a_card_filled_in_steps_is_full(room, tmp_path):
    with gpuviz.record(tmp_path / "run.gpuviz") as recorder:
        held = [empty(GIB) for _ in range(room - 1)]
        text = failing(4 * GIB)
        allocated = gpuviz.memory_allocated()
        free, total = gpuviz.mem_get_info(0)

    failed = failure_on_page(text)
    assert (failed.verdict, failed.requested) == ("full", 4 * GIB)
    assert (failed.allocated, failed.allocated_blocks) == (allocated, len(held))
    assert (failed.device_total, failed.limit) == (total, None)
    assert abs(failed.device_free - free) < 64 * MIB
    assert recorder.recording.out_of_memory() == (failed,)
    assert (recorder.out_of_memory_pages[0].name, failed.stack > 0) == ("run.oom-1.html", True)


def test_the_program_goes_on_after_it_caught_the_exception(room):
    with gpuviz.record() as recorder:
        failing((room + 4) * GIB)
        assert int((empty(1000) * 0).sum()) == 0

    assert len(recorder.recording.out_of_memory()) == 1


def test_free_memory_in_pieces_is_fragmented(room):
    whole = room - 2
    part = (whole - 1) // 2
    with gpuviz.record():
        array = empty(whole * GIB)
        del array
        held = [empty(size) for size in (part * GIB, 64 * MIB, part * GIB, 64 * MIB)]
        held[0] = held[2] = None
        text = failing((part + 3) * GIB)

    failed = failure_on_page(text)
    assert failed.verdict == "fragmented"
    assert failed.reserved == whole * GIB
    assert (
        part * GIB <= failed.request.own_block < (part + 3) * GIB <= failed.request.cached + 2 * GIB
    )
    assert len(held) == 4


def test_free_memory_of_another_stream_is_cached_elsewhere(room):
    import cupy as cp

    stream = cp.cuda.Stream(non_blocking=True)
    with gpuviz.record():
        with stream:
            array = empty((room - 2) * GIB)
            del array
            pin = empty(64 * MIB)
        text = failing((room - 4) * GIB)

    failed = failure_on_page(text)
    assert (failed.verdict, failed.pending) == ("cached_elsewhere", 0)
    assert failed.free[0].largest >= (room - 3) * GIB
    assert (failed.free[0].stream != failed.stream, pin.nbytes) == (True, 64 * MIB)


def test_free_memory_of_a_private_pool_is_cached_elsewhere(room):
    pool = gpuviz.MemPool()
    with gpuviz.record():
        with gpuviz.use_mem_pool(pool):
            array = empty((room - 2) * GIB)
            del array
        text = failing((room - 4) * GIB)

    failed = failure_on_page(text)
    assert failed.verdict == "cached_elsewhere"
    assert "private pool" in failed.free[0].name


def test_a_free_that_waits_for_another_stream_is_pending_while_a_graph_is_captured(room):
    """The last retry step, which would wait for it, must be skipped during a capture."""
    import cupy as cp

    spin = cp.RawKernel(
        'extern "C" __global__ void spin(long long n)'
        "{ long long start = clock64(); while (clock64() - start < n) {} }",
        "spin",
    )
    busy, capturing = cp.cuda.Stream(non_blocking=True), cp.cuda.Stream(non_blocking=True)
    spin((1,), (1,), (1,))
    cp.cuda.Device(0).synchronize()
    with gpuviz.record():
        array = empty((room - 2) * GIB)
        with busy:
            spin((1,), (1,), (5_000_000_000,))
        gpuviz.record_stream(array, busy)
        del array
        with capturing:
            capturing.begin_capture()
            try:
                text = failing((room - 4) * GIB)
            finally:
                capturing.end_capture()

    failed = failure_on_page(text)
    assert failed.verdict == "pending_frees"
    assert failed.pending == (room - 2) * GIB


def test_a_share_of_the_card_is_a_limit(room):
    with gpuviz.record():
        gpuviz.set_per_process_memory_fraction(0.25, 0)
        text = failing(room // 2 * GIB)

    failed = failure_on_page(text)
    assert failed.verdict == "capped"
    assert failed.limit == int(0.25 * failed.device_total)


def test_what_another_process_holds_is_named(room):
    hold = f"""
import cupy, sys
held = cupy.empty({(room - 6) * GIB}, dtype=cupy.int8)
cupy.cuda.Device().synchronize()
print("ready", flush=True)
sys.stdin.read()
"""
    command = [sys.executable, "-c", hold]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"ready\n"
        with gpuviz.record():
            text = failing(8 * GIB)
        other.stdin.close()

    failed = failure_on_page(text)
    assert failed.verdict == "other_memory"
    assert failed.other_memory >= (room - 6) * GIB
    assert failed.other_processes is None or failed.other_processes >= (room - 6) * GIB


def test_more_than_the_card_has_is_too_large(room):
    with gpuviz.record():
        text = failing((gpuviz.mem_get_info(0)[1] // GIB + 1) * GIB)

    assert (failure_on_page(text).verdict, room > 0) == ("too_large", True)


@pytest.mark.parametrize("kind", ["MemoryPool", "MemoryAsyncPool", "malloc"])
def test_an_observed_allocator_that_fails_is_explained_too(room, kind):
    import cupy as cp

    pool = None if kind == "malloc" else getattr(cp.cuda, kind)()
    previous = cp.cuda.get_allocator()
    cp.cuda.set_allocator(cp.cuda.memory._malloc if pool is None else pool.malloc)
    try:
        with gpuviz.record(allocator="observe") as recorder:
            held = [empty(GIB) for _ in range(room - 1)]
            with pytest.raises(Exception, match="Details: "):
                empty(4 * GIB)
    finally:
        cp.cuda.set_allocator(previous)

    (failed,) = recorder.recording.out_of_memory()
    assert (failed.verdict, failed.allocated) == ("full", len(held) * GIB)
    assert failed.device_free < 4 * GIB
    held.clear()
    if pool is not None:
        # A deleted pool keeps its cached memory, even with CuPy alone.
        pool.free_all_blocks()


def test_what_fails_and_is_killed_leaves_the_page(room, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(f"""
import cupy, gpuviz, os, signal
gpuviz.record({str(tmp_path / "run.gpuviz")!r}).start()
held = [cupy.empty({GIB}, dtype=cupy.int8) for _ in range({room - 2})]
try:
    cupy.empty({8 * GIB}, dtype=cupy.int8)
except cupy.cuda.memory.OutOfMemoryError:
    os.kill(os.getpid(), signal.SIGKILL)
""")
    killed = subprocess.run([sys.executable, program], timeout=120, check=False)
    page = gpuviz.load(Path(tmp_path / "run.oom-1.html"))

    assert killed.returncode == -signal.SIGKILL
    assert [each.verdict for each in page.out_of_memory()] == ["full"]
    assert page.out_of_memory()[0].allocated == (room - 2) * GIB
    assert page.sites(by="line", at="end")["source"][0].as_py().startswith("held = [cupy.empty")
