"""A library like JAX, with the devices and arrays of a client."""

import sys
import traceback
import weakref
from types import ModuleType, SimpleNamespace

KIB = 1 << 10


class Traceback:
    """The Python frames that made an array, as jaxlib keeps them."""

    def __init__(self):
        walked = list(traceback.walk_stack(sys._getframe(2)))
        self._codes = [frame.f_code for frame, _ in walked]
        self._instructions = [frame.f_lasti for frame, _ in walked]
        self.frames = [
            SimpleNamespace(file_name=frame.f_code.co_filename, line_num=line)
            for frame, line in walked
        ]

    def raw_frames(self):
        return self._codes, self._instructions


class Array:
    """An array, of which each device has an equal part.

    It has nothing that takes a reference to its memory, with which it could not be donated.
    """

    def __init__(self, client, size, *, kind="device", devices=None):
        on = client.devices_of_this_process[:1] if devices is None else devices
        self.dtype, self.shape = SimpleNamespace(name="uint8", itemsize=1), (size,)
        self.sharding = SimpleNamespace(
            memory_kind=kind,
            addressable_devices=on,
            shard_shape=lambda shape: (shape[0] // len(on),),
        )
        self.traceback = Traceback()
        self.is_gone = False
        client.arrays.append(weakref.ref(self))

    def is_deleted(self):
        return self.is_gone


class Device:
    """A device of the client, with the statistics of its allocator."""

    def __init__(self, ordinal):
        self.local_hardware_id = ordinal
        self.limit, self.in_use, self.peak, self.arena = 64 * KIB, 0, 0, 0

    def use(self, size, most=0):
        self.in_use = size
        self.peak = max(self.peak, size, most)

    def memory_stats(self):
        return {
            "bytes_in_use": self.in_use,
            "peak_bytes_in_use": self.peak,
            "bytes_limit": self.limit,
            "pool_bytes": self.arena,
            "largest_free_block_bytes": 3 * KIB,
        }


class WithoutStatistics(Device):
    """A device of the allocator ``platform``."""

    def memory_stats(self):
        return None


class Client:
    """A client of PJRT."""

    def __init__(self, *devices):
        self.devices_of_this_process = list(devices)
        self.arrays = []

    def local_devices(self):
        return self.devices_of_this_process

    def live_arrays(self):
        return [array for array in (known() for known in self.arrays) if array is not None]


class JaxRuntimeError(RuntimeError):
    """The class of JAX's errors."""

    def __init__(self, message):
        super().__init__(message)


class Jax:
    """What a program imports as jax."""

    def __init__(self, monkeypatch):
        self.backends = {}
        jax, errors = ModuleType("jax"), ModuleType("jax.errors")
        jax.__file__ = "/usr/lib/python3/site-packages/jax/__init__.py"
        errors.JaxRuntimeError = JaxRuntimeError
        bridge = ModuleType("jax._src.xla_bridge")
        bridge._backends = self.backends
        for module in (jax, errors, bridge):
            monkeypatch.setitem(sys.modules, module.__name__, module)

    def use_gpu(self, *devices):
        client = self.backends["cuda"] = Client(*(devices or (Device(0),)))
        return client
