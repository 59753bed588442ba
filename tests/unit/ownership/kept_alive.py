"""Programs that keep GPU memory alive by known means, and what `gpuviz.holders` says of each.

`keep(gpu)` of each program returns what the test assigns to the variable ``kept`` of ``__main__``.
"""

import asyncio
import collections
import contextlib
import functools
import itertools
import queue
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

# A size that no other test uses.
SIZE = (4 << 20) + 512


@dataclass
class Program:
    """A program with what holds its memory."""

    keep: Callable[[Any], Any]
    kind: str
    path: str


class Box:
    """An object with one attribute."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Pair(NamedTuple):
    """A named tuple."""

    number: int
    array: Any


class Slots:
    """An object without a dict."""

    __slots__ = ("field",)

    def __init__(self, field: Any) -> None:
        self.field = field


class Hostile:
    """An object whose own code must not run."""

    def __init__(self, field: Any) -> None:
        object.__setattr__(self, "field", field)

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(name)

    def __repr__(self) -> str:
        raise AssertionError

    def __eq__(self, other: object) -> bool:
        raise AssertionError

    def __hash__(self) -> int:
        raise AssertionError

    def __len__(self) -> int:
        raise AssertionError

    def __iter__(self) -> Iterator[Any]:
        raise AssertionError

    def __bool__(self) -> bool:
        raise AssertionError


class HostileMeta(type):
    """A class whose own code must not run, either."""

    def __getattribute__(cls, name: str) -> Any:
        raise AssertionError(name)


class HostileList(list):
    """A list whose iteration must not be called."""

    def __iter__(self) -> Iterator[Any]:
        raise AssertionError

    def __getitem__(self, key: Any) -> Any:
        raise AssertionError


class HostileDict(dict):
    """A dict whose items must not be called."""

    def items(self) -> Any:
        raise AssertionError

    def __getitem__(self, key: Any) -> Any:
        raise AssertionError


def _closure(gpu: Any) -> Any:
    array = gpu.empty(SIZE)

    def use() -> Any:
        return array

    return use


def _nested_closure(gpu: Any) -> Any:
    inner = _closure(gpu)
    return lambda: inner


def _default(gpu: Any) -> Any:
    def use(value: Any = gpu.empty(SIZE)) -> Any:  # noqa: B008
        return value

    return use


def _keyword_default(gpu: Any) -> Any:
    def use(*, value: Any = gpu.empty(SIZE)) -> Any:  # noqa: B008
        return value

    return use


def _function_attribute(gpu: Any) -> Any:
    def use() -> None: ...

    use.state = gpu.empty(SIZE)
    return use


def _cached(gpu: Any, limit: int | None = None) -> Any:
    @functools.lru_cache(maxsize=limit)
    def load(_: int) -> Any:
        return gpu.empty(SIZE)

    load(1)
    return load


def _cached_argument(gpu: Any) -> Any:
    @functools.lru_cache(maxsize=3)
    def load(_: Any) -> int:
        return 1

    load(gpu.empty(SIZE))
    return load


def _cached_property(gpu: Any) -> Any:
    class Model:
        @functools.cached_property
        def weights(self) -> Any:
            return gpu.empty(SIZE)

    model = Model()
    assert model.weights is not None
    return model


def _generator(gpu: Any) -> Any:
    def batches() -> Iterator[int]:
        batch = gpu.empty(SIZE)
        yield 1
        yield batch.nbytes

    found = batches()
    next(found)
    return found


def _generator_argument(gpu: Any) -> Any:
    def batches(batch: Any) -> Iterator[Any]:
        yield batch

    return batches(gpu.empty(SIZE))


def _delegating_generator(gpu: Any) -> Any:
    def outer() -> Iterator[int]:
        yield from _generator(gpu)

    found = outer()
    next(found)
    return found


def _coroutine(gpu: Any) -> Any:
    @types.coroutine
    def suspend() -> Iterator[None]:
        yield

    async def serve() -> None:
        request = gpu.empty(SIZE)
        await suspend()
        del request

    found = serve()
    found.send(None)
    return found


def _async_generator(gpu: Any) -> Any:
    async def stream() -> Any:
        chunk = gpu.empty(SIZE)
        yield 1
        yield chunk

    found = stream()
    with contextlib.suppress(StopIteration):
        found.asend(None).send(None)
    return found


def _exception(gpu: Any) -> Any:
    def fail() -> None:
        lost = gpu.empty(SIZE)
        raise ValueError(lost.nbytes)

    try:
        fail()
    except ValueError as error:
        return error


def _context_of_exception(gpu: Any) -> Any:
    def fail() -> None:
        raise _exception(gpu)

    try:
        try:
            fail()
        finally:
            raise KeyError
    except KeyError as error:
        return error


def _cause_of_exception(gpu: Any) -> Any:
    error = KeyError()
    error.__cause__ = _exception(gpu)
    return error


def _exception_argument(gpu: Any) -> Any:
    return ValueError("failed on", gpu.empty(SIZE))


def _exception_group(gpu: Any) -> Any:
    return ExceptionGroup("several", [_exception(gpu)])


def _traceback(gpu: Any) -> Any:
    return _exception(gpu).__traceback__


def _frame(gpu: Any) -> Any:
    return _exception(gpu).__traceback__.tb_next.tb_frame


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
    future.set_exception(_exception(gpu))
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
    "a closure": Program(_closure, "variable", "variable `array` in the closure of _closure"),
    "a closure in a closure": Program(_nested_closure, "variable", "variable `array` in the"),
    "a default argument": Program(_default, "variable", "default argument of _default"),
    "a keyword's default": Program(_keyword_default, "variable", "default argument of _keyword"),
    "an attribute of a function": Program(_function_attribute, "variable", "state"),
    "a cell": Program(lambda gpu: types.CellType(gpu.empty(SIZE)), "variable", "kept"),
    "functools.partial": Program(
        lambda gpu: functools.partial(print, gpu.empty(SIZE)), "variable", "partial of print()"
    ),
    "a keyword of partial": Program(
        lambda gpu: functools.partial(print, end=gpu.empty(SIZE)), "variable", "partial of print()"
    ),
    "an unbounded cache": Program(_cached, "cache", "cache of _cached.<locals>.load()"),
    "a bounded cache": Program(
        lambda gpu: _cached(gpu, 4), "cache", "cache of _cached.<locals>.load()"
    ),
    "an argument in a cache": Program(_cached_argument, "cache", "cache of _cached_argument"),
    "a cached property": Program(_cached_property, "variable", "kept.weights"),
    "a generator": Program(_generator, "generator", "local `batch` of generator _generator"),
    "a generator's argument": Program(_generator_argument, "generator", "local `batch` of"),
    "yield from": Program(_delegating_generator, "generator", "local `batch` of generator"),
    "a coroutine": Program(_coroutine, "coroutine", "local `request` of coroutine"),
    "an async generator": Program(_async_generator, "variable", "async_generator"),
    "an exception": Program(_exception, "variable", "local `lost` of _exception"),
    "an exception's context": Program(_context_of_exception, "variable", "local `lost` of"),
    "an exception's cause": Program(_cause_of_exception, "variable", "local `lost` of"),
    "an exception's argument": Program(_exception_argument, "variable", "exception ValueError"),
    "a group of exceptions": Program(_exception_group, "variable", "local `lost` of"),
    "a traceback": Program(_traceback, "variable", "local `lost` of"),
    "a frame": Program(_frame, "variable", "local `lost` of"),
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
