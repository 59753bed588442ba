"""What the host does to pinned memory, found by its effect: simulated copies of real memory."""

import ctypes
import mmap
import subprocess
import sys
import textwrap
import threading

import pytest

from gpuviz import _core, _testing

BYTES = 1 << 20
PAGE = mmap.PAGESIZE


class Memory:
    """Memory of a program that a session knows as pinned."""

    def __init__(self, *, guards=False):
        self.session = _core.Session(checks_pinned=True, guards_pages=guards)
        self.session.start()
        self.observer = _core.PinnedObserver()
        self.observer.set_session(self.session)
        self.pages = mmap.mmap(-1, BYTES)
        self.view = (ctypes.c_uint8 * BYTES).from_buffer(self.pages)
        self.address = ctypes.addressof(self.view)
        self.observer.allocated(self.address, BYTES, BYTES)
        self.copies = 0

    def copy(self, *, stream=1, offset=0, size=BYTES, reads=True):
        self.copies += 1
        _testing.copy_pinned(
            self.session, stream=stream, address=self.address + offset, bytes=size,
            correlation=self.copies, reads=reads,
        )  # fmt: skip

    def wait(self, **what):
        _testing.wait_for_pinned(self.session, **what)

    def record(self, event, *, stream=1):
        _testing.record_pinned(self.session, stream=stream, event=event)

    def free(self):
        self.observer.freed(self.address)

    def enter(self):
        _testing.enter_cuda_call(self.session)

    def found(self):
        self.observer.set_session(None)
        self.session.stop()
        modes = ("unknown", "read", "write", "read_write")
        rows = [
            (correlation, modes[mode], exact)
            for columns in self.session.take_tables(flush=True)["host_accesses"]
            for correlation, mode, exact in zip(
                *(columns[name].tolist() for name in ("correlation", "mode", "exact")), strict=True
            )
        ]
        del self.view
        return rows


@pytest.fixture
def memory():
    return Memory()


@pytest.fixture
def guarded():
    return Memory(guards=True)


