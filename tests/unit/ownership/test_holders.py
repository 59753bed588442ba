import functools
import gc
import sys
import threading
from types import ModuleType

import pytest

import gpuviz
from tests.unit.ownership.kept_alive import PROGRAMS
from tests.unit.ownership.kept_program import SIZE


@pytest.fixture
def main(monkeypatch):
    """The namespace of a program without IPython."""
    module = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    return vars(module)


@pytest.fixture
def gpu():
    gc.collect()
    return gpuviz.SimulatedGPU(real_time=False)


def used(gpu):
    return gpu.memory_stats()["allocated_bytes.all.current"]


def blocks_of(held):
    return [block for block in held.blocks if block.size == SIZE]


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_keeps_memory_alive_is_named_and_is_the_only_holder(name, main, gpu):
    program = PROGRAMS[name]
    main["kept"] = program.keep(gpu)
    gc.collect()

    held = gpuviz.holders()

    (block,) = blocks_of(held)
    assert len(block.holders) == 1, held
    assert block.only == block.holders[0]
    assert block.only.kind == program.kind
    assert program.path in block.only.path
    if program.kind != "class":
        assert block.only.path.startswith("kept")
        promised = next(each for each in held.releases if each.name == "kept").nbytes
        assert promised == SIZE
        assert gpuviz.release("kept") == SIZE
        assert used(gpu) == 0
    elif "_registry" in program.path:
        main.clear()  # the finalizer's memory goes with its key
    assert "kept" not in main or program.kind == "class"


def test_a_search_leaves_no_references(main, gpu):
    main["kept"] = kept = [gpu.empty(SIZE)]
    array = kept[0]
    before = sys.getrefcount(array), sys.getrefcount(kept)
    held = gpuviz.holders()
    assert (sys.getrefcount(array), sys.getrefcount(kept)) == before
    del array, kept, main["kept"]
    assert used(gpu) == 0
    assert "kept[0]" in str(held)


@pytest.mark.usefixtures("main")
def test_memory_in_an_unreachable_cycle_is_freed_by_a_collection(gpu):
    gc.disable()
    try:
        PROGRAMS["a cycle in a variable"].keep(gpu)
        (block,) = blocks_of(gpuviz.holders())
        assert block.only.kind == "cycle"
        assert gpuviz.release("reference cycles") == SIZE
    finally:
        gc.enable()


@pytest.mark.usefixtures("main")
def test_local_variables_of_running_functions_are_named(gpu):
    def outer():
        array = gpu.empty(SIZE)
        return inner(array)

    def inner(_):
        return gpuviz.holders()

    (block,) = blocks_of(outer())
    assert {each.kind for each in block.holders} == {"running function"}
    assert any("local `array` of the running" in each.path for each in block.holders)
    assert used(gpu) == 0


@pytest.mark.usefixtures("main")
def test_variables_of_running_closures_are_named(gpu):
    def outer():
        array = gpu.empty(SIZE)

        def inner():
            assert array is not None
            return gpuviz.holders()

        return inner()

    (block,) = blocks_of(outer())
    assert {each.kind for each in block.holders} == {"running function"}, block


@pytest.mark.usefixtures("main")
def test_memory_of_a_thread_is_the_threads(gpu):
    started, stop = threading.Event(), threading.Event()

    def work(array):
        started.set()
        stop.wait()
        del array

    thread = threading.Thread(target=work, args=(gpu.empty(SIZE),), name="loader")
    thread.start()
    started.wait()
    try:
        del thread
        (block,) = blocks_of(gpuviz.holders())
        assert block.only is not None
        assert (block.only.kind, block.only.name) == ("thread", "thread loader")
    finally:
        stop.set()


@pytest.mark.usefixtures("main")
def test_a_reference_that_no_object_shows_is_said_to_be_unknown(gpu):
    # A list iterator of a running `for` refers to the list from the evaluation stack.
    size = SIZE + (2 << 20)  # of no block that a thread of an earlier test may still hold
    for _ in [gpu.empty(size)]:
        del _
        (block,) = (each for each in gpuviz.holders().blocks if each.size == size)
    assert block.only is not None
    assert block.only.kind == "unknown"


