from collections.abc import Callable
from types import SimpleNamespace

import pytest

from gpuviz import _core
from gpuviz.allocator import memory as allocator
from gpuviz.allocator import raw_memory

CAPACITY = 200 << 20
DEVICES = 4

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


@pytest.fixture
def process(monkeypatch):
    """A process without allocators, with its current device and stream, and its opened devices."""
    state = SimpleNamespace(device=0, streams={0: 0x70, 1: 0x71}, devices={})

    def open_device(ordinal):
        allocator._check_exists(ordinal, DEVICES)
        state.devices[ordinal] = _core.SimulatedDevice(CAPACITY, ordinal)
        return state.devices[ordinal]

    monkeypatch.delenv(allocator.SETTINGS_VARIABLE, raising=False)
    monkeypatch.setattr(allocator, "_process", allocator._Process())
    monkeypatch.setattr(allocator, "_open_device", open_device)
    monkeypatch.setattr(allocator, "device_count", lambda: DEVICES)
    monkeypatch.setattr(allocator, "current_device", lambda: state.device)
    monkeypatch.setattr(raw_memory, "current_stream", state.streams.get)
    return state
