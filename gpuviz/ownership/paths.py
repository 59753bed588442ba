"""How one object refers to the next, as a user would write it; no object's code runs."""

import functools
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from types import (
    BuiltinFunctionType,
    CellType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    MemberDescriptorType,
    MethodType,
    NoneType,
    TracebackType,
)
from typing import Any

from gpuviz import _core
from gpuviz.ownership.caches import LRU_CACHE
from gpuviz.ownership.names import local_variables

_LONGEST_KEY = 40
# Ids of classes whose `repr` is C code that calls no other. Comparing classes may run code.
_PLAIN = frozenset(map(id, (str, int, float, bool, bytes, NoneType)))
_ARROW = " → "
# Where a module of torch keeps what its attributes are.
_PARTS_OF_MODULE = ("_parameters", "_buffers", "_modules")
# Reads attributes of a class without those of its metaclass.
_OF_TYPE = vars(type)


def class_name(kind: type) -> str:
    """Return the qualified name of a class."""
    name: str = _OF_TYPE["__qualname__"].__get__(kind)
    return name


def is_class(kind: type, module: str, *names: str) -> bool:
    """Return whether a class has one of these names in this module."""
    return _OF_TYPE["__name__"].__get__(kind) in names and module_of(kind) == module


def module_of(kind: type) -> str:
    """Return the name of the module of a class; nothing if it is no text."""
    found = _OF_TYPE["__module__"].__get__(kind)
    return found if type(found) is str else ""


def key_text(key: Any) -> str:
    """Return a key of a dict as it is written in Python, or its class if only its code knows."""
    kind = type(key)
    if id(kind) in _PLAIN or (kind is tuple and all(id(type(part)) in _PLAIN for part in key)):
        return f"{key!r:.{_LONGEST_KEY}}"
    return f"a {class_name(kind)}"


class PathNames:
    """Names the references of paths; keeps the positions of what containers hold meanwhile.

    Args:
        hidden: How objects refer to what they do not show that they hold, by the ids of both.
    """

    def __init__(self, hidden: Mapping[tuple[int, int], str]) -> None:
        self._hidden = hidden
        self._positions: dict[int, dict[int, str]] = {}

    def shown(self, path: Sequence[Any]) -> Sequence[Any]:
        """Return a path up to the first reference that its object does not show."""
        for position, pair in enumerate(pairwise(path), 1):
            if (id(pair[0]), id(pair[1])) in self._hidden:
                return path[:position]
        return path

    def text(self, beginning: str, path: Sequence[Any]) -> str:
        """Return the way from a name through the objects of ``path``, the first of which it holds.

        Lists, dicts and attributes are written as in Python; other references in words.
        """
        text, is_code = beginning, True
        position = 0
        while position < len(path):
            owner = path[position]
            rest = path[position + 1 :]
            hidden = self._hidden.get((id(owner), id(rest[0]))) if rest else None
            if hidden is not None:
                text, is_code = f"{text}{hidden}", is_code and not hidden.startswith(_ARROW)
                position += 1
                continue
            words = _in_words(owner, rest)
            if words is not None:
                described, taken = words
                text, is_code = f"{text}{_ARROW}{described}" if described else text, False
                position += max(taken, 1)
                continue
            if not rest:
                break
            step, taken = self._step(owner, rest)
            if step[0] in "[.":
                text = f"{text}{step}" if is_code else f"{text}{_ARROW}{step.lstrip('.')}"
                is_code = True
            else:
                text, is_code = f"{text}{_ARROW}{step}", False
            position += taken
        return text

    def _step(self, owner: Any, rest: Sequence[Any]) -> tuple[str, int]:
        """Return how ``owner`` refers to the first of ``rest``, and for how many objects."""
        held = rest[0]
        kind = type(owner)
        if issubclass(kind, list | tuple | dict):
            # What is no value of a dict is a key.
            what = "a key" if issubclass(kind, dict) else "an item"
            return self._positions_in(owner).get(id(held), f"{what} of a {class_name(kind)}"), 1
        part = self._part_of_module(owner, rest)
        if part is not None:
            return part
        fields = _core.fields_of(owner)
        if fields is not None:
            if held is fields and len(rest) > 1:
                found = self._positions_in(fields).get(id(rest[1]))
                if found is not None:
                    return _as_attribute(found), 2
            found = self._positions_in(fields).get(id(held))
            if found is not None:
                return _as_attribute(found), 1
        for each in _OF_TYPE["__mro__"].__get__(kind):
            for name, slot in _OF_TYPE["__dict__"].__get__(each).items():
                if type(slot) is MemberDescriptorType and _slot_value(slot, owner) is held:
                    return f".{name}", 1
        return f"a {class_name(kind)}", 1

    def _part_of_module(self, module: Any, rest: Sequence[Any]) -> tuple[str, int] | None:
        """Return how a module of torch refers to a module, a parameter or a buffer."""
        fields = _core.fields_of(module)
        if fields is None or not _is_torch_module(type(module)):
            return None
        taken = 2 if rest[0] is fields else 1
        for name in _PARTS_OF_MODULE:
            parts = fields.get(name)
            if type(parts) is dict and len(rest) > taken and rest[taken - 1] is parts:
                found = self._positions_in(parts).get(id(rest[taken]))
                if found is not None:
                    number = found[2:-2]
                    is_number = number.isdigit()
                    return f"[{number}]" if is_number else _as_attribute(found), taken + 1
        return None

    def _positions_in(self, owner: Any) -> dict[int, str]:
        known = self._positions.get(id(owner))
        if known is None:
            if issubclass(type(owner), dict):
                known = {id(value): f"[{key_text(key)}]" for key, value in dict.items(owner)}
            else:
                items = (list if issubclass(type(owner), list) else tuple).__iter__(owner)
                known = {id(value): f"[{place}]" for place, value in enumerate(items)}
            self._positions[id(owner)] = known
        return known


