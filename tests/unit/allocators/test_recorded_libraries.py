"""gpuviz.allocators, with libraries that have only the interfaces used and simulated devices."""

import ctypes
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
from gpuviz.frameworks.libraries import RecordedLibraries

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
    monkeypatch.setattr(shared_pool, "has_driver", lambda: True)
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


def test_without_a_driver_nothing_is_installed(monkeypatch):
    add_torch(monkeypatch, TorchMemory())
    monkeypatch.setattr(shared_pool, "has_driver", lambda: False)

    with pytest.raises(DeviceUnavailableError, match="No NVIDIA driver"):
        gpuviz.allocators.torch.install()

    assert not gpuviz.allocators.torch.is_installed()


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
        "set_begin_allocate_to_pool",
        "set_memory_fraction_fn",
        "set_record_stream_fn",
        "set_reset_fn",
    ]
    assert all(memory.functions.values())


def test_graphs_of_torch_are_refused_before_they_begin(monkeypatch):
    add_torch(monkeypatch, TorchMemory())
    kinds = {"CUDAGraph": type("CUDAGraph", (), {}), "graph": type("graph", (), {})}
    vars(sys.modules["torch"].cuda).update(kinds)

    gpuviz.allocators.torch.install()

    refused = "torch cannot capture a CUDA graph on gpuviz's caching allocator"
    with pytest.raises(InstallationError, match=refused):
        kinds["CUDAGraph"]().capture_begin(pool=None)
    with pytest.raises(InstallationError, match=refused):
        kinds["graph"]().__enter__()


def test_a_private_pool_of_torch_is_warned_of(monkeypatch):
    memory = TorchMemory()
    add_torch(monkeypatch, memory)
    gpuviz.allocators.torch.install()
    number = ctypes.c_ulonglong
    begin = ctypes.CFUNCTYPE(None, ctypes.c_int, number, number, ctypes.c_void_p)(
        memory.functions["set_begin_allocate_to_pool"]
    )

    with pytest.warns(RuntimeWarning, match="allocates for a private pool"):
        begin(0, 1, 2, None)


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
    monkeypatch.setenv(variable, "backend:native,expandable_segments:True")

    with pytest.warns(RuntimeWarning, match=f"{variable}=backend:native,.* has no effect"):
        gpuviz.allocators.torch.install()

    assert gpuviz.allocators.torch.is_installed()


@pytest.mark.parametrize("variable", ["PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"])
def test_another_backend_of_torch_is_refused(monkeypatch, variable):
    memory = TorchMemory()
    add_torch(monkeypatch, memory)
    monkeypatch.setenv(variable, "max_split_size_mb:200, backend:cudaMallocAsync")

    with pytest.raises(InstallationError, match=f"{variable} contains backend:cudaMallocAsync"):
        gpuviz.allocators.torch.install()

    assert not gpuviz.allocators.torch.is_installed()


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
        interface_version = 1

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
        config=SimpleNamespace(CUDA_MEMORY_MANAGER="default"),
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

    class DeviceMemoryResource(MemoryResource):
        """The default class."""

        is_handle_owned = False

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

    def _device(self):
        return SimpleNamespace(memory_resource=self.DeviceMemoryResource())

    def Device(self, ordinal):  # noqa: N802 - cuda.core's name
        if not hasattr(self._local, "devices"):
            self._local.devices = [self._device() for _ in range(2)]
        return self._local.devices[ordinal]


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


class RmmResources:
    """rmm.mr."""

    class CudaMemoryResource:
        """The default class."""

    def __init__(self):
        self.devices = {0: self.CudaMemoryResource(), 1: self.CudaMemoryResource()}

    def get_per_device_resource(self, device):
        return self.devices[device]

    def set_per_device_resource(self, device, resource):
        self.devices[device] = resource

    CallbackMemoryResource = staticmethod(
        lambda allocate, free: SimpleNamespace(allocate=allocate, deallocate=free)
    )


@pytest.fixture
def rmm(monkeypatch):
    for name in ("ours", "previous", "observed", "in_use"):
        monkeypatch.setattr(rmm_framework._Process, name, {})
    monkeypatch.setattr(rmm_framework._Process, "observer", None)
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


@pytest.fixture
def libraries():
    """The libraries of a recording that has begun."""
    made = RecordedLibraries()
    yield made
    made.end()


