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
        self.session = _core.Session(compares_sources=True, guards_pages=guards)
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
        session = _core.Session(compares_sources=True, guards_pages=True)
        session.start()
        ctypes.string_at(8)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], check=False, capture_output=True, text=True
    )

    assert done.returncode == -11
    assert "Segmentation fault" in done.stderr
