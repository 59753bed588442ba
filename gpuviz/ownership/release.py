"""Letting go of what keeps GPU memory alive: promised by `gpuviz.holders`, done by `release`."""

import gc
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpuviz import _core
from gpuviz.allocator.memory import empty_cache
from gpuviz.ownership.caches import clear
from gpuviz.ownership.held_memory import HeldBlock, Release
from gpuviz.ownership.live_memory import cupy_pool_bytes
from gpuviz.ownership.names import LAST_EXCEPTION, LAST_RESULTS, TRACEBACKS, field_of, running_shell
from gpuviz.simulation.gpu import simulated_allocators

EXCEPTION, CYCLES, PLANS, POOLS = "exception", "cycles", "plans", "pools"
CYCLE, _PLANS = ("cycle",), ("plans",)
Keyed = tuple[HeldBlock, tuple[tuple[Any, ...], ...]]


def releases_of(
    blocks: Sequence[Keyed],
    results: Mapping[int, str],
    in_caches: Mapping[str, Sequence[HeldBlock]],
    releasable: int,
) -> tuple[Release, ...]:
    """Return what can be let go, with the bytes of the blocks that nothing else keeps.

    Args:
        blocks: The blocks, each with the keys of all its holders.
        results: The names of displayed results, by id.
        in_caches: The blocks that clearing a cache of `functools.lru_cache` frees, by its name.
        releasable: Bytes that the pools can release to the device.
    """
    held: dict[tuple[Any, ...], list[HeldBlock]] = {}
    for block, keys in blocks:
        if block.only is not None and block.only.kind == "plan cache":
            held.setdefault(_PLANS, []).append(block)
        elif len(keys) == 1:
            held.setdefault(keys[0], []).append(block)
    collectable = sum(block.size for block in held.get(CYCLE, ()))
    found = []
    for key, of_key in held.items():
        nbytes = sum(block.size for block in of_key)
        collects = key != CYCLE and any(block.needs_collection for block in of_key)
        release = _release(key, nbytes + collects * collectable, results, collects=collects)
        if release is not None:
            found.append(release)
    for name, of_cache in in_caches.items():
        nbytes = sum(block.size for block in of_cache)
        collects = any(block.needs_collection for block in of_cache)
        also = " and collect reference cycles" if collects else ""
        total = nbytes + collects * collectable
        found.append(_named(name, f"Clear the {name}{also}", total, collects=collects))
    found.sort(key=lambda each: -each.nbytes)
    if releasable:
        found.append(_named(POOLS, "Empty the pools", releasable))
    return tuple(found)


def _release(
    key: tuple[Any, ...], nbytes: int, results: Mapping[int, str], *, collects: bool
) -> Release | None:
    also = " and collect reference cycles" if collects else ""
    if key[0] == "variable":
        return _named(key[1], f"Delete {key[1]}{also}", nbytes, collects=collects)
    if key[0] == "result":
        name = results[key[1]]
        return _named(name, f"Drop {name}{also}", nbytes, collects=collects)
    if key[0] == EXCEPTION:
        return _named(EXCEPTION, f"Forget the last exception{also}", nbytes, collects=collects)
    if key == CYCLE:
        return _named(CYCLES, "Collect reference cycles", nbytes)
    if key == _PLANS:
        return _named(PLANS, "Clear CuPy's cache of FFT plans", nbytes)
    return None


def _named(name: str, title: str, nbytes: int, *, collects: bool = False) -> Release:
    return Release(title, name, nbytes, f'gpuviz.release("{name}")', collects)


def perform(release: Release, cache: Any) -> None:
    """Let go of what ``release`` names, or of the entries of its ``cache`` unless that is None."""
    actions: dict[str, Callable[[], object]] = {
        EXCEPTION: _forget_exception,
        CYCLES: gc.collect,
        PLANS: _clear_plans,
        POOLS: _empty_pools,
    }
    if cache is not None:
        clear(cache)
    elif release.name in actions:
        actions[release.name]()
    else:
        namespace = _namespace()
        if release.name in namespace and release.name not in LAST_RESULTS:
            for names in (namespace, _hidden()):
                names.pop(release.name, None)
        else:
            _drop_result(release.name)
    if release.collects:
        gc.collect()


def _namespace() -> dict[str, Any]:
    shell = running_shell()
    namespace: dict[str, Any] = vars(sys.modules["__main__"]) if shell is None else shell.user_ns
    return namespace


def _hidden() -> dict[str, Any]:
    """Return IPython's copies of the names that ``%who`` does not list."""
    return field_of(running_shell(), "user_ns_hidden") or {}


def _forget_exception() -> None:
    for name in LAST_EXCEPTION:
        vars(sys).pop(name, None)
    shell = running_shell()
    for name in TRACEBACKS:
        _clear(field_of(shell, name), ("tb", "pdb"))
    _clear(field_of(shell, "last_execution_result"), ("error_before_exec", "error_in_exec"))


def _clear(value: Any, attributes: tuple[str, ...]) -> None:
    fields = _core.fields_of(value) or {}
    for name in fields.keys() & {*attributes}:
        fields[name] = None


def _drop_result(name: str) -> None:
    namespace, shell = _namespace(), running_shell()
    hook = _core.fields_of(field_of(shell, "displayhook")) or {}
    last = _core.fields_of(field_of(shell, "last_execution_result")) or {}
    number = name.removeprefix("Out[").removesuffix("]")
    value = namespace.get(name, last.get("result"))
    if number.isdigit():
        value = namespace.get("_oh", {}).pop(int(number), None)
        for names in (namespace, _hidden()):
            names.pop(f"_{number}", None)
    for places in (namespace, _hidden(), hook):
        for each in LAST_RESULTS:
            if places.get(each) is value:
                places[each] = None
    if last.get("result") is value:
        last["result"] = None


def _clear_plans() -> None:
    from gpuviz.frameworks.cupy import release_caches

    release_caches(plans=True, pool=False)


def _empty_pools() -> None:
    empty_cache()
    for allocator in simulated_allocators():
        allocator.empty_cache()
    if cupy_pool_bytes() != (0, 0):
        from gpuviz.frameworks.cupy import release_caches

        release_caches(plans=False, pool=True)
