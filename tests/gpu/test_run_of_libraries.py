"""Programs of torch, Numba and cuda.core that ``gpuviz run`` records."""

import pytest

from tests.gpu.library_processes import allocated_sizes, gpuviz_run, needs, owners, run

pytestmark = pytest.mark.gpu


@needs("numba")
def test_a_program_of_numba_alone_is_recorded(tmp_path):
    recording, err = gpuviz_run(
        tmp_path,
        """
        import numpy
        from numba import cuda
        x = cuda.to_device(numpy.arange(1000, dtype="i8"))
        y = cuda.device_array(77, "u1")
        assert x.copy_to_host().sum() == 499500
        """,
    )

    assert allocated_sizes(recording) == [8000, 77]
    assert "not recorded" not in err


@needs("numba")
@needs("cuda_core")
def test_libraries_of_a_recorded_program_share_cupys_pool(tmp_path):
    recording, err = gpuviz_run(
        tmp_path,
        """
        import cupy
        x = cupy.empty(111, "u1")
        import numba.cuda
        import cuda.core
        y = numba.cuda.device_array(222, "u1")
        device = cuda.core.Device(0)
        device.set_current()
        z = device.allocate(333, stream=device.default_stream)
        """,
    )

    assert allocated_sizes(recording) == [111, 222, 333]
    assert owners(recording) == ["cupy", "numba", "cuda_core"]
    assert "not recorded" not in err


@needs("numba")
def test_a_recording_notes_that_numba_was_too_late():
    out, _ = run("""
        from numba import cuda
        kept = cuda.device_array(1000)
        import gpuviz
        with gpuviz.record(streams=False) as recorder:
            other = cuda.device_array(1000)
        print([note for note in recorder.status().notes if "Numba" in note])
    """)

    assert "The memory of Numba is not recorded: Numba already has a context" in out


@needs("torch")
def test_gpuviz_run_puts_torch_on_the_shared_pool(tmp_path):
    recording, err = gpuviz_run(
        tmp_path,
        """
        import torch
        x = torch.empty(111, dtype=torch.uint8, device="cuda")
        import cupy
        y = cupy.empty(222, "u1")
        """,
        "--shared-pool",
    )

    assert allocated_sizes(recording) == [111, 222]
    assert owners(recording) == ["torch", "cupy"]
    assert "not recorded" not in err


@needs("torch")
def test_without_the_option_torch_keeps_its_own_allocator(tmp_path):
    recording, _ = gpuviz_run(
        tmp_path,
        """
        import torch
        x = torch.empty(111, dtype=torch.uint8, device="cuda")
        import cupy
        y = cupy.empty(222, "u1")
        assert torch.cuda.memory_allocated() == 512
        """,
    )

    assert sorted(allocated_sizes(recording)) == [111, 222]
    assert sorted(owners(recording)) == ["cupy", "torch"]


@needs("torch")
def test_a_program_that_uses_only_torch_is_recorded_from_its_first_allocation(tmp_path):
    recording, err = gpuviz_run(
        tmp_path,
        """
        import torch
        x = torch.empty(111, dtype=torch.uint8, device="cuda")
        y = torch.empty(222, dtype=torch.uint8, device="cuda")
        """,
    )

    assert allocated_sizes(recording) == [111, 222]
    assert owners(recording) == ["torch", "torch"]
    assert "not recorded" not in err
