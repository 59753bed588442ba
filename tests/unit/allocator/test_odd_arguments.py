"""Odd arguments of the memory functions: an error that names the argument and what it should be."""

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import gpuviz
from gpuviz import _core
from gpuviz.allocator import memory as allocator
from tests.examples import examples
from tests.unit.allocator.conftest import DEVICES

EXAMPLES = examples(40, suppress_health_check=[HealthCheck.function_scoped_fixture])

OF_DEVICE = {
    "memory_stats": gpuviz.memory_stats,
    "memory_stats_as_nested_dict": gpuviz.memory_stats_as_nested_dict,
    "memory_summary": gpuviz.memory_summary,
    "memory_allocated": gpuviz.memory_allocated,
    "max_memory_allocated": gpuviz.max_memory_allocated,
    "memory_reserved": gpuviz.memory_reserved,
    "max_memory_reserved": gpuviz.max_memory_reserved,
    "memory_snapshot": gpuviz.memory_snapshot,
    "reset_peak_memory_stats": gpuviz.reset_peak_memory_stats,
    "reset_accumulated_memory_stats": gpuviz.reset_accumulated_memory_stats,
    "mem_get_info": gpuviz.mem_get_info,
    "list_gpu_processes": gpuviz.list_gpu_processes,
    "get_fraction": gpuviz.get_per_process_memory_fraction,
    "set_fraction": lambda device: gpuviz.set_per_process_memory_fraction(0.5, device),
    "alloc": lambda device: gpuviz.caching_allocator_alloc(100, device, stream=0),
    "MemPool": gpuviz.MemPool,
}
NO_INTEGER = [1.0, "0", b"0", [0], math.nan, Fraction(1), True, object()]
OUT_OF_RANGE = [-1, 1 << 64, -(1 << 70), 10**400]
ODD = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=4)
    | st.binary(max_size=4)
    | st.sampled_from([*OUT_OF_RANGE, (), {}, object(), np.float64(1), np.array([1, 2]), -0.0])
)


def _name(value):
    return type(value).__name__


def _refusal(call):
    try:
        call()
    except (TypeError, ValueError, RuntimeError, MemoryError, IndexError) as error:
        return str(error)
    return "accepted"


pytestmark = pytest.mark.usefixtures("process")


@pytest.fixture(params=[False, True], ids=["before the first use", "in use"])
def in_use(request, process):
    del process
    if request.param:
        gpuviz.caching_allocator_alloc(1000)


@pytest.mark.usefixtures("in_use")
@pytest.mark.parametrize("name", OF_DEVICE)
def test_a_device_that_does_not_exist_is_named(name):
    for device in (DEVICES, 1000, np.int64(7)):
        with pytest.raises(ValueError, match=f"^device {device} does not exist; the GPUs are 0 to"):
            OF_DEVICE[name](device)
    for device in OUT_OF_RANGE:
        with pytest.raises(ValueError, match=r"^device must be the ordinal of a GPU or None from"):
            OF_DEVICE[name](device)


@pytest.mark.usefixtures("in_use")
@pytest.mark.parametrize("name", OF_DEVICE)
def test_a_device_that_is_no_integer_is_named(name):
    for device in NO_INTEGER:
        with pytest.raises(TypeError, match=r"^device must be the ordinal of a GPU or None, got "):
            OF_DEVICE[name](device)


def test_integers_of_numpy_are_integers():
    address = gpuviz.caching_allocator_alloc(np.uint64(1000), np.int8(1), np.int64(5))

    assert gpuviz.memory_allocated(np.int16(1)) == 1024
    gpuviz.caching_allocator_delete(np.uint64(address))
    assert gpuviz.memory_allocated(1) == 0


@pytest.mark.parametrize("size", [None, *NO_INTEGER], ids=_name)
def test_a_size_that_is_no_integer_is_named(size):
    with pytest.raises(TypeError, match=r"^size must be a number of bytes, got "):
        gpuviz.caching_allocator_alloc(size)


