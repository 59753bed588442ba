"""A hash of numbers in columns."""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio


def mixed(state: "NDArray[Any]", word: "NDArray[Any] | np.uint64") -> "NDArray[Any]":
    """Return a hash of each pair of numbers, as ``uint64``; both are ``uint64``."""
    product: NDArray[Any] = state ^ word
    product *= GOLDEN
    product ^= product >> np.uint64(32)
    return product
