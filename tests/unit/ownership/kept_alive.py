"""Programs that keep GPU memory alive by known means, and what `gpuviz.holders` says of each.

`keep(gpu)` of each program returns what the test assigns to the variable ``kept`` of ``__main__``.
"""

import asyncio
import collections
import itertools
import queue
import threading
import types
import weakref
from typing import Any

import numpy as np

from tests.unit.ownership.held_objects import (
    Box,
    Hostile,
    HostileDict,
    HostileList,
    HostileMeta,
    Pair,
    Slots,
)
from tests.unit.ownership.kept_by_frames import FRAMES
from tests.unit.ownership.kept_by_functions import FUNCTIONS
from tests.unit.ownership.kept_program import SIZE, Program


def _class_attribute(gpu: Any) -> Any:
    return type("Model", (), {"weights": gpu.empty(SIZE)})


def _class_of_instance(gpu: Any) -> Any:
    return _class_attribute(gpu)()


def _hostile_class(gpu: Any) -> Any:
    return HostileMeta("Model", (), {"weights": gpu.empty(SIZE)})


def _bound_method(gpu: Any) -> Any:
    class Model:
        def __init__(self) -> None:
            self.weights = gpu.empty(SIZE)

        def step(self) -> None: ...

    return Model().step


def _property(gpu: Any) -> Any:
    array = gpu.empty(SIZE)
    return property(lambda _: array)


def _future(gpu: Any) -> Any:
    from concurrent.futures import Future

    future: Future[Any] = Future()
    future.set_result(gpu.empty(SIZE))
    return future


def _failed_future(gpu: Any) -> Any:
    from concurrent.futures import Future

    future: Future[Any] = Future()
    future.set_exception(FRAMES["an exception"].keep(gpu))
    return future


def _queue(gpu: Any) -> Any:
    waiting: queue.Queue[Any] = queue.Queue()
    waiting.put(gpu.empty(SIZE))
    return waiting


def _local(gpu: Any) -> Any:
    local = threading.local()
    local.array = gpu.empty(SIZE)
    return local


def _weak_finalizer(gpu: Any) -> Any:
    key = Box(1)
    weakref.finalize(key, print, gpu.empty(SIZE)).atexit = False
    return key


def _weak_callback(gpu: Any) -> Any:
    key = Box(1)
    array = gpu.empty(SIZE)
    return [key, weakref.ref(key, lambda _: array)]


def _weak_key(gpu: Any) -> Any:
    key = Box(1)
    return [key, weakref.WeakKeyDictionary({key: gpu.empty(SIZE)})]


def _simple_cycle(gpu: Any) -> Any:
    array = [gpu.empty(SIZE)]
    array.append(array)
    return array


def _future_of_loop(gpu: Any) -> Any:
    loop = asyncio.new_event_loop()
    loop.close()
    future = loop.create_future()
    future._callbacks  # noqa: B018 - made by C
    loop.kept = gpu.empty(SIZE)
    return future


def _module(gpu: Any) -> Any:
    module = types.ModuleType("settings")
    module.array = gpu.empty(SIZE)
    return module


def _object_array(gpu: Any) -> Any:
    array = np.empty(2, dtype=object)
    array[1] = gpu.empty(SIZE)
    return array


