"""A hash of numbers in columns."""

import numpy as np

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio


def mixed(state: np.ndarray, word: np.ndarray | np.uint64) -> np.ndarray:
    """Return a hash of each pair of numbers, as ``uint64``; both are ``uint64``."""
    product: np.ndarray = state ^ word
    product *= GOLDEN
    product ^= product >> np.uint64(32)
    return product
