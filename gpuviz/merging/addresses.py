"""Where the addresses of several processes lie in one address space, without overlaps."""

import numpy as np
from numpy.typing import NDArray

from gpuviz.errors import GpuvizError

# No machine has higher addresses; such ones stay as they are.
HIGHEST = 2**57 - 1
_UNIT = 1 << 40
_END = 2**63


class AddressSpace:
    """The ranges of addresses of the processes so far."""

    def __init__(self) -> None:
        # Ascending, since no two overlap.
        self._lows = np.zeros(0, np.int64)
        self._highs = np.zeros(0, np.int64)

    def place(self, lowest: int, highest: int) -> int:
        """Return the least multiple of 1 TiB that moves a range away from those before.

        Raises:
            GpuvizError: There is no room left.
        """
        # A range overlaps one before if it is moved by ``first`` to ``last`` units.
        first = -((highest - self._lows) // _UNIT)
        last = (self._highs - lowest) // _UNIT
        tried = np.maximum(np.append(-1, last), -1) + 1
        free = np.append(first > tried[:-1], True)
        shift = int(tried[free.argmax()]) * _UNIT
        if highest + shift >= _END:
            raise GpuvizError(
                "The recordings cannot be merged: their addresses do not fit beside each other "
                f"in {_END.bit_length() - 1} bits."
            )
        place = np.searchsorted(self._lows, lowest + shift)
        self._lows = np.insert(self._lows, place, lowest + shift)
        self._highs = np.insert(self._highs, place, highest + shift)
        return shift


def moved(addresses: np.ndarray, shift: int, of_memory: NDArray[np.bool_]) -> np.ndarray:
    """Return the addresses of a process in the common space.

    Args:
        addresses: The addresses.
        shift: What `AddressSpace.place` returned.
        of_memory: Which are addresses, and not other values.
    """
    if not shift:
        return addresses
    return np.where(of_memory & (addresses <= HIGHEST), addresses + np.uint64(shift), addresses)
