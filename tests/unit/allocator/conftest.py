from collections.abc import Callable

import pytest

from gpuviz import _core

Make = Callable[..., tuple[_core.CachingAllocator, _core.SimulatedDevice]]


@pytest.fixture
def make() -> Make:
    """Return a function that creates an allocator on a new simulated device."""

    def made(
        conf: str = "",
        *,
        capacity: int = 1 << 34,
    ) -> tuple[_core.CachingAllocator, _core.SimulatedDevice]:
        device = _core.SimulatedDevice(capacity)
        return _core.CachingAllocator(device, _core.AllocatorSettings.parse(conf)), device

    return made
