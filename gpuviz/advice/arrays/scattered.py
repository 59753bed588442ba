"""Large blocks into which PyTorch scatters a number at indices, as `one_hot` does."""

import re

import numpy as np

from gpuviz.advice.arrays.block_uses import BlockUses
from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.data.columns import distinct, plain
from gpuviz.data.strings import are_named

# PyTorch scatters at indices of 64 bits.
INDEX_BYTES = 8
_LEAST_BYTES = 8 << 20
# The bytes of the dense array for each byte of the indices.
_LEAST_FACTOR = 16
_SCATTER = re.compile(r"\bat::native::_scatter_gather_elementwise_kernel.*scatter_fill", re.DOTALL)
_FILL = re.compile(r"\bat::native::.*FillFunctor|^memset", re.DOTALL)


class Scattered:
    """The blocks of a device that are filled, and then get one number at places of much fewer.

    Args:
        device: The blocks.

    Attributes:
        uses: Their uses.
        can: Whether each block is large, and its uses and its end are known.
        blocks: The blocks of at least 8 MiB into which a number is scattered.
    """

    def __init__(self, device: DeviceBlocks) -> None:
        self.uses = BlockUses(device)
        self._requested = device.requested
        self._is_fill, self._is_scatter = self.uses.are_of(_FILL), self.uses.are_of(_SCATTER)
        can = device.is_freed & ~device.is_initial & ~device.is_shared & device.is_seen
        self.can: np.ndarray = can & (device.requested >= _LEAST_BYTES)
        self.blocks = distinct(self.uses.block[self._is_scatter & self.can[self.uses.block]])

    def start(self, block: int) -> tuple[np.ndarray, int, int] | None:
        """Return how a block is made of indices, of at most a sixteenth of its bytes.

        Returns:
            The rows of its uses, the number of those that fill it, after which the scatter follows,
            and the block of the indices; None if it is made otherwise.
        """
        uses = self.uses
        rows = uses.of_block(block)
        fills = int(np.argmin(np.append(self._is_fill[rows], False)))
        if not fills or fills == len(rows) or not self._is_scatter[rows[fills]]:
            return None
        indices = uses.beside(int(rows[fills]))
        if len(indices) != 1:
            return None
        is_much_larger = self._requested[indices[0]] * _LEAST_FACTOR <= self._requested[block]
        return (rows, fills, int(indices[0])) if is_much_larger else None


def scatters_to_large(device: DeviceBlocks) -> bool:
    """Return whether a kernel of PyTorch scatters a number into a large block."""
    tables, used = device.recording.tables, device.used
    scatters = are_named(tables, plain(tables["activities"]["name"]), _SCATTER.search)
    if not scatters.any():
        return False
    blocks = used.block[np.append(scatters, False)[used.activity]]
    return bool((used.blocks.requested[blocks] >= _LEAST_BYTES).any())
