"""gpuviz.allocators, with libraries that have only the interfaces used and simulated devices."""

import gc
import sys
import threading
import weakref
from types import ModuleType, SimpleNamespace

import pytest

import gpuviz
from gpuviz import _core
from gpuviz.allocator import memory as allocator
from gpuviz.errors import DeviceUnavailableError, InstallationError
from gpuviz.frameworks import cuda_core as cuda_core_framework
from gpuviz.frameworks import rmm as rmm_framework
from gpuviz.frameworks import shared_pool
from gpuviz.frameworks import torch as torch_framework

CAPACITY = 200 << 20
TOO_MUCH = 1 << 30


class Stream:
    """What all libraries can make of their streams."""

    def __init__(self, handle):
        self.handle = handle

    def __cuda_stream__(self):
        return 0, self.handle


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
    monkeypatch.setattr(shared_pool, "cuda_driver", lambda: driver)
    monkeypatch.setattr(cuda_core_framework, "cuda_driver", lambda: driver)
    monkeypatch.setattr(rmm_framework, "cuda_driver", lambda: driver)
    monkeypatch.setattr(shared_pool._Process, "pool", None)
    return devices


def add_module(monkeypatch, name, **contents):
    """Add a module and, where they are missing, the packages around it."""
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        part = ".".join(parts[:end])
        if part not in sys.modules:
            module = ModuleType(part)
            module.__path__ = []
            monkeypatch.setitem(sys.modules, part, module)
    vars(sys.modules[name]).update(contents)
    return sys.modules[name]


@pytest.mark.parametrize("name", ["torch", "numba", "cuda_core", "rmm"])
def test_a_library_that_is_missing_is_named(monkeypatch, name):
    library = {"cuda_core": "cuda.core"}.get(name, name)
    monkeypatch.setitem(sys.modules, library, None)

    with pytest.raises(DeviceUnavailableError, match=f"{library}.* cannot be imported"):
        getattr(gpuviz.allocators, name).install()


def test_the_allocators_are_listed():
    assert dir(gpuviz.allocators) == ["cuda_core", "cupy", "numba", "rmm", "torch"]
    assert not hasattr(gpuviz.allocators, "jax")


class TorchMemory:
    """torch.cuda.memory, whose allocator can be changed once."""

    def __init__(self, *, is_used=False):
        self.is_used = is_used
        self.functions = {}
        self.names = ()

    def CUDAPluggableAllocator(self, library, *names):  # noqa: N802 - torch's name
        self.names = (library, *names)
        return SimpleNamespace(allocator=lambda: self)

    def change_current_allocator(self, _):
        if self.is_used:
            raise RuntimeError("Can't swap an already initialized allocator")
        self.is_used = True

    def __getattr__(self, name):
        if name.startswith("set_"):
            return lambda function: self.functions.update({name: function})
        raise AttributeError(name)


def add_torch(monkeypatch, memory, cuda="13.0"):
    monkeypatch.setattr(torch_framework._Process, "is_installed", False)
    for variable in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"):
        monkeypatch.delenv(variable, raising=False)
    version = SimpleNamespace(cuda=cuda)
    cuda_module = SimpleNamespace(memory=memory)
    add_module(monkeypatch, "torch", version=version, cuda=cuda_module, __version__="2.11.0")


def test_torch_gets_the_functions_of_the_native_core(monkeypatch):
    memory = TorchMemory()
    add_torch(monkeypatch, memory)

    gpuviz.allocators.torch.install()

    assert gpuviz.allocators.torch.is_installed()
    assert memory.names == (_core.__file__, "gpuviz_torch_malloc", "gpuviz_torch_free")
    assert sorted(memory.functions) == [
        "set_memory_fraction_fn",
        "set_record_stream_fn",
        "set_reset_fn",
    ]
    assert all(memory.functions.values())


def test_torch_is_asked_once(monkeypatch):
    add_torch(monkeypatch, TorchMemory())

    gpuviz.allocators.torch.install()
    gpuviz.allocators.torch.install()

    assert gpuviz.allocators.torch.is_installed()


def test_after_torchs_first_use_of_cuda_it_is_too_late(monkeypatch):
    add_torch(monkeypatch, TorchMemory(is_used=True))

    with pytest.raises(InstallationError, match="before the first CUDA tensor"):
        gpuviz.allocators.torch.install()

    assert not gpuviz.allocators.torch.is_installed()


def test_a_torch_without_cuda_is_named(monkeypatch):
    add_torch(monkeypatch, TorchMemory(), cuda=None)

    with pytest.raises(DeviceUnavailableError, match=r"torch 2\.11\.0 is built without CUDA"):
        gpuviz.allocators.torch.install()


@pytest.mark.parametrize("variable", ["PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"])
def test_settings_of_torchs_allocator_that_lose_their_effect_are_named(monkeypatch, variable):
    add_torch(monkeypatch, TorchMemory())
    monkeypatch.setenv(variable, "backend:cudaMallocAsync")

    with pytest.warns(RuntimeWarning, match=f"{variable}=backend:cudaMallocAsync has no effect"):
        gpuviz.allocators.torch.install()

    assert gpuviz.allocators.torch.is_installed()