@pytest.mark.parametrize("size", OUT_OF_RANGE)
def test_a_size_out_of_range_is_named(size):
    with pytest.raises(ValueError, match=r"^size must be a number of bytes from 0 to 2\*\*64 - 1"):
        gpuviz.caching_allocator_alloc(size)


@pytest.mark.parametrize("size", [(1 << 63) - 1, 1 << 63, (1 << 64) - 1])
def test_a_size_that_no_device_has_is_out_of_memory(size):
    with pytest.raises(MemoryError):
        gpuviz.caching_allocator_alloc(size)


@pytest.mark.parametrize("address", [None, *NO_INTEGER], ids=_name)
def test_an_address_that_is_no_integer_is_named(address):
    with pytest.raises(TypeError, match=r"^address must be an address as int, got "):
        gpuviz.caching_allocator_delete(address)


@pytest.mark.parametrize("value", [*OUT_OF_RANGE, 1, (1 << 64) - 1])
def test_an_address_that_begins_nothing_is_refused(value):
    with pytest.raises(ValueError, match=r"^address must be|^invalid device pointer"):
        gpuviz.caching_allocator_delete(value)


@pytest.mark.parametrize("stream", [-1, 1 << 64])
def test_a_stream_out_of_range_is_named(stream):
    with pytest.raises(ValueError, match=r"^stream must be a cupy\.cuda\.Stream or a handle"):
        gpuviz.caching_allocator_alloc(100, stream=stream)


@pytest.mark.parametrize("fraction", [None, 1, "0.5", True, Fraction(1, 2)], ids=_name)
def test_a_fraction_that_is_no_float_is_named(fraction):
    with pytest.raises(TypeError, match=r"^fraction must be a float, got "):
        gpuviz.set_per_process_memory_fraction(fraction)


@pytest.mark.parametrize("fraction", [-0.1, 1.1, math.inf, math.nan])
def test_a_fraction_out_of_range_is_named(fraction):
    with pytest.raises(ValueError, match=r"^fraction must be within \[0, 1\], got "):
        gpuviz.set_per_process_memory_fraction(fraction)


@pytest.mark.parametrize("settings", [None, 1, b"a:1", ["a"], {}], ids=_name)
def test_settings_that_are_no_text_are_named(settings):
    with pytest.raises(TypeError, match=r"^settings must be a str, got "):
        gpuviz.set_allocator_settings(settings)


def test_settings_with_lone_surrogates_are_refused():
    with pytest.raises(ValueError, match=r"^settings must be valid Unicode"):
        gpuviz.set_allocator_settings("\ud800")


@pytest.mark.parametrize("name", ["use_on_oom", "no_split"])
def test_a_flag_of_a_pool_that_is_no_bool_is_named(name):
    with pytest.raises(TypeError, match=f"^{name} must be True or False, got "):
        gpuviz.MemPool(0, **{name: "yes"})


def test_an_abbreviation_that_is_no_bool_is_named():
    with pytest.raises(TypeError, match=r"^abbreviated must be True or False, got "):
        gpuviz.memory_summary(0, abbreviated=3)


@pytest.mark.parametrize("pool", [None, 1, (0, 1), "pool"])
def test_a_pool_that_is_none_is_named(pool):
    with (
        pytest.raises(TypeError, match=r"^pool must be a gpuviz\.MemPool, got "),
        gpuviz.use_mem_pool(pool),
    ):
        raise AssertionError


@pytest.mark.parametrize("array", [None, 1, "x", [1], np.zeros(3), SimpleNamespace()], ids=_name)
def test_an_array_that_is_none_of_cupy_is_named(array):
    with pytest.raises(TypeError, match=r"^array must be a cupy\.ndarray, got "):
        gpuviz.record_stream(array, SimpleNamespace(ptr=5))


def array_at(address, device):
    return SimpleNamespace(data=SimpleNamespace(mem=SimpleNamespace(ptr=address, device_id=device)))


