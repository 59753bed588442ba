"""Caches of `functools.lru_cache` that alone keep GPU memory alive, and can be cleared."""

import functools
import gc
from collections.abc import Collection, Sequence
from types import ModuleType
from typing import Any, Generic, TypeVar

from gpuviz import _core

LRU_CACHE = functools._lru_cache_wrapper  # noqa: SLF001 - the class of cached functions
_MOST_OBJECTS = 10_000

T = TypeVar("T")


class Caches(Generic[T]):
    """The caches of one search, with the blocks that clearing each frees.

    Args:
        named: Ids of objects whose contents are held by name besides.
    """

    def __init__(self, named: Collection[int]) -> None:
        self._named = named
        self._found: dict[str, dict[int, tuple[Any, list[T]]]] = {}
        self._of_function: dict[int, Collection[int] | None] = {}

    def note(self, block: T, owner: Any, dominators: Sequence[Any], name: str) -> None:
        """Note a block if the entries of a cache alone keep it alive.

        Args:
            block: The block.
            owner: The object that owns it.
            dominators: The objects without each of which it would be free.
            name: Name of the cache that is among them.
        """
        cache = next(each for each in dominators if type(each) is LRU_CACHE)
        if id(cache) not in self._of_function:
            self._of_function[id(cache)] = self._held_by_function(cache)
        besides = self._of_function[id(cache)]
        if besides is not None and id(owner) not in besides:
            same_name = self._found.setdefault(name, {})
            same_name.setdefault(id(cache), (cache, []))[1].append(block)

    def clearable(self) -> dict[str, tuple[Any, list[T]]]:
        """Return the caches with their blocks by name, except those that share a name."""
        return {
            name: next(iter(same_name.values()))
            for name, same_name in self._found.items()
            if len(same_name) == 1
        }

    def _held_by_function(self, cache: Any) -> Collection[int] | None:
        """Return the ids of what a cached function holds besides its entries.

        Classes, modules and names are left out, because what they hold they hold without the cache.
        None if there is too much of it.
        """
        seen = {id(cache)}
        waiting: list[Any] = [_core.fields_of(cache)]
        while waiting:
            each = waiting.pop()
            if id(each) in seen or id(each) in self._named:
                continue
            if issubclass(type(each), type | ModuleType):
                continue
            seen.add(id(each))
            if len(seen) > _MOST_OBJECTS:
                return None
            waiting += gc.get_referents(each)
        return seen


def clear(cache: Any) -> None:
    """Clear a cache of `functools.lru_cache`."""
    LRU_CACHE.cache_clear(cache)