def test_holders_that_share_memory_are_all_named(main, gpu):
    array = gpu.empty(SIZE)
    main |= {"one": [array], "other": {"x": array}}
    del array
    held = gpuviz.holders()
    (block,) = blocks_of(held)
    assert [each.path for each in block.holders] == ["one[0]", "other['x']"]
    assert block.only is None
    assert not [each for each in held.releases if each.name in main]
    with pytest.raises(ValueError, match="would free no memory"):
        gpuviz.release("one")


def test_only_the_largest_blocks_are_listed(main, gpu):
    main["kept"] = [gpu.empty(each << 20) for each in (2, 30, 5, 40)]
    assert [each.holders[0].path for each in gpuviz.holders(most=2).blocks] == [
        "kept[3]",
        "kept[1]",
    ]
    assert [each.size >> 20 for each in gpuviz.holders(30 << 20).blocks] == [40, 30]


@pytest.mark.usefixtures("main")
def test_memory_without_an_owner_has_no_holder(gpu):
    address = gpu._allocator.allocate(SIZE)
    (block,) = blocks_of(gpuviz.holders())
    assert (block.holders, block.only) == ((), None)
    assert "no Python object" in str(gpuviz.holders())
    gpu._allocator.free(address)


@pytest.mark.parametrize("settings", ["", "expandable_segments:True"])
def test_emptying_the_pools_frees_what_was_promised(settings, main):
    gpu = gpuviz.SimulatedGPU(settings=settings, real_time=False)
    main["kept"] = [gpu.empty(each << 20) for each in (3, 30, 50, 2)]
    gpu.record_stream(main["kept"][1], gpu.Stream())
    del main["kept"][1:3]
    promised = {each.name: each.nbytes for each in gpuviz.holders().releases}
    assert gpuviz.release("cached memory") == promised["cached memory"]
    assert promised["cached memory"] > 0


@pytest.mark.parametrize("arguments", [{"at_least": -1}, {"most": -1}])
def test_wrong_arguments_are_refused(arguments):
    with pytest.raises(ValueError, match="must be a number of"):
        gpuviz.holders(**arguments)


def test_blocks_of_several_simulated_gpus_are_told_apart(main, gpu):
    other = gpuviz.SimulatedGPU(real_time=False)
    main |= {"one": gpu.empty(SIZE), "two": other.empty(2 * SIZE)}
    assert main["one"].ptr == main["two"].ptr
    found = [(each.size, each.only.path) for each in gpuviz.holders().blocks if each.only]
    assert {(2 * SIZE, "two"), (SIZE, "one")} <= {*found}


@pytest.mark.parametrize("limit", [None, 4])
def test_clearing_a_cache_frees_what_was_promised(limit, main, gpu):
    @functools.lru_cache(maxsize=limit)
    def load(number, beside=gpu.empty(512)):  # noqa: B008
        assert beside.nbytes == 512
        return [gpu.empty(SIZE)], number

    main["load"], main["kept"] = load, load(1)
    load(2)
    load(3)
    main["in two variables"] = [load]
    name = "cache of test_clearing_a_cache_frees_what_was_promised.<locals>.load()"
    del load

    promised = {each.name: each.nbytes for each in gpuviz.holders().releases}

    # `kept` holds the first result too, and the function its default argument.
    assert promised[name] == 2 * SIZE
    assert gpuviz.release(name) == 2 * SIZE
    assert main["load"].cache_info().currsize == 0
    assert used(gpu) == SIZE + 512


def test_memory_that_a_cached_function_holds_besides_is_not_promised(main, gpu):
    @functools.lru_cache
    def load():
        return array

    array = gpu.empty(SIZE)
    load()
    main["load"] = load
    del load

    names = [each.name for each in gpuviz.holders().releases]

    # The closure keeps it, even with an empty cache.
    assert [name for name in names if name.startswith("cache of")] == []


def test_caches_of_one_name_are_not_cleared_by_it(main, gpu):
    main["kept"] = [PROGRAMS["a bounded cache"].keep(gpu) for _ in range(2)]

    names = [each.name for each in gpuviz.holders().releases]

    assert "kept" in names
    assert [name for name in names if name.startswith("cache of")] == []
