"""Values of a recording, or of what was made of one, that are computed on first use and kept."""

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Generic, Protocol, TypeVar, cast


class Keeper(Protocol):
    """Keeps values that `Once` has computed, by the function that computes them."""

    @property
    def computed(self) -> "dict[Once[Any, Any], Any]":
        """The values."""
        ...


# Kept instead of the source itself, whose memory would otherwise wait for a garbage collection.
_SOURCE: Any = object()

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
            self.keep(source, self._compute(source))
        value: T = source.computed[self]
        return cast("T", source) if value is _SOURCE else value

    def is_known(self, source: S) -> bool:
        """Return whether the value has been computed, or kept."""
        return self in source.computed

    def keep(self, source: S, value: T) -> None:
        """Take a value that is known already."""
        source.computed[self] = _SOURCE if value is source else value
