"""NumPy's arrays in memory of a function, and access between devices."""

import ctypes
import subprocess
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from gpuviz.frameworks import cupy_peers
from gpuviz.frameworks.pinned_arrays import PinnedArrays

KIB = 1 << 10


class Pool:
    """Memory of this process, as a pool of pinned memory gives it."""

    def __init__(self):
        self.sizes = {}

    def __call__(self, size):
        if size > 1000 * KIB:
            raise MemoryError
        memory = ctypes.create_string_buffer(size)
        pointer = SimpleNamespace(ptr=ctypes.addressof(memory), memory=memory)
        self.sizes[pointer.ptr] = size
        return pointer


@pytest.fixture
def pool():
    made = Pool()
    arrays = PinnedArrays(made)
    yield made
    arrays.end()


def address(array):
    return array.__array_interface__["data"][0]


def test_large_arrays_are_in_the_pool_and_small_and_refused_ones_as_before(pool):
    large, cleared = np.full(64 * KIB, 3, np.uint8), np.zeros(100 * KIB, np.uint8)
    small, refused = np.ones(64 * KIB - 1, np.uint8), np.ones(1001 * KIB, np.uint8)

    assert [pool.sizes.get(address(each)) for each in (large, cleared)] == [64 * KIB, 100 * KIB]
    assert (large == 3).all()
    assert not cleared.any()
    assert not {address(small), address(refused)} & pool.sizes.keys()
    assert (small.sum(), refused.sum()) == (64 * KIB - 1, 1001 * KIB)


def test_resized_arrays_keep_their_values(pool):
    grown, shrunk = np.full(64 * KIB, 3, np.uint8), np.full(200 * KIB, 5, np.uint8)
    grown.resize(128 * KIB, refcheck=False)
    shrunk.resize(10, refcheck=False)

    assert pool.sizes[address(grown)] == 128 * KIB
    assert (grown[: 64 * KIB] == 3).all()
    assert shrunk.tolist() == [5] * 10


def test_arrays_outlive_the_end():
    pool = Pool()
    arrays = PinnedArrays(pool)
    kept = np.full(64 * KIB, 3, np.uint8)
    arrays.end()
    del arrays
    after = np.ones(64 * KIB, np.uint8)

    assert (kept == 3).all()
    assert address(after) not in pool.sizes


def test_a_process_ends_while_numpy_has_such_arrays():
    program = """
import numpy
from tests.unit.frameworks.test_pinned_arrays import Pool, PinnedArrays
PinnedArrays(Pool())
kept = numpy.ones(1 << 17)
print(kept.sum())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (0, "131072.0\n")


def test_devices_that_can_access_each_other_do(monkeypatch):
    enabled = []

    class CUDARuntimeError(Exception):
        status = 704

    def enable(peer):
        enabled.append(peer)
        raise CUDARuntimeError

    runtime = SimpleNamespace(
        getDeviceCount=lambda: 3,
        deviceCanAccessPeer=lambda device, peer: 2 not in (device, peer),
        deviceEnablePeerAccess=enable,
        CUDARuntimeError=CUDARuntimeError,
    )
    cuda = SimpleNamespace(runtime=runtime, Device=lambda _: nullcontext())
    monkeypatch.setattr(cupy_peers, "import_cupy", lambda: SimpleNamespace(cuda=cuda))
    cupy_peers.enable_peer_access()
    CUDARuntimeError.status = 1

    assert enabled == [1, 0]
    with pytest.raises(CUDARuntimeError):
        cupy_peers.enable_peer_access()
