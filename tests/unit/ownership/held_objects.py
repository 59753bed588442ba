"""Objects that hold an array, also such whose own code must not run."""

from collections.abc import Iterator
from typing import Any, NamedTuple


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
