"""The devices that a source describes: those with memory, and those that only run kernels."""

import pytest

from gpuviz.frameworks import cupy as framework


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
    monkeypatch.setattr(framework, "caching_allocators", dict)

    found = source(stacks=False).devices({1, 3})

    assert [(row["id"], row["uuid"]) for row in found] == [(1, "uuid 1"), (3, "uuid 3")]
