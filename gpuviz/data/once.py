"""Values of a recording, or of what was made of one, that are computed on first use and kept."""

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Generic, Protocol, TypeVar


class Keeper(Protocol):
    """Keeps values that `Once` has computed, by the function that computes them."""

    @property
    def computed(self) -> "dict[Once[Any, Any], Any]":
        """The values."""
        ...


S = TypeVar("S", bound=Keeper)
T = TypeVar("T")


class Once(Generic[S, T]):
    """A function whose value is computed once for each recording or other `Keeper`.

    Args:
        compute: The function; its argument keeps the value.
    """

    def __init__(self, compute: Callable[[S], T]) -> None:
        self._compute = compute
        update_wrapper(self, compute)

    def __call__(self, source: S) -> T:
        """Return the value for a recording or other `Keeper`."""
        if self not in source.computed:
            source.computed[self] = self._compute(source)
        value: T = source.computed[self]
        return value

    def is_known(self, source: S) -> bool:
        """Return whether the value has been computed, or kept."""
        return self in source.computed

    def keep(self, source: S, value: T) -> None:
        """Take a value that is known already."""
        source.computed[self] = value
