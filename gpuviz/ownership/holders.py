"""`gpuviz.holders`: who keeps GPU memory alive."""

import gc
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from traceback import clear_frames
from types import CoroutineType, GeneratorType
from typing import Any

from gpuviz import _core
from gpuviz.allocator.arguments import integer
from gpuviz.frameworks.torch_holders import TensorBlock, hidden_references
from gpuviz.ownership.caches import LRU_CACHE, Caches
from gpuviz.ownership.held_memory import HeldBlock, HeldMemory, Holder, HolderKind, Release
from gpuviz.ownership.identity import owner_mark
from gpuviz.ownership.live_memory import (
    CUDA,
    LiveMemory,
    live_memory,
    owner_types,
    place_of,
    reserved_bytes,
    used_bytes,
)
from gpuviz.ownership.names import ProcessNames, thread_name
from gpuviz.ownership.paths import PathNames, cache_name, is_class
from gpuviz.ownership.release import CYCLE, POOLS, KeyedBlock, Offer, offers
from gpuviz.ownership.sources import PLAN_CACHE, PLAN_CACHES, PLANS_NAME, Source, Sources
from gpuviz.quantities import format_bytes

DEFAULT_AT_LEAST = 1 << 20
# The native search lists no more; a block with as many may have more.
_MOST_PATHS = 64


def holders(at_least: int = DEFAULT_AT_LEAST, *, most: int | None = None) -> HeldMemory:
    """Return who keeps GPU memory alive in this process.

    The search follows every Python reference, without calling code of any object, and keeps none.
    It finds the memory of CuPy's arrays, of `gpuviz.SimulatedGPU`, and of torch's tensors, with
    their gradients and what the graphs of autograd save; memory of other libraries that comes from
    gpuviz's allocator has an unknown holder.

    Args:
        at_least: Only blocks of at least this many bytes.
        most: Only this many blocks, the largest ones, which is faster in a large process.

    Raises:
        TypeError: An argument is no integer.
        ValueError: An argument is negative.
    """
    integer("at_least", at_least, "a number of bytes")
    if most is not None:
        integer("most", most, "a number of blocks or None")
    return _held_memory(at_least, most)[0]


def _held_memory(at_least: int, most: int | None) -> tuple[HeldMemory, list[Offer]]:
    """Return the memory with its holders, and what can be let go."""
    # The objects made here would otherwise cause a collection, which visits all objects.
    was_enabled = gc.isenabled()
    try:
        gc.disable()
        return _searched(at_least, most)
    except BaseException as error:
        # A notebook keeps the traceback of an interrupted search, and with it what was found.
        clear_frames(error.__traceback__)
        raise
    finally:
        if was_enabled:
            gc.enable()


def _searched(at_least: int, most: int | None) -> tuple[HeldMemory, list[Offer]]:
    memory = live_memory()
    # What can be let go includes small blocks.
    wanted = sorted(memory.blocks, key=lambda place: -memory.blocks[place][0])[:most]
    search = _Search(at_least)
    addresses = [address for _, address in wanted]
    blocks, owned = search.blocks(memory, addresses if memory.is_complete else None)
    for place, address in wanted:
        if (place, address) not in owned:
            size, device = memory.blocks[place, address]
            blocks.append(KeyedBlock(HeldBlock(address, size, device, (), None, False)))
    blocks.sort(key=lambda each: -each.block.size)
    offered = offers(
        blocks,
        search.results,
        search.caches.clearable(),
        memory.releasable,
        is_complete=most is None,
    )
    held_memory = HeldMemory(
        blocks=tuple(each.block for each in blocks[:most] if each.block.size >= at_least),
        releases=tuple(each.release for each in offered),
        used=used_bytes(),
        cached=memory.cached,
    )
    return held_memory, offered


def release(what: str | Release) -> int:
    """Let go of something that keeps GPU memory alive, and return the bytes that it freed.

    The memory stays in the pool, except for ``cached memory``.

    Args:
        what: A `Release` of `holders`, or its name, for what has this name now: a variable, an
            output such as ``Out[3]``, ``last exception`` (all places in which IPython and Python
            keep it), ``reference cycles``, ``cache of f()`` (of `functools.lru_cache`), ``FFT
            plans`` (CuPy's cache of them) or ``cached memory`` (of the pools).

    Raises:
        TypeError: It is neither.
        ValueError: Letting go of this alone would free nothing, or what `holders` listed under the
            name has changed since.
    """
    if not isinstance(what, str | Release):
        raise TypeError(f"what must be a name or a Release of gpuviz.holders(), got {what!r:.80}")
    name = what if isinstance(what, str) else what.name
    held, offered = _held_memory(0, None)
    chosen = next((each for each in offered if each.release.name == name), None)
    if chosen is None:
        names = ", ".join(each.name for each in held.releases) or "nothing"
        raise ValueError(
            f"letting go of {name!r:.80} would free no memory; of these it would: {names}"
        )
    if isinstance(what, Release):
        _check_same(what, chosen.release)
    offered.clear()  # Without these references, what is let go can be freed.
    before = _bytes_of(name)
    chosen.let_go()
    if chosen.release.collects:
        gc.collect()
    return before - _bytes_of(name)


