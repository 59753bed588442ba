"""Variable names of arrays by their address, for arrays of any library.

`gpuviz.holders` finds all that keeps memory alive. This search takes a bounded time, because it
runs after each cell and when memory has run out, and knows arrays only by their interface.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from inspect import CO_OPTIMIZED
from itertools import chain, islice
from typing import Any

from gpuviz import _core
from gpuviz.ownership.names import local_variables
from gpuviz.ownership.paths import key_text, module_of
from gpuviz.simulation.arrays import SimulatedArray

_DEEPEST = 3
_MOST_VALUES = 20_000
_RESULTS = "Out"
_OF_IPYTHON = frozenset(("In", "_ih", "_oh", "_dh", "exit", "quit", "get_ipython", "open"))
_INTERFACE = "__cuda_array_interface__"


class ArrayNames:
    """The variables of a notebook that hold arrays on a GPU.

    A name is what a user would write: ``x``, ``parts[3]``, ``params['w']``, ``model.weight``, or
    ``Out[5]`` for the output of a cell. Lists, tuples, dicts and objects of the notebook's classes
    are searched to a depth of three; of very many values only the first are searched.

    Args:
        namespace: The notebook's variables.
        error: The last exception, whose traceback keeps local variables alive.
    """

    def __init__(self, namespace: Mapping[str, Any], error: BaseException | None = None) -> None:
        values = chain(_values(namespace), _locals_of(error, namespace))
        found = ((address_of(value), name) for name, value in values)
        self._found = sorted(pair for pair in islice(found, _MOST_VALUES) if pair[0])

    def of(self, address: int, size: int) -> tuple[str, ...]:
        """Return the names of arrays that begin in the block of ``size`` bytes at ``address``."""
        first = bisect_left(self._found, (address, ""))
        last = bisect_left(self._found, (address + max(size, 1), ""))
        return tuple(name for _, name in self._found[first:last])


def address_of(value: Any) -> int:
    """Return the address of a GPU array's first element; 0 if the value is not such an array.

    An array has ``__cuda_array_interface__``, such as those of CuPy and Numba, or belongs to a
    `gpuviz.SimulatedGPU`. No code of other values is called.
    """
    kind = type(value)
    if kind is SimulatedArray:
        return int(value.ptr)
    # A class with an ordinary metaclass runs no code for this.
    if not (hasattr(kind, _INTERFACE) if type(kind) is type else _has_interface(kind)):
        return 0
    try:
        return int(getattr(value, _INTERFACE)["data"][0])
    except Exception:  # noqa: BLE001 - a foreign property may raise anything
        return 0


def _has_interface(kind: type) -> bool:
    try:
        # Looks the name up without code of the metaclass.
        type.__getattribute__(kind, _INTERFACE)
    except AttributeError:
        return False
    return True


def _values(namespace: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield each reachable value with its name; each container is searched once."""
    seen: set[int] = set()
    level = [(name, namespace[name]) for name in list(namespace) if _is_users(name)]
    for _ in range(_DEEPEST + 1):
        yield from level
        inside = []
        for name, value in level:
            if id(value) not in seen:
                seen.add(id(value))
                inside += _inside(name, value)
        level = inside


def _is_users(name: str) -> bool:
    """Return whether a name is the user's and not IPython's."""
    return name == _RESULTS or (name not in _OF_IPYTHON and not name.startswith("_"))


def _inside(name: str, value: Any) -> list[tuple[str, Any]]:
    """Return what a value holds, with names; calls no code of the value's class."""
    kind = type(value)
    if kind is int or kind is float or kind is str:
        return []
    if issubclass(kind, (list, tuple)):
        parts = (list if issubclass(kind, list) else tuple).__iter__(value)
        return [(f"{name}[{n}]", part) for n, part in enumerate(islice(parts, _MOST_VALUES))]
    if issubclass(kind, dict):
        return [(f"{name}[{key_text(key)}]", part) for key, part in _first(value)]
    if module_of(kind) == "__main__" and not issubclass(kind, type):
        fields = _core.fields_of(value) or {}
        return [(f"{name}.{field}", part) for field, part in _first(fields)]
    return []


def _first(items: dict[Any, Any]) -> list[tuple[Any, Any]]:
    # Copied at once, because another thread may change it.
    return list(dict.items(items))[:_MOST_VALUES]


def _locals_of(
    error: BaseException | None,
    namespace: Mapping[str, Any],
) -> Iterator[tuple[str, Any]]:
    """Yield the local variables of the functions in an exception's traceback."""
    traceback = None if error is None else error.__traceback__
    while traceback is not None:
        frame, traceback = traceback.tb_frame, traceback.tb_next
        if frame.f_globals is namespace and frame.f_code.co_flags & CO_OPTIMIZED:
            for name, value in _values(local_variables(frame)):
                yield f"{name} of {frame.f_code.co_name}() in the last traceback", value
