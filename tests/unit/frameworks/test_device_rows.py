"""The devices that a source describes: those with memory, and those that only run kernels."""

import sys
from types import ModuleType

import pytest

from gpuviz.errors import DeviceUnavailableError
from gpuviz.frameworks import cupy as framework
from gpuviz.frameworks import driver_devices, process_memory, without_cupy
from gpuviz.recorder.record import record


class Driver:
    """The functions of a driver that describe a device."""

    def device_name(self, device):
        return f"GPU {device}"

    def device_uuid(self, device):
        return f"uuid {device}"

    def total_memory(self, _):
        return 16 << 30

    def multiprocessors(self, _):
        return 132

    def memory_bandwidth(self, _):
        return 3_352_320_000_000


@pytest.mark.parametrize("source", [framework.CachingSource, framework.ObservingSource])
def test_a_device_without_memory_of_the_program_is_described_if_it_works(source, monkeypatch):
    monkeypatch.setattr(framework, "cuda_driver", Driver)
    monkeypatch.setattr(driver_devices, "cuda_driver", Driver)
    monkeypatch.setattr(process_memory, "cuda_driver", Driver)
    monkeypatch.setattr(process_memory, "caching_allocators", dict)

    found = source(stacks=False).devices({1, 3})

    assert [(row["id"], row["uuid"]) for row in found] == [(1, "uuid 1"), (3, "uuid 3")]


@pytest.mark.parametrize("allocator", ["caching", "observe"])
def test_without_cupy_the_devices_of_any_kernel_are_described(allocator, monkeypatch):
    monkeypatch.setattr(without_cupy, "is_without_cupy", lambda: True)
    monkeypatch.setattr(driver_devices, "cuda_driver", Driver)
    monkeypatch.setattr(process_memory, "cuda_driver", Driver)
    monkeypatch.setattr(process_memory, "caching_allocators", dict)

    source = record(allocator=allocator, streams=False)._live.source

    assert [row["id"] for row in source.devices({1, 3})] == [1, 3]
    assert source.sample() == []
    own = ("caching", "gpuviz caching allocator") if allocator == "caching" else ("observe", "")
    assert (source.allocator, source.allocator_name) == own
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    assert (source.allocator, source.allocator_name) == ("observe", "PyTorch's caching allocator")
    with pytest.raises(DeviceUnavailableError, match="CuPy is not installed"):
        record(record_stream="auto")
