"""gpuviz.allocators: missing libraries and drivers, and the shared pool."""

import sys

import pytest

import gpuviz
from gpuviz.errors import DeviceUnavailableError
from gpuviz.frameworks import shared_pool
from tests.unit.allocators.client_libraries import TorchMemory, add_torch


@pytest.mark.parametrize("name", ["torch", "numba", "cuda_core", "rmm"])
def test_a_library_that_is_missing_is_named(monkeypatch, name):
    library = {"cuda_core": "cuda.core"}.get(name, name)
    monkeypatch.setitem(sys.modules, library, None)

    with pytest.raises(DeviceUnavailableError, match=f"{library}.* cannot be imported"):
        getattr(gpuviz.allocators, name).install()


def test_without_a_driver_nothing_is_installed(monkeypatch):
    add_torch(monkeypatch, TorchMemory())
    monkeypatch.setattr(shared_pool, "has_driver", lambda: False)

    with pytest.raises(DeviceUnavailableError, match="No NVIDIA driver"):
        gpuviz.allocators.torch.install()

    assert not gpuviz.allocators.torch.is_installed()


def test_the_allocators_are_listed():
    assert dir(gpuviz.allocators) == ["cuda_core", "cupy", "numba", "rmm", "torch"]
    assert not hasattr(gpuviz.allocators, "jax")


def test_a_function_is_called_once_before_the_first_allocation():
    calls = []
    shared_pool.call_before_first_allocation(lambda: calls.append(gpuviz.memory_stats(0)))

    pool = shared_pool.shared_pool()
    pool.free(pool.allocate(1000, 0, 0), 0)
    pool.free(pool.allocate(1000, 1, 0), 1)

    assert calls == [{}]
