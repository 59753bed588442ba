"""Letting go of what keeps GPU memory alive: listed by `gpuviz.holders`, done by `release`."""

import gc
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from gpuviz import _core
from gpuviz.allocator.memory import empty_cache
from gpuviz.frameworks.torch_holders import release_cached
from gpuviz.ownership.caches import clear
from gpuviz.ownership.held_memory import HeldBlock, Release
from gpuviz.ownership.identity import Seen
from gpuviz.ownership.live_memory import cupy_pool_bytes
from gpuviz.ownership.names import LAST_EXCEPTION, LAST_RESULTS, TRACEBACKS, field_of, running_shell
from gpuviz.simulation.known_gpus import simulated_allocators

# A variable's name is an identifier or an expression with brackets; these are neither.
EXCEPTION, CYCLES = "last exception", "reference cycles"
PLANS, POOLS = "FFT plans", "cached memory"
CYCLE, _PLANS, _EXCEPTION = ("cycle",), ("plans",), ("exception",)


class KeyedBlock(NamedTuple):
    """A block with the keys of all its holders, and the objects by which it is recognized."""

    block: HeldBlock
    keys: tuple[tuple[Any, ...], ...] = ()
    objects: tuple[Any, ...] = ()


class Offer(NamedTuple):
    """Something that can be let go, and what does so."""

    release: Release
    let_go: Callable[[], object]


def offers(
    blocks: Sequence[KeyedBlock],
    results: Mapping[int, str],
    in_caches: Mapping[str, tuple[Any, Sequence[KeyedBlock]]],
    releasable: int,
    *,
    is_complete: bool,
) -> list[Offer]:
    """Return what can be let go, with the bytes of the blocks that nothing else keeps.

    Args:
        blocks: The blocks.
        results: The names of displayed results, by id.
        in_caches: The caches of `functools.lru_cache` by name, and the blocks that clearing frees.
        releasable: Bytes that the pools can release to the device.
        is_complete: Whether all blocks were searched.
    """
    held: dict[tuple[Any, ...], list[KeyedBlock]] = {}
    for each in blocks:
        if each.block.only is not None and each.block.only.kind == "plan cache":
            held.setdefault(_PLANS, []).append(each)
        elif len(each.keys) == 1:
            held.setdefault(each.keys[0], []).append(each)
    let_go: dict[str, tuple[str, Callable[[], object], Sequence[KeyedBlock]]] = {
        name: (title, action, of_key)
        for key, of_key in held.items()
        for name, title, action in _named(key, results)
    }
    for name, (cache, of_cache) in in_caches.items():
        let_go[name] = f"Clear the {name}", partial(clear, cache), of_cache
    collectable = sum(each.block.size for each in held.get(CYCLE, ()))
    found = []
    for name, (title, action, of_name) in let_go.items():
        collects = name != CYCLES and any(each.block.needs_collection for each in of_name)
        nbytes = sum(each.block.size for each in of_name) + collects * collectable
        release = _release(name, title, nbytes, collects=collects)
        if name != CYCLES:  # nobody can use what these hold
            objects = (each for block in of_name for each in block.objects)
            release = replace(release, seen=Seen(objects, is_complete=is_complete))
        found.append(Offer(release, action))
    found.sort(key=lambda each: -each.release.nbytes)
    if releasable:
        found.append(Offer(_release(POOLS, "Empty the pools", releasable), _empty_pools))
    return found


def _release(name: str, title: str, nbytes: int, *, collects: bool = False) -> Release:
    also = " and collect reference cycles" if collects else ""
    code = f"gpuviz.release({_literal(name)})"
    return Release(f"{title}{also}", name, nbytes, code, collects)


def _named(
    key: tuple[Any, ...], results: Mapping[int, str]
) -> Iterator[tuple[str, str, Callable[[], object]]]:
    """Yield the name, the title and the action of a key that can be let go."""
    if key[0] == "variable":
        name = _expression(key[1])
        yield name, f"Delete {name}", partial(_delete, key[1], key[2])
    elif key[0] == "result":
        name = results[key[1]]
        yield name, f"Drop {name}", partial(_drop_result, key[1])
    elif key == _EXCEPTION:
        yield EXCEPTION, "Forget the last exception", _forget_exception
    elif key == CYCLE:
        yield CYCLES, "Collect reference cycles", gc.collect
    elif key == _PLANS:
        yield PLANS, "Clear CuPy's cache of FFT plans", _clear_plans


def _expression(name: str) -> str:
    return name if name.isidentifier() else f"globals()[{name!r}]"


def _literal(text: str) -> str:
    """Return a text as Python code."""
    code = repr(text)
    return f'"{text}"' if code == f"'{text}'" and '"' not in text else code


def _namespace() -> dict[str, Any]:
    shell = running_shell()
    namespace: dict[str, Any] = vars(sys.modules["__main__"]) if shell is None else shell.user_ns
    return namespace


def _namespaces() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the user's names, and IPython's copies of those that ``%who`` does not list."""
    return _namespace(), field_of(running_shell(), "user_ns_hidden") or {}


def _delete(name: str, identity: int) -> None:
    for names in _namespaces():
        if id(names.get(name)) == identity:
            del names[name]


def _drop_result(identity: int) -> None:
    shell = running_shell()
    outputs = _namespace().get("_oh", {})
    numbers = [key for key, value in outputs.items() if id(value) == identity]
    for number in numbers:
        del outputs[number]
    own = {f"_{number}" for number in numbers if type(number) is int}
    for names in _namespaces():
        for name in own & names.keys():
            if id(names[name]) == identity:
                del names[name]
    for places in (*_namespaces(), _core.fields_of(field_of(shell, "displayhook")) or {}):
        _set_none(places, LAST_RESULTS, identity)
    last = _core.fields_of(field_of(shell, "last_execution_result")) or {}
    _set_none(last, ("result",), identity)


def _set_none(places: dict[str, Any], names: tuple[str, ...], identity: int) -> None:
    for name in names:
        if id(places.get(name)) == identity:
            places[name] = None


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


def _clear_plans() -> None:
    from gpuviz.frameworks.cupy import release_caches

    release_caches(plans=True, pool=False)


def _empty_pools() -> None:
    empty_cache()
    release_cached()
    for allocator in simulated_allocators():
        allocator.empty_cache()
    if cupy_pool_bytes() != (0, 0):
        from gpuviz.frameworks.cupy import release_caches

        release_caches(plans=False, pool=True)