def _check_same(listed: Release, now: Release) -> None:
    if listed.seen is None or now.seen is None or listed.seen.are_in(now.seen):
        return
    raise ValueError(
        f"{now.name} is no longer what was listed: letting go of it would have freed "
        f"{format_bytes(listed.nbytes)} then, and {format_bytes(now.nbytes)} of other memory now. "
        f"Nothing was released"
    )


def _bytes_of(name: str) -> int:
    return reserved_bytes() if name == POOLS else used_bytes()


class _Search:
    """One search; its objects are dropped with it."""

    def __init__(self, at_least: int) -> None:
        self._at_least = at_least
        self._process = ProcessNames()
        self._paths = PathNames({})
        self.results: Mapping[int, str] = {}
        values = (id(each.values) for each in self._process.names)
        self.caches: Caches[KeyedBlock] = Caches({*map(id, self._process.skipped), *values})

    def blocks(
        self, memory: LiveMemory, wanted: list[int] | None
    ) -> tuple[list[KeyedBlock], set[tuple[int, int]]]:
        """Return the blocks with the keys of their sources, and their places."""
        process = self._process
        hidden = hidden_references(
            {
                address: size
                for (place, address), (size, _) in memory.blocks.items()
                if place == CUDA
            }
        )
        self._paths = PathNames(hidden.texts)
        owners, labels, _ = _core.find_holders(
            owner_types(),
            getattr(sys.modules.get("numpy"), "ndarray", None),
            process.skipped,
            [(each.values, each.tier, each.is_copy) for each in process.names],
            wanted,
            (hidden.objects, hidden.counts, hidden.pairs),
        )
        named = Sources(process, labels)
        self.results, sources = named.results, named.all
        blocks: list[KeyedBlock] = []
        places: set[tuple[int, int]] = set()
        for owner, address, nbytes, paths, dominators, is_cyclic in owners:
            place = place_of(owner), address
            places.add(place)
            size, device = memory.blocks.get(place, (nbytes, 0))
            found: dict[tuple[Any, ...], Holder] = {}
            for number, path in paths:
                source = sources[number]
                if source.key not in found:
                    way = path if size >= self._at_least else []
                    found[source.key] = self._holder(source, way)
            # What only a cycle keeps besides is freed with the others by a collection.
            in_cycle = found.pop(CYCLE, None) if len(found) > 1 else None
            listed = tuple(found.values())
            common = self._common(dominators) if len(paths) < _MOST_PATHS else None
            only = None
            if len(paths) < _MOST_PATHS:
                only = listed[0] if len(listed) == 1 else common
            block = HeldBlock(
                address, size, device, listed, only, is_cyclic or in_cycle is not None
            )
            # A tensor's memory is a new object in each search.
            marks = () if type(owner) is TensorBlock else (owner,)
            keyed = KeyedBlock(block, tuple(found), (*marks, *self._marks(paths, sources)))
            if common is not None and common.kind == "cache":
                self.caches.note(keyed, owner, dominators, common.name)
            blocks.append(keyed)
        return blocks, places

    def _marks(
        self, paths: Iterable[tuple[int, list[Any]]], sources: list[Source]
    ) -> Iterator[Any]:
        """Yield what the first name of a block holds, and an object near the block."""
        for number, path in paths:
            if path:
                if sources[number].key[0] in ("variable", "result"):
                    yield path[0]
                yield owner_mark(self._paths.shown(path))
                return

    def _holder(self, source: Source, path: list[Any]) -> Holder:
        special = self._common(path)
        kind = source.kind if special is None or source.kind == "exception" else special.kind
        text = self._paths.text(source.text, path) if path else source.text
        return Holder(kind, source.name, text)

    def _common(self, path: Iterable[Any]) -> Holder | None:
        """Return the first object of a path that is a holder of its own."""
        for each in path:
            kind = type(each)
            if issubclass(kind, threading.Thread):
                name = thread_name(each)
                return Holder("thread", f"thread {name}", f"thread {name}")
            if is_class(kind, "_asyncio", "Task"):
                return Holder("task", f"asyncio task {_task_name(each)}", "asyncio task")
            if is_class(kind, PLAN_CACHE, *PLAN_CACHES):
                return Holder("plan cache", PLANS_NAME, "FFT plan")
            if kind is LRU_CACHE:
                name = cache_name(each)
                return Holder("cache", name, f" → {name}")
            if kind is GeneratorType or kind is CoroutineType:
                what: HolderKind = "generator" if kind is GeneratorType else "coroutine"
                return Holder(what, f"{what} {each.__qualname__}()", what)
        return None


def _task_name(task: Any) -> str:
    name = type(task).get_name(task)
    return name if type(name) is str else "?"
