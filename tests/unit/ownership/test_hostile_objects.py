"""Objects that break what looks at them, in the search of holders and in a release."""

import gc
import sys
import threading
import weakref
from types import ModuleType

import pytest

import gpuviz
from tests.examples import share_of
from tests.unit.ownership.held_objects import Box, Hostile

SIZE = (4 << 20) + 2048


@pytest.fixture
def main(monkeypatch):
    module = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    yield vars(module)
    vars(module).clear()


@pytest.fixture
def gpu():
    gc.collect()
    return gpuviz.SimulatedGPU(real_time=False)


def used(gpu):
    return gpu.memory_stats()["allocated_bytes.all.current"]


def only_holder():
    (block,) = (each for each in gpuviz.holders().blocks if each.size == SIZE)
    assert block.only is not None, block
    return block.only.path


class Hanging:
    """An object each of whose methods waits forever."""

    def __init__(self, field):
        self.__dict__["field"] = field

    def __getattr__(self, name):
        threading.Event().wait()

    __repr__ = __str__ = __len__ = __iter__ = __bool__ = __dir__ = __getattr__
    __eq__ = __setattr__ = __contains__ = __getitem__ = __getattr__
    __hash__ = object.__hash__


class Mutating:
    """An object that changes a list when it is looked at."""

    def __init__(self, values):
        self.__dict__["values"] = values

    def __getattr__(self, name):
        self.__dict__["values"].clear()
        raise AttributeError(name)

    def __repr__(self):
        self.__dict__["values"].clear()
        return ""

    def __eq__(self, _):
        self.__dict__["values"].clear()
        return True

    __hash__ = object.__hash__


@pytest.mark.timeout(20)
def test_methods_that_hang_are_not_called(main, gpu):
    main["kept"] = Hanging(gpu.empty(SIZE))

    assert only_holder() == "kept.field"


def test_methods_that_change_objects_are_not_called(main, gpu):
    main["kept"] = Mutating([{Mutating([]): gpu.empty(SIZE)}])

    assert only_holder() == "kept.values[0][a Mutating]"


def test_weak_proxies_are_not_followed(main, gpu):
    box = Box(gpu.empty(SIZE))
    dead = weakref.proxy(Box(1))
    main |= {"proxy": weakref.proxy(box), "dead": dead, "kept": [box, dead]}
    del box, dead

    assert only_holder() == "kept[0].value"
    assert gpuviz.release("kept") == SIZE


def test_modules_that_are_not_initialized_are_skipped(main, gpu, monkeypatch):
    broken = {
        "empty": ModuleType.__new__(ModuleType),
        "blocked": None,
        "object": Hostile([]),
        "nameless": ModuleType("nameless"),
    }
    vars(broken["nameless"]).clear()
    for name, module in broken.items():
        monkeypatch.setitem(sys.modules, f"half_initialized_{name}", module)
    main["kept"] = [gpu.empty(SIZE)]

    assert only_holder() == "kept[0]"


def test_memory_is_freed_behind_a_finalizer_that_raises(main, gpu, monkeypatch):
    raised = []
    # That of pytest keeps the exception.
    monkeypatch.setattr(sys, "unraisablehook", lambda caught: raised.append(caught.exc_type))

    class Raising(Box):
        def __del__(self):
            raise KeyError

    main["kept"] = Raising(gpu.empty(SIZE))

    assert gpuviz.release("kept") == SIZE
    assert raised == [KeyError]


def test_a_release_returns_what_was_freed_even_if_a_finalizer_keeps_some(main, gpu):
    rescued = []

    class Rescuing(Box):
        def __del__(self):
            rescued.append(self.value)

    main["kept"] = [Rescuing(gpu.empty(SIZE)), gpu.empty(SIZE)]

    assert gpuviz.release("kept") == SIZE
    assert used(gpu) == SIZE
    assert [array.nbytes for array in rescued] == [SIZE]


def test_objects_that_die_in_other_threads_during_a_search_do_no_harm(main, gpu):
    main["kept"] = [gpu.empty(SIZE)]
    stop = threading.Event()

    def churn():
        while not stop.is_set():
            main["churned"] = [Box([gpu.empty(512)]) for _ in range(50)]

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        found = {only_holder() for _ in range(share_of(20))}
    finally:
        stop.set()
        thread.join()

    assert found == {"kept[0]"}
