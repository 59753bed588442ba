"""The arguments of a simulated launch, checked and as the native core takes them."""

import re
from collections.abc import Iterable, Sequence

from gpuviz.data.tables import DICTIONARIES
from gpuviz.simulation.arrays import SimulatedArray

_MODES = DICTIONARIES["launch_blocks", "mode"]
# CuPy's elementwise functions are named after the types of their arguments; those without bits are
# Python's scalars.
_UFUNC = re.compile(r"cupy_\w+?__\w+$")
_WITH_SCALAR = re.compile(r"cupy_\w+?__(\w+_)?(int|float|complex)_")
_CONTENTS = (1 << 64) - 1
_NS = 1e9
_COUNTS = 1 << 32


def nanoseconds(name: str, seconds: float) -> int:
    """Return an argument in seconds as ns.

    Raises:
        ValueError: It is not between 1e-9 and 1e9 seconds.
    """
    if not 1 / _NS <= seconds <= _NS:
        raise ValueError(f"{name} must be between 1e-9 and 1e9 seconds, got {seconds}")
    return round(seconds * _NS)


def dimensions(name: str, numbers: Sequence[int]) -> tuple[int, int, int]:
    """Return the three dimensions of a grid or block.

    Raises:
        ValueError: There are more than three numbers or none, or one is out of range.
    """
    if not 1 <= len(numbers) <= 3 or not all(1 <= number < _COUNTS for number in numbers):  # noqa: PLR2004
        raise ValueError(
            f"{name} must have one to three numbers between 1 and {_COUNTS - 1}, got {numbers}",
        )
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def count(name: str, number: int) -> int:
    """Return a number that is not negative, such as one of bytes of shared memory.

    Raises:
        ValueError: It is negative or has more than 32 bits.
    """
    if not 0 <= number < _COUNTS:
        raise ValueError(f"{name} must be between 0 and {_COUNTS - 1}, got {number}")
    return number


def accesses(
    name: str,
    reads: Iterable[SimulatedArray],
    writes: Iterable[SimulatedArray],
) -> list[tuple[int, int]]:
    """Return the address and mode of each argument that is an array, in their order.

    CuPy passes an array that an elementwise function updates as two arguments.
    """
    read, written = ([array.ptr for array in arrays] for arrays in (reads, writes))
    if _UFUNC.match(name):
        both = [(address, "read") for address in read] + [(address, "write") for address in written]
        return [(address, _MODES.index(mode)) for address, mode in both if address]
    modes = dict.fromkeys(read, "read")
    modes |= {address: "read_write" if address in modes else "write" for address in written}
    return [(address, _MODES.index(mode)) for address, mode in modes.items() if address]


def content(name: str, scalars: Iterable[float] | None) -> int:
    """Return a number that is equal for equal scalars; 0 if they are unknown."""
    if scalars is None and _WITH_SCALAR.match(name):
        return 0
    return hash(tuple(map(float, scalars or ()))) % _CONTENTS + 1
