"""Recognition of objects that were seen before, without keeping them alive."""

import weakref
from collections.abc import Iterable
from typing import Any, Self


class Seen:
    """Objects that can be compared with those of a later search.

    An object that takes no weak reference, such as a list, is recognized by its address alone.
    Copies in other processes have seen nothing.

    Args:
        objects: The objects.
        is_complete: Whether a later search must find no others.
    """

    __slots__ = ("_is_complete", "_objects")

    def __init__(self, objects: Iterable[Any] = (), *, is_complete: bool = True) -> None:
        self._objects = {id(each): _weak(each) for each in objects}
        self._is_complete = is_complete

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        """Leave the weak references behind."""
        return type(self), ()

    def are_in(self, later: "Seen") -> bool:
        """Return whether a later search has found the same objects."""
        then, now = self._objects.keys(), later._objects.keys()  # noqa: SLF001 - of this class
        is_same = then == now if self._is_complete else then <= now
        are_alive = all(weak is None or weak() is not None for weak in self._objects.values())
        return bool(then) and is_same and are_alive


def owner_mark(path: Iterable[Any]) -> Any:
    """Return the last object of a path that takes a weak reference, else the last one."""
    objects = list(path)
    return next((each for each in reversed(objects) if _weak(each) is not None), objects[-1])


def _weak(value: Any) -> weakref.ref[Any] | None:
    try:
        return weakref.ref(value)
    except TypeError:
        return None
