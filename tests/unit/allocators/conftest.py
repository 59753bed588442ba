"""A process with simulated devices, and libraries in which nothing is installed."""

from types import SimpleNamespace

import pytest

import gpuviz
from gpuviz import _core
from gpuviz.allocator import memory as allocator
from gpuviz.frameworks import cuda_core as cuda_core_framework
from gpuviz.frameworks import rmm as rmm_framework
from gpuviz.frameworks import shared_pool
from tests.unit.allocators.client_libraries import CAPACITY, CudaCore, RmmResources, add_module


@pytest.fixture(autouse=True)
def process(monkeypatch):
    """A process with two simulated devices, in which nothing is installed."""
    driver = SimpleNamespace(device_count=lambda: 2)
    devices = {}

    def open_device(ordinal):
        devices[ordinal] = _core.SimulatedDevice(CAPACITY, ordinal)
        return devices[ordinal]

    monkeypatch.setattr(allocator, "_process", allocator._Process())
    monkeypatch.setattr(allocator, "_open_device", open_device)
    monkeypatch.setattr(shared_pool, "has_driver", lambda: True)
    monkeypatch.setattr(cuda_core_framework, "cuda_driver", lambda: driver)
    monkeypatch.setattr(rmm_framework, "cuda_driver", lambda: driver)
    monkeypatch.setattr(shared_pool._Process, "pool", None)
    return devices


@pytest.fixture
def core(monkeypatch):
    made = CudaCore()
    names = ("GraphBuilder", "MemoryResource", "DeviceMemoryResource", "Buffer", "Device")
    add_module(monkeypatch, "cuda.core", **{name: getattr(made, name) for name in names})
    cuda_core_framework._resource_class.cache_clear()
    cuda_core_framework._memory_resource.cache_clear()
    yield made
    gpuviz.allocators.cuda_core.uninstall()
    cuda_core_framework._resource_class.cache_clear()
    cuda_core_framework._memory_resource.cache_clear()


@pytest.fixture
def rmm(monkeypatch):
    for name in ("ours", "previous", "observed", "in_use"):
        monkeypatch.setattr(rmm_framework._Process, name, {})
    monkeypatch.setattr(rmm_framework._Process, "observer", None)
    return add_module(monkeypatch, "rmm", mr=RmmResources()).mr