@pytest.mark.usefixtures("core")
def test_a_recording_installs_the_allocator_in_imported_libraries_until_its_end(
    monkeypatch, rmm, libraries
):
    driver = numba_driver(monkeypatch)

    libraries.begin()
    names = ("numba", "cuda_core", "rmm")
    during = [getattr(gpuviz.allocators, name).is_installed() for name in names]
    notes = libraries.end()
    after = [getattr(gpuviz.allocators, name).is_installed() for name in names]

    assert during == [True, True, True]
    assert after == [False, False, False]
    assert notes == ()
    assert type(rmm.devices[0]) is rmm.CudaMemoryResource
    assert driver._memory_manager is driver.NumbaCUDAMemoryManager


@pytest.mark.usefixtures("rmm")
def test_a_recording_leaves_what_was_installed_before(libraries):
    gpuviz.allocators.rmm.install()

    libraries.begin()
    libraries.end()

    assert gpuviz.allocators.rmm.is_installed()


def test_a_recording_installs_the_allocator_in_a_library_that_is_imported_later(
    monkeypatch, tmp_path, libraries
):
    monkeypatch.setattr(rmm_framework._Process, "ours", {})
    monkeypatch.setattr(rmm_framework._Process, "previous", {})
    monkeypatch.delitem(sys.modules, "rmm", raising=False)
    monkeypatch.setattr(sys, "rmm_resources", RmmResources(), raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "rmm.py").write_text("import sys\nmr = sys.rmm_resources\n")
    before = list(sys.meta_path)

    libraries.begin()
    import rmm  # type: ignore[import-not-found]

    is_installed = gpuviz.allocators.rmm.is_installed()
    libraries.end()
    del sys.modules["rmm"]

    assert is_installed
    assert type(rmm.mr.devices[0]) is RmmResources.CudaMemoryResource
    assert sys.meta_path == before


def test_a_recording_leaves_the_allocators_that_the_program_has_chosen(
    monkeypatch, core, rmm, libraries
):
    class Chosen(core.MemoryResource):
        """The program's."""

    driver = numba_driver(monkeypatch)
    driver._memory_manager = Chosen
    core.Device(1).memory_resource = Chosen()
    rmm.devices[1] = chosen = Chosen()

    libraries.begin()
    notes = libraries.end()

    assert [note.split(" keeps the program's ")[0] for note in notes] == [
        "Numba",
        "cuda.core",
        "RMM",
    ]
    assert all("Chosen, whose memory is not recorded." in note for note in notes[:2])
    assert "Chosen: its allocations are recorded" in notes[2]
    assert rmm.devices[1] is chosen
    assert type(core.Device(0).memory_resource) is core.DeviceMemoryResource


def test_a_recording_leaves_the_manager_that_a_variable_names(monkeypatch, libraries):
    driver = numba_driver(monkeypatch)
    driver.config.CUDA_MEMORY_MANAGER = "rmm.allocators.numba"

    libraries.begin()

    assert libraries.end() == (
        "Numba keeps the program's rmm.allocators.numba, whose memory is not recorded.",
    )
    assert driver._memory_manager is None


def test_a_recording_notes_that_the_program_replaced_the_resource_of_rmm(rmm, libraries):
    later = object()

    libraries.begin()
    rmm.devices[0] = later

    assert libraries.end() == (rmm_framework.REPLACED,)
    assert rmm.devices[0] is later


def test_a_recording_notes_what_was_too_late(monkeypatch, libraries):
    driver = numba_driver(monkeypatch)
    driver.driver.devices[0] = SimpleNamespace(primary_context=object())

    libraries.begin()
    [note] = libraries.end()

    assert note.startswith("The memory of Numba is not recorded: Numba already has a context")


def test_a_recording_goes_on_with_a_library_of_an_unknown_version(rmm, libraries):
    rmm.CallbackMemoryResource = None

    libraries.begin()
    [note] = libraries.end()

    assert note.startswith("The memory of RMM is not recorded (TypeError: ")


def test_a_function_is_called_once_before_the_first_allocation():
    calls = []
    shared_pool.call_before_first_allocation(lambda: calls.append(gpuviz.memory_stats(0)))

    pool = shared_pool.shared_pool()
    pool.free(pool.allocate(1000, 0, 0), 0)
    pool.free(pool.allocate(1000, 1, 0), 1)

    assert calls == [{}]
