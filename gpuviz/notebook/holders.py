"""Variable names of the arrays in a notebook."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import Any

from gpuviz.frameworks.arrays import address_of

_DEEPEST = 3
_MOST_VALUES = 20_000
_RESULTS = "Out"
_OF_IPYTHON = frozenset(("In", "_ih", "_oh", "_dh", "exit", "quit", "get_ipython", "open"))


class Holders:
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
    if type(value) in (list, tuple):
        return [(f"{name}[{number}]", part) for number, part in enumerate(value[:_MOST_VALUES])]
    if isinstance(value, dict):
        return [(f"{name}[{key!r:.40}]", part) for key, part in list(value.items())[:_MOST_VALUES]]
    module = type(value).__module__
    if module == "__main__" and hasattr(value, "__dict__") and not isinstance(value, type):
        return [(f"{name}.{field}", part) for field, part in list(vars(value).items())]
    return []


def _locals_of(
    error: BaseException | None,
    namespace: Mapping[str, Any],
) -> Iterator[tuple[str, Any]]:
    """Yield the local variables of the functions in an exception's traceback."""
    traceback = None if error is None else error.__traceback__
    while traceback is not None:
        frame, traceback = traceback.tb_frame, traceback.tb_next
        if frame.f_globals is namespace and frame.f_locals is not namespace:
            for name, value in _values(frame.f_locals):
                yield f"{name} of {frame.f_code.co_name}() in the last traceback", value
