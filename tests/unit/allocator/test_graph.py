"""`gpuviz.graph` with a stream that is none of a `SimulatedGPU`."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

import gpuviz
from gpuviz.frameworks import cupy as framework

from .test_memory_functions import MIB, block_at


class Stream:
    """As much of a stream of CuPy as a capture needs."""

    device_id = 1

    def __init__(self):
        self.capturing = False
        self.ptr = 0x70
        self.captured_addresses = list

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def is_capturing(self):
        return self.capturing

    def begin_capture(self):
        self.capturing = True

    def end_capture(self):
        self.capturing = False
        return object()


@pytest.fixture
def allocators(monkeypatch):
    """The allocators that CuPy used, the current one last."""
    used = [object()]

    @contextmanager
    def using_allocator(allocator):
        used.append(allocator)
        yield
        used.append(used[0])

    cuda = SimpleNamespace(get_allocator=lambda: used[-1], using_allocator=using_allocator)
    monkeypatch.setattr(framework, "import_cupy", lambda: SimpleNamespace(cuda=cuda))
    return used


@pytest.mark.usefixtures("allocators")
def test_the_memory_comes_from_a_pool_of_the_device_of_the_stream(process):
    process.device = 1
    with gpuviz.graph(Stream()) as graph:
        address = gpuviz.caching_allocator_alloc(30 * MIB)
    outside = gpuviz.caching_allocator_alloc(30 * MIB)

    assert block_at(address, 1)["pool"] == graph.pool.id == (0, 1)
    assert block_at(outside, 1)["pool"] == (0, 0)


@pytest.mark.usefixtures("process")
def test_cupy_allocates_with_gpuviz_in_the_block_only(allocators):
    with gpuviz.graph(Stream()):
        assert allocators[-1] is gpuviz.malloc
    assert allocators[-1] is allocators[0]


@pytest.mark.usefixtures("process")
def test_an_installed_allocator_of_gpuviz_stays(allocators):
    allocators.append(gpuviz.malloc)
    with gpuviz.graph(Stream()):
        pass
    assert allocators[1:] == [gpuviz.malloc]
