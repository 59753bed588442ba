"""gpuviz.allocators.numba, with a Numba that has only the interfaces used."""

import sys
from types import SimpleNamespace

import pytest

import gpuviz
from gpuviz.allocator import memory as allocator
from gpuviz.errors import InstallationError
from gpuviz.frameworks import shared_pool
from tests.unit.allocators.client_libraries import CAPACITY, TOO_MUCH, CudaAPIError, numba_driver


class Context:
    """Of Numba, on the second device."""

    device = SimpleNamespace(id=1)


def test_numba_gets_its_memory_from_the_pool_of_its_device(monkeypatch, process):
    driver = numba_driver(monkeypatch)

    gpuviz.allocators.numba.install()
    context = Context()
    manager = driver._memory_manager(context=context)
    pointer = manager.memalloc(1000)

    assert gpuviz.allocators.numba.is_installed()
    assert pointer.size == 1000
    assert allocator.caching_allocators()[1].owns(pointer.address)
    assert gpuviz.memory_allocated(1) == 1024
    assert manager.get_memory_info() == (CAPACITY - process[1].used, CAPACITY)


@pytest.mark.parametrize("free", ["by its owner", "by Numba"])
def test_numba_frees_its_memory_once(monkeypatch, free):
    driver = numba_driver(monkeypatch)
    gpuviz.allocators.numba.install()
    context = Context()
    manager = driver._memory_manager(context=context)
    pointer = manager.memalloc(1000)

    if free == "by Numba":
        pointer.free()
        assert gpuviz.memory_allocated(1) == 0
    del pointer

    assert gpuviz.memory_allocated(1) == 0
    assert len(manager.allocations) == 0
    assert shared_pool.lost_frees() == 0


@pytest.mark.parametrize("pending", [0, 3])
def test_numba_gets_its_own_error_when_memory_runs_out(monkeypatch, pending):
    driver = numba_driver(monkeypatch)
    gpuviz.allocators.numba.install()
    context = Context()
    manager = driver._memory_manager(context=context)
    manager.deallocations.extend(range(pending))

    with pytest.raises(CudaAPIError, match=r"Tried to allocate 1024\.00 MiB") as raised:
        manager.memalloc(TOO_MUCH)

    assert raised.value.code == 2
    assert manager.deallocations.cleared == (1 if pending else 0)


def test_a_context_of_numba_keeps_its_manager(monkeypatch):
    driver = numba_driver(monkeypatch)
    driver.driver.devices[0] = SimpleNamespace(primary_context=object())

    with pytest.raises(InstallationError, match="before Numba first uses the GPU"):
        gpuviz.allocators.numba.install()

    assert not gpuviz.allocators.numba.is_installed()


def test_installing_in_numba_again_is_never_too_late(monkeypatch):
    driver = numba_driver(monkeypatch)
    gpuviz.allocators.numba.install()
    driver.driver.devices[0] = SimpleNamespace(primary_context=object())

    gpuviz.allocators.numba.install()

    assert gpuviz.allocators.numba.is_installed()


def test_numba_can_return_to_its_own_manager(monkeypatch):
    driver = numba_driver(monkeypatch)
    gpuviz.allocators.numba.install()
    ours = driver._memory_manager

    driver._memory_manager = SimpleNamespace
    gpuviz.allocators.numba.uninstall()
    replaced = driver._memory_manager
    driver._memory_manager = ours
    gpuviz.allocators.numba.uninstall()

    assert replaced is SimpleNamespace
    assert driver._memory_manager is driver.NumbaCUDAMemoryManager
    assert not gpuviz.allocators.numba.is_installed()


def test_numba_cuda_mlir_is_served_if_it_is_imported(monkeypatch):
    monkeypatch.delitem(sys.modules, "numba.cuda.cudadrv.driver", raising=False)
    driver = numba_driver(monkeypatch, "numba_cuda_mlir.numba_cuda.cudadrv.driver")

    gpuviz.allocators.numba.install()

    assert driver._memory_manager is gpuviz.allocators.numba._numba_memory_manager


def test_numbas_simulator_has_no_memory_to_manage(monkeypatch):
    driver = numba_driver(monkeypatch)
    del driver.HostOnlyCUDAMemoryManager

    with pytest.raises(InstallationError, match="NUMBA_ENABLE_CUDASIM"):
        gpuviz.allocators.numba.install()
