"""gpuviz's caching allocator in Numba; each test has its own process."""

import pytest

from tests.gpu.library_processes import COMPILES, needs, run

pytestmark = pytest.mark.gpu


@needs("numba")
def test_numba_raises_its_error_when_memory_runs_out():
    out, err = run("""
        import gpuviz
        gpuviz.allocators.numba.install()
        from numba import cuda
        from numba.cuda.cudadrv.driver import CudaAPIError
        try:
            cuda.device_array(1 << 45, "u1")
        except CudaAPIError as error:
            print(int(error.code) == 2)  # CUDA_ERROR_OUT_OF_MEMORY
        free, total = cuda.current_context().get_memory_info()
        print(0 < free <= total, gpuviz.allocators.numba.is_installed())
    """)

    assert out.splitlines() == ["True", "True True"]
    assert "Traceback" not in err


@needs("numba")
def test_numba_is_told_that_it_is_too_late():
    out, _ = run("""
        import numpy
        from numba import cuda
        kept = cuda.to_device(numpy.arange(1000))
        import gpuviz
        from gpuviz.errors import InstallationError
        try:
            gpuviz.allocators.numba.install()
        except InstallationError as error:
            print("keeps its memory manager" in str(error))
        print(gpuviz.allocators.numba.is_installed(), kept.copy_to_host().sum())
    """)

    assert out.splitlines() == ["True", "False 499500"]


@needs("numba")
@COMPILES
def test_numba_kernels_and_pinned_arrays_work():
    out, err = run("""
        import numpy
        import gpuviz
        gpuviz.allocators.numba.install()
        gpuviz.allocators.numba.install()
        from numba import cuda

        @cuda.jit
        def double(x):
            i = cuda.grid(1)
            if i < x.size:
                x[i] *= 2

        stream = cuda.stream()
        total = 0
        for step in range(100):
            host = cuda.pinned_array(1000, "i8")
            host[:] = step
            device = cuda.to_device(host, stream=stream)
            double[8, 128, stream](device)
            part = device[100:200]
            del device
            total += int(part.copy_to_host(stream=stream).sum()) if step % 10 == 0 else 0
            stream.synchronize()
        print(total, gpuviz.memory_allocated(0))
        del part
        cuda.synchronize()
        print(gpuviz.memory_stats(0)["active.all.allocated"] >= 100)
    """)

    assert out.splitlines() == [f"{sum(200 * step for step in range(0, 100, 10))} 8192", "True"]
    assert "Traceback" not in err


@needs("numba")
@COMPILES
def test_numba_arrays_are_not_reused_while_another_stream_uses_them():
    out, _ = run("""
        import numpy
        import gpuviz
        gpuviz.allocators.numba.install()
        from numba import cuda

        @cuda.jit
        def slowly_fill(x, value):
            for _ in range(20_000_000):
                cuda.syncthreads()
            for i in range(cuda.threadIdx.x, x.size, cuda.blockDim.x):
                x[i] = value

        one, other = cuda.stream(), cuda.stream()
        x = cuda.device_array(1 << 20, "u1")
        slowly_fill[1, 128, one](x, 1)
        one.synchronize()
        slowly_fill[1, 128, one](x, 7)
        address = x.device_ctypes_pointer.value
        del x
        y = cuda.to_device(numpy.full(1 << 20, 3, "u1"), stream=other)
        print(y.device_ctypes_pointer.value == address)
        one.synchronize()
        print(set(y.copy_to_host(stream=other)) == {3})
    """)

    assert out.splitlines() == ["False", "True"]


@needs("numba")
def test_numba_takes_the_manager_that_the_variable_names():
    out, err = run(
        """
        import gpuviz
        from numba import cuda
        kept = cuda.device_array(1000, "u1")
        print(gpuviz.memory_allocated(0), gpuviz.allocators.numba.is_installed())
        """,
        NUMBA_CUDA_MEMORY_MANAGER="gpuviz.allocators.numba",
    )

    assert out == "1024 True"
    assert "Traceback" not in err