PROGRAMS: dict[str, Program] = {
    "a variable": Program(lambda gpu: gpu.empty(SIZE), "variable", "kept"),
    "a list": Program(lambda gpu: [1, gpu.empty(SIZE)], "variable", "kept[1]"),
    "a tuple": Program(lambda gpu: (gpu.empty(SIZE),), "variable", "kept[0]"),
    "a dict": Program(lambda gpu: {"w": gpu.empty(SIZE)}, "variable", "kept['w']"),
    "a key of a dict": Program(lambda gpu: {gpu.empty(SIZE): 1}, "variable", "kept"),
    "a set": Program(lambda gpu: {gpu.empty(SIZE)}, "variable", "kept"),
    "a frozenset": Program(lambda gpu: frozenset([gpu.empty(SIZE)]), "variable", "kept"),
    "a nested list": Program(lambda gpu: [[[gpu.empty(SIZE)]]], "variable", "kept[0][0][0]"),
    "a large list": Program(lambda gpu: [*range(9000), gpu.empty(SIZE)], "variable", "kept[9000]"),
    "an ordered dict": Program(
        lambda gpu: collections.OrderedDict(w=gpu.empty(SIZE)), "variable", "kept['w']"
    ),
    "a default dict": Program(
        lambda gpu: collections.defaultdict(list, w=[gpu.empty(SIZE)]), "variable", "kept['w'][0]"
    ),
    "a deque": Program(lambda gpu: collections.deque([gpu.empty(SIZE)]), "variable", "kept"),
    "a chain of dicts": Program(
        lambda gpu: collections.ChainMap({"w": gpu.empty(SIZE)}), "variable", "kept.maps[0]['w']"
    ),
    "a named tuple": Program(lambda gpu: Pair(1, gpu.empty(SIZE)), "variable", "kept[1]"),
    "a simple namespace": Program(
        lambda gpu: types.SimpleNamespace(w=gpu.empty(SIZE)), "variable", "kept.w"
    ),
    "a read-only mapping": Program(
        lambda gpu: types.MappingProxyType({"w": gpu.empty(SIZE)}), "variable", "kept"
    ),
    "an object": Program(lambda gpu: Box(gpu.empty(SIZE)), "variable", "kept.value"),
    "an object in an object": Program(
        lambda gpu: Box(Box(gpu.empty(SIZE))), "variable", "kept.value.value"
    ),
    "slots": Program(lambda gpu: Slots(gpu.empty(SIZE)), "variable", "kept.field"),
    "a hostile object": Program(lambda gpu: Hostile(gpu.empty(SIZE)), "variable", "kept.field"),
    "a hostile list": Program(lambda gpu: HostileList([gpu.empty(SIZE)]), "variable", "kept[0]"),
    "a hostile dict": Program(lambda gpu: HostileDict(w=gpu.empty(SIZE)), "variable", "kept['w']"),
    **FUNCTIONS,
    **FRAMES,
    "an attribute of a class": Program(_class_attribute, "class", "Model.weights"),
    "the class of an instance": Program(_class_of_instance, "class", "Model.weights"),
    "a hostile class": Program(_hostile_class, "class", "Model.weights"),
    "a bound method": Program(_bound_method, "variable", "weights"),
    "a property": Program(_property, "variable", "variable `array` in the closure of _property"),
    "a future": Program(_future, "variable", "kept._result"),
    "a failed future": Program(_failed_future, "variable", "local `lost` of"),
    "a queue": Program(_queue, "variable", "kept.queue"),
    "a thread's local data": Program(_local, "variable", "kept"),
    "a finalizer": Program(_weak_finalizer, "class", "finalize._registry"),
    "a callback of a weak reference": Program(_weak_callback, "variable", "in the closure of"),
    "a weak key's value": Program(_weak_key, "variable", "kept[1].data"),
    "a cycle in a variable": Program(_simple_cycle, "variable", "kept[0]"),
    "an event loop": Program(_future_of_loop, "variable", "kept"),
    "a module": Program(_module, "variable", "array"),
    "an array of objects": Program(_object_array, "variable", "an element of the numpy array"),
    "a view of such an array": Program(
        lambda gpu: _object_array(gpu)[1:], "variable", "an element of the numpy array"
    ),
    "an iterator": Program(lambda gpu: iter([gpu.empty(SIZE)]), "variable", "kept"),
    "itertools": Program(lambda gpu: itertools.chain([gpu.empty(SIZE)]), "variable", "kept"),
    "a memory of map": Program(lambda gpu: map(print, [gpu.empty(SIZE)]), "variable", "kept"),
    "two of a list": Program(lambda gpu: [gpu.empty(SIZE)] * 2, "variable", "kept["),
}
