"""Addresses of the blocks of a litmus program."""

from tests.litmus.program import Operation

# Blocks of their own memory are this far apart, more than any block's size in a program.
APART = 1 << 40


class Layout:
    """Gives each block an address: new memory, or that of the block that it reuses."""

    def __init__(self) -> None:
        self._next = APART
        self.address: dict[str, int] = {}
        self.bytes: dict[str, int] = {}

    def place_new(self, block: str, size: int) -> int:
        """Return the address of a block in new memory."""
        if size >= APART:
            raise ValueError(f"block {block!r} has {size} bytes")
        address, self._next = self._next, self._next + APART
        self.address[block], self.bytes[block] = address, size
        return address

    def place(self, operation: Operation) -> int:
        """Return the address of the block that an operation allocates."""
        block, size = operation.block, operation.bytes
        reused = operation.fields.get("reuses")
        if reused is None:
            return self.place_new(block, size)
        if reused not in self.address:
            raise ValueError(f"{block!r} reuses {reused!r}, which does not exist")
        address = self.address[reused] + (operation.fields.get("offset") or 0)
        self.address[block], self.bytes[block] = address, size
        return address
