"""gpuviz.allocators.torch, with a torch that has only the interfaces used."""

import ctypes
import sys

import pytest

import gpuviz
from gpuviz import _core
from gpuviz.errors import DeviceUnavailableError, InstallationError
from tests.unit.allocators.client_libraries import (
    TorchMemory,
    add_torch,
)


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
