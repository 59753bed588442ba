"""gpuviz.allocators.rmm, with an RMM that has only the interfaces used."""

import gc

import pytest

import gpuviz
from gpuviz.frameworks import shared_pool
from tests.unit.allocators.client_libraries import TOO_MUCH, Stream


def test_rmm_uses_the_pool_on_all_devices(rmm):
    gpuviz.allocators.rmm.install()
    gpuviz.allocators.rmm.install()
    address = rmm.devices[1].allocate(1000, Stream(0x70))

    assert gpuviz.allocators.rmm.is_installed()
    assert gpuviz.memory_allocated(1) == 1024
    rmm.devices[1].deallocate(address, 1000, Stream(0x70))
    assert gpuviz.memory_allocated(1) == 0


def test_rmm_gets_its_resources_back_unless_the_program_has_replaced_ours(rmm):
    before = rmm.devices[0]
    gpuviz.allocators.rmm.install()
    rmm.devices[1] = "the program's"

    gpuviz.allocators.rmm.uninstall()
    gpuviz.allocators.rmm.uninstall()

    assert rmm.devices == {0: before, 1: "the program's"}
    assert not gpuviz.allocators.rmm.is_installed()


def test_rmm_gets_a_memory_error_when_memory_runs_out(rmm):
    gpuviz.allocators.rmm.install()

    with pytest.raises(MemoryError, match=r"Tried to allocate 1024\.00 MiB"):
        rmm.devices[0].allocate(TOO_MUCH, Stream(0))


def test_what_was_allocated_through_a_library_is_freed_after_the_uninstallation(rmm):
    gpuviz.allocators.rmm.install()
    resource = rmm.devices[0]
    address = resource.allocate(1000, Stream(0))

    gpuviz.allocators.rmm.uninstall()
    gc.collect()
    resource.deallocate(address, 1000, Stream(0))

    assert gpuviz.memory_allocated(0) == 0
    assert shared_pool.lost_frees() == 0