def _is_torch_module(kind: type) -> bool:
    bases = _OF_TYPE["__mro__"].__get__(kind)
    return any(is_class(base, "torch.nn.modules.module", "Module") for base in bases)


def _in_words(owner: Any, rest: Sequence[Any]) -> tuple[str, int] | None:
    """Return what an object of the interpreter holds, and how many objects that covers."""
    kind = type(owner)
    describe = _WORDS.get(kind)
    if describe is not None:
        return describe(owner, rest)
    if issubclass(kind, BaseException):
        return f"exception {class_name(kind)}", 1
    if is_class(kind, "numpy", "ndarray"):
        is_view = rest and type(rest[0]) is kind
        return ("" if is_view else "an element of the numpy array"), 1
    return None


def cache_name(cache: Any) -> str:
    """Return the name of a cache of `functools.lru_cache`, such as ``cache of load()``."""
    return f"cache of {_function_name(cache)}"


def _of_cache(cache: Any, rest: Sequence[Any]) -> tuple[str, int]:
    # The objects of the cache itself are not worth a name.
    return f"{cache_name(cache)} (functools.lru_cache)", len(rest)


def _of_partial(partial: Any, rest: Sequence[Any]) -> tuple[str, int]:
    taken = 2 if rest and type(rest[0]) in (tuple, dict) else 1
    return f"argument of functools.partial of {_function_name(partial.func)}", taken


def _of_method(method: MethodType, _: Sequence[Any]) -> tuple[str, int]:
    return f"method {_function_name(method.__func__)}", 1


def _of_generator(generator: Any, rest: Sequence[Any]) -> tuple[str, int]:
    is_generator = type(generator) is GeneratorType
    frame = generator.gi_frame if is_generator else generator.cr_frame
    what = "generator" if is_generator else "coroutine"
    name = "" if frame is None else _local_name(frame, rest)
    return f"{name}{what} {generator.__qualname__}()", 1


def _of_frame(frame: FrameType, rest: Sequence[Any]) -> tuple[str, int]:
    name = _local_name(frame, rest)
    return (f"{name}{frame.f_code.co_qualname}() line {frame.f_lineno}" if name else ""), 1


def _passed(_owner: Any, _rest: Sequence[Any]) -> tuple[str, int]:
    return "", 1


def _of_function(function: FunctionType, rest: Sequence[Any]) -> tuple[str, int]:
    name = f"{function.__qualname__}()"
    held = rest[0] if rest else None
    if held is None:
        return f"function {name}", 1
    if held is function.__closure__:
        cells = zip(function.__code__.co_freevars, function.__closure__, strict=True)
        variable = next((each for each, cell in cells if any(cell is one for one in rest[1:2])), "")
        return f"variable `{variable}` in the closure of {name}", 3
    if held is function.__defaults__ or held is function.__kwdefaults__:
        return f"default argument of {name}", 2
    return f"function {name}", 1


def _function_name(function: Any) -> str:
    if type(function) is BuiltinFunctionType:
        return f"{function.__qualname__}()"
    if type(function) is LRU_CACHE:
        fields = _core.fields_of(function) or {}
        name = fields.get("__qualname__")
        return f"{name}()" if type(name) is str else "a function"
    return f"{function.__qualname__}()" if type(function) is FunctionType else "a function"


def _local_name(frame: FrameType, rest: Sequence[Any]) -> str:
    """Return ``local `x` of`` for the variable that holds an object or its cell; else nothing."""
    held = rest[0] if rest else None
    value = held.cell_contents if type(held) is CellType and _is_full(held) else held
    for name, each in local_variables(frame).items():
        if each is value and value is not None:
            return f"local `{name}` of "
    return ""


def _is_full(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - raises ValueError for an empty cell
    except ValueError:
        return False
    return True


def _slot_value(slot: MemberDescriptorType, owner: Any) -> Any:
    try:
        return slot.__get__(owner)
    except AttributeError:
        return None


def _as_attribute(position: str) -> str:
    """Return ``.x`` for ``['x']``."""
    name = position[2:-2]
    return f".{name}" if name.isidentifier() else position


_WORDS: dict[type, Callable[[Any, Sequence[Any]], tuple[str, int]]] = {
    FunctionType: _of_function,
    LRU_CACHE: _of_cache,
    functools.partial: _of_partial,
    MethodType: _of_method,
    CellType: _passed,
    GeneratorType: _of_generator,
    CoroutineType: _of_generator,
    TracebackType: _passed,
    FrameType: _of_frame,
}
