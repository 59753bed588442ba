"""Programs that keep GPU memory alive by closures, arguments and caches of functions."""

import functools
import types
from typing import Any

from tests.unit.ownership.kept_program import SIZE, Program


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


FUNCTIONS: dict[str, Program] = {
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
}