@pytest.mark.parametrize("place", [0, 1234, BYTES - 1])
def test_a_write_before_the_wait_is_found(memory, place):
    memory.copy(offset=place // PAGE * PAGE, size=min(PAGE, BYTES))
    memory.view[place] = 1
    memory.wait(stream=1)

    assert memory.found() == [(1, "write", 0)]


def test_a_write_after_the_wait_is_right(memory):
    memory.copy()
    memory.wait(stream=1)
    memory.view[0] = 1
    memory.wait()

    assert memory.found() == []


@pytest.mark.parametrize("how", ["wait", "event", "copy", "free"])
def test_what_shows_that_the_memory_changed(memory, how):
    memory.copy()
    memory.record(5)
    memory.view[0] = 1
    if how == "wait":
        memory.wait()
    elif how == "event":
        memory.wait(event=5)
    elif how == "copy":
        memory.copy()
    else:
        memory.free()

    assert memory.found() == [(1, "write", 0)]


def test_an_event_covers_the_copies_of_its_stream_that_were_before(memory):
    memory.copy(stream=1, size=PAGE)
    memory.record(5)
    memory.copy(stream=1, offset=PAGE, size=PAGE)
    memory.copy(stream=2, offset=2 * PAGE, size=PAGE)
    for place in (0, PAGE, 2 * PAGE):
        memory.view[place] = 1
    memory.wait(event=5)
    memory.wait(stream=2)

    assert memory.found() == [(1, "write", 0), (3, "write", 0)]


def test_memory_that_is_not_pinned_is_never_read(memory):
    _testing.copy_pinned(memory.session, stream=1, address=8, bytes=PAGE, correlation=1, reads=True)
    memory.copy(offset=BYTES - PAGE, size=2 * PAGE)
    memory.free()
    memory.copy()
    memory.wait()

    assert memory.found() == []


def test_more_copies_than_are_compared_are_counted(memory):
    for number in range(300):
        memory.copy(offset=64 * number, size=64)

    assert memory.session.skipped_comparisons == 300 - 256
    assert memory.session.comparison_ns > 0
    assert memory.found() == []


def seen(*modes):
    """Return the rows of accesses to what copy 1 fills, where the system allows to watch memory."""
    return [(1, mode, 0) for mode in modes] if _testing.can_watch_memory() else []


@pytest.mark.parametrize("how", ["call", "wait", "event", "free"])
def test_a_read_of_what_a_copy_fills_is_found_at_the_next_call(memory, how):
    memory.copy(reads=False)
    memory.record(5)
    assert bytes(memory.view[:100]) == bytes(100)
    if how == "call":
        memory.enter()
    elif how == "wait":
        memory.wait(stream=1)
    elif how == "event":
        memory.wait(event=5)
    else:
        memory.free()

    assert memory.found() == seen("read")


def test_a_write_to_what_a_copy_fills_is_no_read(memory):
    memory.copy(reads=False)
    memory.view[0] = 1
    memory.enter()

    assert memory.found() == seen("write")


def test_what_is_read_after_the_wait_or_in_another_stream_s_wait_is_told_apart(memory):
    memory.copy(reads=False)
    memory.wait(stream=2)
    first = memory.view[0]
    memory.enter()
    memory.copy(reads=False, offset=PAGE)
    memory.wait(stream=1)
    second = memory.view[PAGE]
    memory.enter()

    assert (first, second) == (0, 0)
    assert memory.found() == seen("read")


def test_views_of_memory_and_what_gpuviz_and_cuda_read_are_no_accesses(memory):
    memory.copy(reads=False)
    view = memoryview(memory.view)[8:]
    memory.enter()
    memory.copy(reads=True)
    memory.copy(reads=True, offset=PAGE)
    memory.wait()

    assert view.nbytes == BYTES - 8
    assert memory.found() == []


def test_reads_of_another_thread_do_not_count(memory):
    memory.copy(reads=False)
    thread = threading.Thread(target=lambda: bytes(memory.view[:8]))
    thread.start()
    thread.join()
    memory.enter()

    assert memory.found() == []


def test_memory_that_is_read_again_and_again_is_waited_for(memory):
    memory.copy(reads=False)
    for _ in range(100):
        assert memory.view[0] == 0
    memory.enter()

    assert memory.found() == []


def test_the_copy_that_fills_memory_last_is_the_one_that_was_not_waited_for(memory):
    memory.copy(reads=False)
    memory.copy(reads=False)
    assert memory.view[0] == 0
    memory.enter()

    assert memory.found() == [(2, *row[1:]) for row in seen("read")]


def test_more_copies_than_a_thread_can_watch_are_counted(memory):
    watched = 2 * _testing.can_watch_memory()
    for number in range(5):
        memory.copy(reads=False, offset=64 * number, size=64)

    assert memory.session.unwatched_copies == 5 - watched
    memory.wait()
    assert memory.found() == []


@pytest.mark.parametrize(("offset", "size"), [(0, 7), (1, 14), (BYTES - 7, 7)])
def test_a_copy_without_eight_aligned_bytes_is_not_watched(memory, offset, size):
    memory.copy(reads=False, offset=offset, size=size)
    assert memory.view[offset] == 0
    memory.enter()

    assert memory.found() == []


@pytest.mark.parametrize("reads", [True, False])
def test_an_access_to_guarded_memory_is_found_where_it_is(guarded, reads):
    guarded.view[PAGE] = 7
    guarded.copy(reads=reads)
    seen = guarded.view[PAGE]
    guarded.view[PAGE] = 8

    assert (seen, guarded.view[PAGE]) == (7, 8)
    assert guarded.found() == [(1, "write" if reads else "read", 1)]


def test_a_comparison_is_no_access_of_the_host(guarded):
    guarded.copy(reads=False)
    guarded.copy(reads=True)
    guarded.wait()

    assert guarded.found() == []


def test_a_wait_lifts_the_guard(guarded):
    guarded.copy(reads=False)
    guarded.wait(stream=2)
    guarded.view[0] = 1

    assert guarded.found() == []


@pytest.mark.parametrize(("offset", "size"), [(1, PAGE), (PAGE + 1, PAGE - 2), (0, 100)])
def test_memory_that_shares_its_pages_is_not_guarded(guarded, offset, size):
    guarded.copy(reads=False, offset=offset, size=size)
    guarded.view[offset] = 1

    assert guarded.found() == []


def test_the_end_and_a_free_lift_the_guard(guarded):
    guarded.copy(reads=False)
    guarded.free()
    guarded.view[0] = 1
    other = Memory(guards=True)
    other.copy(reads=False)
    view = other.view

    assert guarded.found() == []
    assert other.found() == []
    view[0] = 1
    assert view[0] == 1


def test_threads_that_access_guarded_memory_at_once_all_go_on(guarded):
    count, barrier, seen = 8, threading.Barrier(8), []
    guarded.view[0] = 7

    def read():
        barrier.wait()
        seen.append(guarded.view[0])

    for _ in range(20):
        guarded.copy(reads=False)
        threads = [threading.Thread(target=read) for _ in range(count)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()

    assert seen == [7] * 20 * count
    assert [row[1:] for row in guarded.found()] == [("read", 1)] * 20


def test_other_faults_end_the_process_as_before():
    code = """
        import ctypes, faulthandler
        faulthandler.enable()
        from gpuviz import _core
        session = _core.Session(checks_pinned=True, guards_pages=True)
        session.start()
        ctypes.string_at(8)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], check=False, capture_output=True, text=True
    )

    assert done.returncode == -11
    assert "Segmentation fault" in done.stderr