class Pointer:
    """Memory that is freed with its last owner."""

    def __init__(self, context, pointer, size, finalizer):
        self.context, self.address, self.size = context, pointer.value, size
        self._finalizer = weakref.finalize(self, finalizer)

    def own(self):
        return self

    def free(self):
        self._finalizer()


class Deallocations(list):
    """Deallocations that Numba has put off."""

    cleared = 0

    def clear(self):
        super().clear()
        self.cleared += 1


class CudaAPIError(Exception):
    """An error of the driver."""

    @property
    def code(self):
        return self.args[0]


def numba_driver(monkeypatch, name="numba.cuda.cudadrv.driver"):
    class Manager:
        def __init__(self, *, context):
            self.context = context
            self.allocations = weakref.WeakValueDictionary()
            self.deallocations = Deallocations()

    module = add_module(
        monkeypatch,
        name,
        HostOnlyCUDAMemoryManager=Manager,
        GetIpcHandleMixin=type("GetIpcHandleMixin", (), {}),
        NumbaCUDAMemoryManager=Manager,
        AutoFreePointer=Pointer,
        MemoryInfo=lambda free, total: (free, total),
        CudaAPIError=CudaAPIError,
        binding=SimpleNamespace(CUresult=SimpleNamespace(CUDA_ERROR_OUT_OF_MEMORY=2)),
        driver=SimpleNamespace(devices={}),
        _memory_manager=None,
    )

    def set_memory_manager(manager):
        assert manager(context=None).interface_version == 1
        module._memory_manager = manager

    module.set_memory_manager = set_memory_manager
    return module


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
    driver.HostOnlyCUDAMemoryManager.interface_version = 1
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


class CudaCore:
    """cuda.core, whose devices and their resources belong to the calling thread."""

    class GraphBuilder(Stream):
        """A graph that is being built."""

    class MemoryResource:
        """The base class."""

    class Buffer:
        """Memory that a resource frees."""

        @staticmethod
        def from_handle(ptr, size, mr=None, owner=None, *, stream=None):  # noqa: ARG004
            return SimpleNamespace(
                handle=ptr,
                size=size,
                close=lambda on=None: mr.deallocate(ptr, size, stream=on or stream),
            )

    def __init__(self):
        self._local = threading.local()

    def Device(self, ordinal):  # noqa: N802 - cuda.core's name
        if not hasattr(self._local, "devices"):
            self._local.devices = [SimpleNamespace(memory_resource=f"own {i}") for i in range(2)]
        return self._local.devices[ordinal]


@pytest.fixture
def core(monkeypatch):
    made = CudaCore()
    names = ("GraphBuilder", "MemoryResource", "Buffer", "Device")
    add_module(monkeypatch, "cuda.core", **{name: getattr(made, name) for name in names})
    cuda_core_framework._resource_class.cache_clear()
    cuda_core_framework._memory_resource.cache_clear()
    yield made
    gpuviz.allocators.cuda_core.uninstall()
    cuda_core_framework._resource_class.cache_clear()
    cuda_core_framework._memory_resource.cache_clear()


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
    gpuviz.allocators.cuda_core.install()
    core.Device(1).memory_resource = "the program's"

    gpuviz.allocators.cuda_core.uninstall()

    assert [core.Device(i).memory_resource for i in range(2)] == ["own 0", "the program's"]
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


class RmmResources:
    """rmm.mr."""

    def __init__(self):
        self.devices = {}

    def get_per_device_resource(self, device):
        return self.devices.setdefault(device, f"own {device}")

    def set_per_device_resource(self, device, resource):
        self.devices[device] = resource

    CallbackMemoryResource = staticmethod(
        lambda allocate, free: SimpleNamespace(allocate=allocate, deallocate=free)
    )


@pytest.fixture
def rmm(monkeypatch):
    monkeypatch.setattr(rmm_framework._Process, "ours", {})
    monkeypatch.setattr(rmm_framework._Process, "previous", {})
    return add_module(monkeypatch, "rmm", mr=RmmResources()).mr


def test_rmm_uses_the_pool_on_all_devices(rmm):
    gpuviz.allocators.rmm.install()
    gpuviz.allocators.rmm.install()
    address = rmm.devices[1].allocate(1000, Stream(0x70))

    assert gpuviz.allocators.rmm.is_installed()
    assert gpuviz.memory_allocated(1) == 1024
    rmm.devices[1].deallocate(address, 1000, Stream(0x70))
    assert gpuviz.memory_allocated(1) == 0


def test_rmm_gets_its_resources_back_unless_the_program_has_replaced_ours(rmm):
    gpuviz.allocators.rmm.install()
    rmm.devices[1] = "the program's"

    gpuviz.allocators.rmm.uninstall()
    gpuviz.allocators.rmm.uninstall()

    assert rmm.devices == {0: "own 0", 1: "the program's"}
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
