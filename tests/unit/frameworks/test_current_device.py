"""The device of an allocation: that of the current context, else CuPy's current device."""

import ctypes

import pytest
from cupy.cuda import memory

from gpuviz import _core
from gpuviz.frameworks import cupy as framework
from tests.unit.frameworks.simulated_cupy import state

NO_CONTEXT = 201  # CUDA_ERROR_INVALID_CONTEXT
GET_DEVICE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int))


class Contexts:
    """The driver's current context, as a program may change it at any time."""

    def __init__(self):
        self.device = None
        self.function = GET_DEVICE(self._get_device)
        self.address = ctypes.cast(self.function, ctypes.c_void_p).value

    def _get_device(self, found):
        if self.device is None:
            found[0] = 99  # a failing call may write anything
            return NO_CONTEXT
        found[0] = self.device
        return 0


def allocated_on(malloc):
    pointer = malloc(1000)
    return pointer.device_id


def test_an_allocation_is_on_the_device_of_the_current_context():
    contexts = Contexts()
    opened = []

    def open_device(device):
        opened.append(device)
        simulated = _core.SimulatedDevice(1 << 30, device)
        return _core.CachingAllocator(simulated, _core.AllocatorSettings.parse(""))

    client = _core.CupyAllocator(
        memory_module=memory,
        **state(current_device=lambda: 2),
        open_device=open_device,
        out_of_memory=framework._out_of_memory,
        context_device=contexts.address,
    )
    malloc = _core.cupy_malloc(lambda: client)

    found = []
    for contexts.device in (1, None, 3, 1):
        found.append(allocated_on(malloc))

    assert found == [1, 2, 3, 1]
    assert opened == [1, 2, 3]


class Driver:
    """The functions of a driver with given device handles."""

    def __init__(self, handles, initialized=0):
        self.handles = handles
        self.cuCtxGetDevice = Contexts().function
        self._initialized = initialized

    def cuInit(self, _flags):  # noqa: N802 - the driver's name
        return self._initialized

    def cuDeviceGetCount(self, count):  # noqa: N802 - the driver's name
        count._obj.value = len(self.handles)
        return 0

    def cuDeviceGet(self, device, ordinal):  # noqa: N802 - the driver's name
        device._obj.value = self.handles[ordinal]
        return 0


@pytest.mark.parametrize(
    ("runtime", "driver", "is_used"),
    [
        (12000, Driver([0, 1, 2]), True),
        (13020, Driver([0]), True),
        (11080, Driver([0, 1]), False),
        (12000, Driver([0, 2]), False),
        (12000, Driver([0], initialized=100), False),
        (12000, OSError("libcuda.so.1: cannot open shared object file"), False),
        (12000, AttributeError("undefined symbol: cuCtxGetDevice"), False),
    ],
)
def test_the_context_is_asked_only_where_it_is_exact(monkeypatch, runtime, driver, is_used):
    def open_library(name):
        assert name == "libcuda.so.1"
        if isinstance(driver, Exception):
            raise driver
        return driver

    monkeypatch.setattr(framework.ctypes, "CDLL", open_library)

    address = framework._context_device(runtime)

    expected = ctypes.cast(driver.cuCtxGetDevice, ctypes.c_void_p).value if is_used else 0
    assert address == expected
