"""Libraries that have only the interfaces by which gpuviz gives them an allocator."""

import sys
import threading
import weakref
from types import ModuleType, SimpleNamespace

from gpuviz.frameworks import torch as torch_framework

CAPACITY = 200 << 20
TOO_MUCH = 1 << 30


class Stream:
    """What all libraries can make of their streams."""

    def __init__(self, handle):
        self.handle = handle

    def __cuda_stream__(self):
        return 0, self.handle


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
