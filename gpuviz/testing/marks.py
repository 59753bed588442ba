"""The marks of the pytest plugin, and the limits that they set for a test."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from gpuviz.quantities import parse_bytes

if TYPE_CHECKING:
    import pytest

    from gpuviz.testing.leaks import Stack

DESCRIPTIONS = {
    "gpu_limit_memory(limit, *, reserved=False, device=None)": (
        "fail if the GPU memory that the test allocates exceeds the limit at its peak"
    ),
    "gpu_limit_leaks(limit, *, filter_fn=None, warmups=1)": (
        "fail if a call stack of the test leaves more GPU memory allocated than the limit"
    ),
    "gpu_limit_synchronizations(limit)": (
        "fail if the host waits for the GPU more often than the limit"
    ),
    "gpu_no_hazards(tier='probable')": (
        "fail if operations of several streams on the same memory are not ordered"
    ),
}
TIERS = ("certain", "probable", "latent")
# Who gave a mark to a test itself. A fixture adds one again when the test runs again.
_OWN_RANKS = _ADDED, _PARAMETER, _FUNCTION = "added", "parameter", "function"
_Limit = TypeVar("_Limit")


class MarkError(ValueError):
    """A mark has wrong arguments."""


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """Most bytes at the peak: allocated or reserved, of one device or of all together (None)."""

    limit: int
    text: str
    reserved: bool
    device: int | None

    @property
    def mark(self) -> str:
        """The mark as text."""
        reserved = ", reserved=True" if self.reserved else ""
        device = "" if self.device is None else f", device={self.device}"
        return f"gpu_limit_memory({self.text}{reserved}{device})"


@dataclass(frozen=True, slots=True)
class LeakLimit:
    """Most bytes that one call stack may leave allocated, after ``warmups`` runs of the test."""

    limit: int
    text: str
    filter_fn: "Callable[[Stack], bool] | None"
    warmups: int

    @property
    def mark(self) -> str:
        """The mark as text."""
        return f"gpu_limit_leaks({self.text})"


@dataclass(frozen=True, slots=True)
class SynchronizationLimit:
    """Most times that the host may wait for the GPU."""

    limit: int

    @property
    def mark(self) -> str:
        """The mark as text."""
        return f"gpu_limit_synchronizations({self.limit})"


@dataclass(frozen=True, slots=True)
class HazardLimit:
    """The least certain tier of hazards that fails a test."""

    tier: str

    @property
    def mark(self) -> str:
        """The mark as text."""
        return f"gpu_no_hazards({self.tier!r})"

    @property
    def tiers(self) -> tuple[str, ...]:
        """The tiers that fail the test."""
        return TIERS[: TIERS.index(self.tier) + 1]


@dataclass(frozen=True, slots=True)
class Limits:
    """What the marks of a test ask for."""

    all: tuple[MemoryLimit | LeakLimit | SynchronizationLimit | HazardLimit, ...] = ()

    def of(self, kind: type[_Limit]) -> list[_Limit]:
        """Return the limits of one kind."""
        return [each for each in self.all if isinstance(each, kind)]


def limits_of(item: "pytest.Item") -> Limits:
    """Return what the marks of a test ask for now.

    A mark of the test replaces the same mark of its class or module, one of its parameter that of
    its function, and one that a fixture or a hook has added all of them. `gpu_limit_memory` limits
    allocated and reserved memory, and each device, independently.

    Raises:
        MarkError: A mark has wrong arguments; the text names the test and the mark.
    """
    found = dict[Any, tuple[Any, Any]]()
    for rank, mark in _ranked_marks(item):
        read = _READERS.get(mark.name)
        if read is None:
            continue
        try:
            limit = read(*mark.args, **mark.kwargs)
        except (TypeError, ValueError) as error:
            problem = str(error).removeprefix("_").removeprefix(f"{mark.name}() ")
            raise MarkError(f"{item.nodeid}: {mark.name}: {problem}") from None
        about = (mark.name, getattr(limit, "reserved", None), getattr(limit, "device", None))
        known, _ = found.get(about, (None, None))
        if known == rank and rank is not _ADDED:
            raise MarkError(f"{item.nodeid}: {mark.name} is given twice")
        if known is None or known == rank:
            found[about] = rank, limit
    return Limits(tuple(limit for _, limit in found.values()))


def _ranked_marks(item: "pytest.Item") -> "Iterator[tuple[Any, pytest.Mark]]":
    """Yield the marks of a test with who gave them, those that replace others first."""
    of_parameters = getattr(getattr(item, "callspec", None), "marks", ())
    of_function = getattr(getattr(item, "obj", None), "pytestmark", ())
    ranks = {id(each): _FUNCTION for each in of_function}
    ranks |= {id(each): _PARAMETER for each in of_parameters}
    marks = list(item.iter_markers_with_node())
    own = [(ranks.get(id(mark), _ADDED), mark) for node, mark in marks if node is item]
    yield from sorted(own, key=lambda each: _OWN_RANKS.index(each[0]))
    yield from ((node, mark) for node, mark in marks if node is not item)


def _gpu_limit_memory(
    limit: str | int, *, reserved: bool = False, device: int | None = None
) -> MemoryLimit:
    if not isinstance(reserved, bool):
        raise TypeError(f"reserved must be True or False, got {reserved!r}")
    if device is not None:
        _check_count("device", device)
    return MemoryLimit(_bytes(limit), repr(limit), reserved, device)


def _gpu_limit_leaks(
    limit: str | int,
    *,
    filter_fn: "Callable[[Stack], bool] | None" = None,
    warmups: int = 1,
) -> LeakLimit:
    if filter_fn is not None and not callable(filter_fn):
        raise TypeError(f"filter_fn must be a function, got {filter_fn!r}")
    _check_count("warmups", warmups)
    return LeakLimit(_bytes(limit), repr(limit), filter_fn, warmups)


def _gpu_limit_synchronizations(limit: int) -> SynchronizationLimit:
    _check_count("limit", limit)
    return SynchronizationLimit(limit)


def _gpu_no_hazards(tier: str = "probable") -> HazardLimit:
    if tier not in TIERS:
        raise ValueError(f"tier must be 'certain', 'probable' or 'latent', got {tier!r}")
    return HazardLimit(tier)


_READERS: dict[str, Callable[..., Any]] = {
    "gpu_limit_memory": _gpu_limit_memory,
    "gpu_limit_leaks": _gpu_limit_leaks,
    "gpu_limit_synchronizations": _gpu_limit_synchronizations,
    "gpu_no_hazards": _gpu_no_hazards,
}


def _bytes(limit: object) -> int:
    size = parse_bytes(limit) if isinstance(limit, str) else limit
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise ValueError(f"{limit!r} is not a size, as in '512 MiB' or '1.5 GB'")
    return size


def _check_count(name: str, number: object) -> None:
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise ValueError(f"{name} must be an integer of at least 0, got {number!r}")
