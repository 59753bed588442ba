"""gpuviz.allocators.cuda_core, with a cuda.core that has only the interfaces used."""

import pytest

import gpuviz
from gpuviz import _core
from gpuviz.allocator import memory as allocator
from tests.unit.allocators.client_libraries import TOO_MUCH, CudaAPIError, Stream, add_module


def test_the_devices_of_cuda_core_in_this_thread_use_the_pool(core):
    gpuviz.allocators.cuda_core.install()
    gpuviz.allocators.cuda_core.install()
    resource = core.Device(1).memory_resource
    buffer = resource.allocate(1000, stream=Stream(0x70))

    assert gpuviz.allocators.cuda_core.is_installed()
    assert (resource.device_id, resource.is_device_accessible) == (1, True)
    assert (resource.is_host_accessible, resource.is_managed) == (False, False)
    assert gpuviz.memory_allocated(1) == 1024
    buffer.close()
    assert gpuviz.memory_allocated(1) == 0


def test_the_devices_of_cuda_core_get_their_resources_back(core):
    before = core.Device(0).memory_resource
    gpuviz.allocators.cuda_core.install()
    core.Device(1).memory_resource = "the program's"

    gpuviz.allocators.cuda_core.uninstall()

    assert [core.Device(i).memory_resource for i in range(2)] == [before, "the program's"]
    assert not gpuviz.allocators.cuda_core.is_installed()


@pytest.mark.usefixtures("core")
@pytest.mark.parametrize(("closed_on", "is_free"), [(0x70, True), (0x71, False)])
def test_a_buffer_closed_on_another_stream_waits_for_it(closed_on, is_free):
    resource = gpuviz.allocators.cuda_core.memory_resource(0)
    buffer = resource.allocate(3 << 20, stream=Stream(0x70))
    log = _core.EventLog()
    allocator.caching_allocators()[0].attach(log)

    buffer.close(Stream(closed_on))

    assert len(log) == 1 + is_free  # free_completed too


@pytest.mark.usefixtures("core")
def test_cuda_core_gets_a_memory_error_when_memory_runs_out(monkeypatch):
    add_module(monkeypatch, "cuda.core._utils.cuda_utils", CUDAError=CudaAPIError)
    resource = gpuviz.allocators.cuda_core.memory_resource(0)

    with pytest.raises(MemoryError, match=r"Tried to allocate 1024\.00 MiB") as raised:
        resource.allocate(TOO_MUCH, stream=Stream(0x70))

    assert isinstance(raised.value, CudaAPIError)


def test_a_graph_of_cuda_core_gets_no_memory_that_others_reuse(core):
    resource = gpuviz.allocators.cuda_core.memory_resource(0)

    with pytest.raises(RuntimeError, match="GraphMemoryResource"):
        resource.allocate(1000, stream=core.GraphBuilder(0x70))


@pytest.mark.usefixtures("core")
@pytest.mark.parametrize("device", [2, -1])
def test_a_device_that_does_not_exist_is_named(device):
    with pytest.raises(ValueError, match=str(device)):
        gpuviz.allocators.cuda_core.memory_resource(device)
