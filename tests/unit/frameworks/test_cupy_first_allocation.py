"""The hook for CuPy's first allocation, with allocators that need no GPU."""

import os
import threading

import cupy
import pytest
from cupy.cuda import memory

from gpuviz.frameworks.cupy_start import FirstAllocation


class Allocator:
    """Returns fake addresses, and records the sizes."""

    def __init__(self):
        self.sizes = []

    def malloc(self, size):
        self.sizes.append(size)
        return memory.MemoryPointer(memory.UnownedMemory(1 << 20, size, self, 0), 0)


@pytest.fixture(autouse=True)
def own():
    """CuPy's allocator before the test, which is restored afterwards."""
    setter, getter = cupy.cuda.set_allocator, cupy.cuda.get_allocator
    before = getter()
    own = Allocator()
    cupy.cuda.set_allocator(own.malloc)
    yield own
    for module in (cupy.cuda, memory):
        module.set_allocator, module.get_allocator = setter, getter
    setter(before)


def test_it_calls_once_before_the_first_allocation(own):
    calls = []
    FirstAllocation(lambda chosen: calls.append((chosen, list(own.sizes))))
    before = list(calls)
    cupy.cuda.alloc(1234)
    cupy.cuda.alloc(4321)

    assert before == []
    assert calls == [(False, [])]
    assert own.sizes == [1234, 4321]


def test_an_allocator_that_the_callback_installs_serves_the_first_allocation(own):
    ours = Allocator()
    FirstAllocation(lambda _: cupy.cuda.set_allocator(ours.malloc))
    cupy.cuda.alloc(1234)

    assert (ours.sizes, own.sizes) == ([1234], [])


@pytest.mark.parametrize("module", [cupy.cuda, memory], ids=["cupy.cuda", "cupy.cuda.memory"])
def test_an_allocator_that_the_program_chooses_is_told_and_is_cupys_then(own, module):
    theirs = Allocator()
    seen = []
    FirstAllocation(lambda chosen: seen.append((chosen, cupy.cuda.get_allocator())))
    module.set_allocator(theirs.malloc)
    cupy.cuda.alloc(1234)

    assert seen == [(True, theirs.malloc)]
    assert (theirs.sizes, own.sizes) == ([1234], [])


def test_afterwards_cupy_is_as_before():
    setter = cupy.cuda.set_allocator
    FirstAllocation(lambda _: None)
    replaced = cupy.cuda.set_allocator
    cupy.cuda.alloc(1234)

    assert replaced is not setter
    assert cupy.cuda.set_allocator is memory.set_allocator is setter


def test_an_allocator_of_one_thread_is_left_alone(own):
    theirs, calls = Allocator(), []
    FirstAllocation(calls.append)
    with cupy.cuda.using_allocator(theirs.malloc):
        cupy.cuda.alloc(1234)
        with pytest.raises(ValueError, match="using_allocator"):
            cupy.cuda.set_allocator(None)
    inside = list(calls)
    cupy.cuda.alloc(4321)

    assert (inside, calls) == ([], [False])
    assert (theirs.sizes, own.sizes) == ([1234], [4321])


def test_the_allocator_that_is_asked_for_is_the_programs(own):
    theirs, calls = Allocator(), []
    FirstAllocation(calls.append)
    before = cupy.cuda.get_allocator()
    memory.set_allocator(theirs.malloc)
    after = memory.get_allocator()
    with cupy.cuda.using_allocator(own.malloc):
        inside = cupy.cuda.get_allocator()

    assert (before, after, inside) == (own.malloc, theirs.malloc, own.malloc)
    assert calls == []


def test_once_cancelled_it_calls_no_more_and_cupy_is_as_before(own):
    getter, calls = cupy.cuda.get_allocator, []
    waiting = FirstAllocation(calls.append)
    waiting.cancel()
    cupy.cuda.alloc(1234)

    assert calls == []
    assert own.sizes == [1234]
    assert cupy.cuda.get_allocator is getter
    assert cupy.cuda.get_allocator() == own.malloc


def test_cancelled_where_cupys_allocator_cannot_be_changed_it_hands_on(own):
    theirs, calls = Allocator(), []
    waiting = FirstAllocation(calls.append)
    with cupy.cuda.using_allocator(theirs.malloc):
        waiting.cancel()
    cupy.cuda.alloc(1234)

    assert calls == []
    assert own.sizes == [1234]


def test_threads_that_allocate_at_once_call_once(own):
    calls = []
    FirstAllocation(calls.append)
    threads = [threading.Thread(target=cupy.cuda.alloc, args=(1000 + i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert calls == [False]
    assert sorted(own.sizes) == list(range(1000, 1008))


def test_a_forked_process_is_left_alone():
    FirstAllocation(lambda _: os._exit(3))
    child = os.fork()
    if child == 0:
        pointer = cupy.cuda.alloc(1234)
        os._exit(0 if pointer.mem.size == 1234 else 4)
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
