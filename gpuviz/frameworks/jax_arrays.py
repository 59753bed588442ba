"""JAX's live arrays and devices, as JAX tells of them; it never imports jax."""

import sys
import weakref
from collections.abc import Iterator
from contextlib import suppress
from math import prod
from typing import Any

from gpuviz.data.implied_columns import OWN, origin

_BACKENDS = "jax._src.xla_bridge"
_PLATFORMS = ("cuda", "gpu")
# Made-up addresses: above all of CUDA's, and exact as floating-point numbers.
_FIRST_ADDRESS = 1 << 61
_ALIGNMENT = 4096
# A part of an array in the memory of a device: its ordinal, a made up address and its bytes.
Part = tuple[int, int, int]


def clients() -> list[Any]:
    """Return the clients of JAX that have GPUs in this process."""
    backends = getattr(sys.modules.get(_BACKENDS), "_backends", {})
    return [each for name, each in list(backends.items()) if name in _PLATFORMS]


class KnownArrays:
    """The parts of JAX's live arrays on the devices of this process.

    Where they are is not asked: while somebody refers to the memory of an array, the program cannot
    donate it, and would fail. Each gets an address of its own.
    """

    def __init__(self) -> None:
        self._parts: dict[int, tuple[weakref.ref[Any], tuple[Part, ...]]] = {}
        self._next = _FIRST_ADDRESS

    def parts(self, in_use: dict[int, int]) -> list[tuple[Part, Any]]:
        """Return the parts of all live arrays, the longest known first, with their arrays.

        Arrays may share their memory, which they do not tell. So those that do not fit into the
        bytes in use of their device, as far as these are known, are left out.
        """
        live = {id(each): each for client in clients() for each in client.live_arrays()}
        order = [*(each for each in self._parts if each in live), *live]
        known, self._parts = self._parts, {}
        room = dict(in_use)
        found = []
        for number in dict.fromkeys(order):
            array = live[number]
            before = known.get(number)
            if before is None or before[0]() is not array:
                before = weakref.ref(array), tuple(self._parts_of(array))
            if array.is_deleted():
                continue
            self._parts[number] = before
            for part in before[1]:
                device, _, size = part
                if room.get(device, size) >= size:
                    found.append((part, array))
                    if device in room:
                        room[device] -= size
        return found

    def _parts_of(self, array: Any) -> Iterator[Part]:
        sharding = array.sharding
        if sharding.memory_kind not in (None, "device"):
            return
        size = prod(sharding.shard_shape(array.shape)) * array.dtype.itemsize
        for device in sharding.addressable_devices:
            if size and device.local_hardware_id is not None:
                yield device.local_hardware_id, self._next, size
                self._next += -(-size // _ALIGNMENT) * _ALIGNMENT


def line_of(array: Any) -> str:
    """Return the program's line that made an array."""
    with suppress(Exception):
        for frame in array.traceback.frames:
            if origin(frame.file_name) == OWN:
                return f"{frame.file_name}:{frame.line_num}"
    return "an unknown line"


def statistics_of_devices() -> Iterator[tuple[int, dict[str, int]]]:
    """Yield the devices that JAX uses, and what its allocator tells of each, if it does."""
    for client in clients():
        for device in client.local_devices():
            if device.local_hardware_id is not None:
                yield device.local_hardware_id, device.memory_stats() or {}
