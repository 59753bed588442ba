"""Who keeps the memory of CuPy's arrays alive, and what letting go of it frees."""

import gc
import sys
from types import ModuleType, SimpleNamespace

import cupy
import pytest

import gpuviz
from tests.unit.ownership.kept_alive import PROGRAMS
from tests.unit.ownership.kept_program import SIZE

pytestmark = pytest.mark.gpu
GPU = SimpleNamespace(empty=lambda nbytes: cupy.empty(nbytes, cupy.uint8))
# Arrays cannot be their keys, but CuPy's pointers can.
OF_HASHABLE = ("a key of a dict", "a set", "a frozenset", "an argument in a cache")
POINTERS = SimpleNamespace(empty=cupy.cuda.alloc)


@pytest.fixture
def main(monkeypatch):
    """The namespace of a program without IPython."""
    module = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    return vars(module)


@pytest.fixture
def used():
    """Return how to ask for the bytes that arrays use, of gpuviz's allocator."""
    before = cupy.cuda.get_allocator()
    cupy.cuda.set_allocator(gpuviz.malloc)
    gc.collect()
    start = gpuviz.memory_allocated()
    yield lambda: gpuviz.memory_allocated() - start
    cupy.cuda.set_allocator(before)


def blocks_of(held):
    return [block for block in held.blocks if block.size == SIZE]


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_keeps_an_array_alive_is_named_and_let_go(name, main, used):
    program = PROGRAMS[name]
    main["kept"] = program.keep(POINTERS if name in OF_HASHABLE else GPU)
    gc.collect()

    held = gpuviz.holders()

    (block,) = blocks_of(held)
    assert block.only is not None, held
    assert block.only.kind == program.kind
    assert program.path in block.only.path
    if program.kind != "class":
        promised = next(each for each in held.releases if each.name == "kept").nbytes
        assert promised == SIZE
        assert gpuviz.release("kept") == SIZE
        assert used() == 0
    elif "_registry" in program.path:
        main.clear()  # the finalizer's memory goes with its key


def test_an_array_of_cupys_own_pool_is_named_once_it_was_recorded(main):
    pool = cupy.cuda.MemoryPool()
    with cupy.cuda.using_allocator(pool.malloc), gpuviz.record():
        main["batch"] = cupy.empty(SIZE, cupy.uint8)

    (block,) = blocks_of(gpuviz.holders())
    assert block.only.path.startswith("batch")
    assert gpuviz.release("batch") >= SIZE
    assert pool.used_bytes() == 0


@pytest.mark.usefixtures("main")
def test_plans_of_ffts_are_named_and_cleared(used):
    cupy.fft.config.get_plan_cache().clear()
    cupy.fft.fft(cupy.ones(3 * 1_000_003, cupy.complex64))  # a size that needs a work area
    cupy.cuda.Device().synchronize()
    size = used()
    assert size > 1 << 20

    held = gpuviz.holders()

    plans = [each.nbytes for each in held.releases if each.name == "FFT plans"]
    assert plans == [size], held.blocks
    assert gpuviz.release("FFT plans") == size
    assert used() == 0
    assert cupy.fft.config.get_plan_cache().get_curr_size() == 0


def test_parts_of_an_array_keep_all_of_it(main, used):
    main["row"] = cupy.empty((4, SIZE // 4), cupy.uint8)[1]

    held = gpuviz.holders()
    (block,) = blocks_of(held)
    assert block.only is not None, held
    assert block.only.path.startswith("row")
    assert gpuviz.release("row") == SIZE
    assert used() == 0