@pytest.mark.parametrize("stream", [None, 5, "fast", SimpleNamespace(ptr="x")], ids=_name)
def test_a_stream_that_is_none_is_named(stream):
    with pytest.raises(TypeError, match=r"^stream must be a cupy\.cuda\.Stream, got "):
        gpuviz.record_stream(array_at(gpuviz.caching_allocator_alloc(100, 0), 0), stream)


def test_a_stream_of_another_device_than_the_array_is_refused():
    array = array_at(gpuviz.caching_allocator_alloc(100, 1), 1)

    with pytest.raises(ValueError, match="stream belongs to device 0, but array to device 1"):
        gpuviz.record_stream(array, SimpleNamespace(ptr=5, device_id=0))
    gpuviz.record_stream(array, SimpleNamespace(ptr=5, device_id=1))


@EXAMPLES
@given(values=st.tuples(ODD, ODD, ODD))
def test_the_native_allocator_refuses_what_it_cannot_use(values):
    native = allocator.caching_allocator(0)
    first, second, third = values
    calls = [
        lambda: native.allocate(first, second, third),
        lambda: native.free(first, second),
        lambda: native.record_stream(first, second),
        lambda: native.begin_pool(first, second),
        lambda: native.end_pool(first),
        lambda: native.release_pool(first),
        lambda: native.create_pool(first, second),
        lambda: native.set_memory_fraction(first),
        lambda: native.identify_stream(first, second),
        lambda: native.owns(first),
        lambda: native.block_at(first),
        lambda: native.attach(first),
        lambda: native.describe_state(first, second),
        lambda: native.apply_settings(first),
        lambda: native.set_last_resort(first),
        lambda: native.set_free_memory_callback(first),
        lambda: _core.AllocatorSettings.parse(first),
        lambda: _core.CachingAllocator(first, second),
        lambda: _core.SimulatedDevice(first, second),
    ]
    assert all(_refusal(call) for call in calls)
    native.set_last_resort(None)
    native.set_free_memory_callback(None)
    native.set_memory_fraction(1.0)


@pytest.mark.parametrize("nbytes", [None, 1.0, "1", True], ids=_name)
def test_an_array_of_a_simulated_gpu_needs_a_number_of_bytes(nbytes):
    with pytest.raises(TypeError, match=r"^nbytes must be a number of bytes, got "):
        gpuviz.SimulatedGPU().empty(nbytes)
    with pytest.raises(TypeError, match=r"^memory must be a number of bytes, got "):
        gpuviz.SimulatedGPU(nbytes)


def test_an_array_or_stream_of_another_simulated_gpu_is_refused():
    gpu, other = gpuviz.SimulatedGPU(), gpuviz.SimulatedGPU()
    own, array = gpu.empty(1000), other.empty(1000)
    uses = [
        lambda: gpu.launch("k", duration=1e-6, reads=[array]),
        lambda: gpu.launch("k", duration=1e-6, writes=[own, array]),
        lambda: gpu.copy(own, array),
        lambda: gpu.copy_to_device(array),
        lambda: gpu.copy_to_host(array),
        lambda: gpu.fill(array),
        lambda: gpu.record_stream(array, gpu.null_stream),
    ]

    for use in uses:
        with pytest.raises(ValueError, match="array belongs to another SimulatedGPU"):
            use()
    with pytest.raises(ValueError, match="stream belongs to another SimulatedGPU"):
        gpu.record_stream(own, other.null_stream)
    with pytest.raises(TypeError, match="array must be a SimulatedArray, got NoneType"):
        gpu.fill(None)


@pytest.mark.parametrize("name", ["reads", "writes"])
def test_one_array_in_place_of_a_list_is_named(name):
    gpu = gpuviz.SimulatedGPU()

    with pytest.raises(TypeError, match=f"{name} must be a list of arrays, got an array"):
        gpu.launch("scale", duration=1e-3, **{name: gpu.empty(1000)})
