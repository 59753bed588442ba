"""gpuviz's caching allocator in torch, Numba, cuda.core and RMM; each test has its own process."""

import importlib.util
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import gpuviz

pytestmark = pytest.mark.gpu

ROOT = Path(__file__).parents[2]
MODULES = {"torch": "torch", "numba": "numba_cuda", "cuda_core": "cuda.core", "rmm": "rmm"}


def has(module):
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False


def needs(name):
    return pytest.mark.skipif(not has(MODULES[name]), reason=f"no {MODULES[name]}")


def numba_compiles():
    """Return whether the installed numba-cuda and NumPy work together."""
    import numpy as np

    found = importlib.util.find_spec("numba_cuda") if has("numba_cuda") else None
    if found is None or found.origin is None or hasattr(np, "row_stack"):
        return True
    arrays = Path(found.origin).parent / "numba" / "cuda" / "np" / "arrayobj.py"
    return "np.row_stack" not in arrays.read_text()


COMPILES = pytest.mark.skipif(
    not numba_compiles(), reason="numba-cuda needs numpy.row_stack, which NumPy has removed"
)


def frameworks(*names):
    return pytest.mark.parametrize("name", [pytest.param(n, marks=needs(n)) for n in names])


def python(*arguments, **environment):
    import os

    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def run(program, **environment):
    """Return what a program prints and what it writes to stderr."""
    done = python("-c", textwrap.dedent(program), **environment)
    return done.stdout.strip(), done.stderr.strip()


@frameworks("torch", "numba", "cuda_core", "rmm")
@pytest.mark.parametrize("seed", [1, 2])
def test_random_programs_give_the_events_of_the_raw_allocator(name, seed):
    done = python("-m", "tests.gpu.allocator_programs", name, "20000", str(seed))

    result = json.loads(done.stdout.splitlines()[-1])
    assert result["difference"] is None
    assert result["wrong"] == 0
    assert result["dropped"] == 0
    assert result["left"] == 0
    assert result["operations"] >= 20000
    assert result["events"] > 20000


@needs("torch")
def test_torch_and_cupy_share_one_pool():
    out, err = run("""
        import cupy, gpuviz, torch
        gpuviz.allocators.torch.install()
        gpuviz.allocators.cupy.install()
        a = cupy.empty(64 << 20, dtype="u1")
        address = a.data.ptr
        del a
        t = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
        print(t.data_ptr() == address, gpuviz.memory_allocated(0), gpuviz.memory_reserved(0))
    """)

    assert out == f"True {64 << 20} {64 << 20}"
    assert err == ""


@needs("torch")
def test_a_training_step_of_torch_gives_the_same_numbers():
    program = """
        import sys, gpuviz, torch
        if sys.argv[1:] == ["shared"]:
            gpuviz.allocators.torch.install()
        torch.manual_seed(0)
        torch.use_deterministic_algorithms(True)
        model = torch.nn.Sequential(
            torch.nn.Linear(300, 500), torch.nn.ReLU(), torch.nn.Linear(500, 7)
        ).cuda()
        optimizer = torch.optim.Adam(model.parameters())
        for step in range(20):
            loss = model(torch.randn(64 + 31 * step, 300, device="cuda")).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        print(float(loss))
    """
    environment = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}

    text = textwrap.dedent(program)
    own = python("-c", text, **environment).stdout
    shared = python("-c", text, "shared", **environment).stdout

    assert shared == own


@needs("torch")
def test_torch_raises_its_out_of_memory_error():
    out, err = run("""
        import gpuviz, torch
        gpuviz.allocators.torch.install()
        kept = torch.ones(1000, device="cuda")
        for _ in range(3):
            try:
                torch.empty(1 << 45, dtype=torch.uint8, device="cuda")
            except torch.OutOfMemoryError as error:
                text = str(error)
        print("32.00 TiB" in text or "32768.00 GiB" in text, float(kept.sum()))
    """)

    assert out == "True 1000.0"
    assert err == ""


@needs("torch")
def test_torch_is_told_that_it_is_too_late():
    out, _ = run("""
        import torch
        kept = torch.ones(1000, device="cuda")
        import gpuviz
        from gpuviz.errors import InstallationError
        try:
            gpuviz.allocators.torch.install()
        except InstallationError as error:
            print("already used CUDA" in str(error))
        print(gpuviz.allocators.torch.is_installed(), float(kept.sum()))
    """)

    assert out.splitlines() == ["True", "False 1000.0"]


@needs("torch")
def test_with_torchs_asynchronous_allocator_it_refuses_and_torch_works():
    out, _ = run(
        """
        import gpuviz, torch
        from gpuviz.errors import InstallationError
        try:
            gpuviz.allocators.torch.install()
        except InstallationError as error:
            print(error)
        print(float(torch.ones(1000, device="cuda").sum()))
        """,
        PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync",
    )

    refusal, total = out.splitlines()
    assert "PYTORCH_CUDA_ALLOC_CONF contains backend:cudaMallocAsync" in refusal
    assert total == "1000.0"


@needs("torch")
def test_torchs_own_settings_lose_their_effect_with_a_warning():
    out, err = run(
        """
        import gpuviz, torch
        gpuviz.allocators.torch.install()
        gpuviz.allocators.torch.install()
        kept = torch.ones(1000, device="cuda")
        print(float(kept.sum()), gpuviz.memory_allocated(0))
        """,
        PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True",
    )

    assert out == "1000.0 4096"
    assert err.count("has no effect on gpuviz's caching allocator") == 1


@needs("torch")
def test_torchs_functions_reach_the_allocator():
    out, err = run("""
        import gpuviz, torch
        gpuviz.allocators.torch.install()
        x = torch.empty(100 << 20, dtype=torch.uint8, device="cuda")
        del x
        before = gpuviz.memory_reserved(0)
        torch.cuda.empty_cache()
        print(before, gpuviz.memory_reserved(0))
        torch.cuda.set_per_process_memory_fraction(0.01)
        print(round(gpuviz.get_per_process_memory_fraction(0), 2))
        try:
            torch.empty(20 << 30, dtype=torch.uint8, device="cuda")
        except torch.OutOfMemoryError:
            print("refused")
    """)

    assert out.splitlines() == [f"{100 << 20} 0", "0.01", "refused"]
    assert err == ""


@needs("torch")
def test_a_block_used_on_another_stream_is_not_reused_early():
    out, _ = run("""
        import gpuviz, torch
        gpuviz.allocators.torch.install()
        side = torch.cuda.Stream()
        x = torch.zeros(8 << 20, dtype=torch.uint8, device="cuda")
        address = x.data_ptr()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(500_000_000)
            x.fill_(7)
        x.record_stream(side)
        del x
        y = torch.zeros(8 << 20, dtype=torch.uint8, device="cuda")
        print(y.data_ptr() == address)
        torch.cuda.synchronize()
        del y
        z = [torch.zeros(8 << 20, dtype=torch.uint8, device="cuda") for _ in range(2)]
        print(address in {each.data_ptr() for each in z}, sum(int(each.sum()) for each in z))
    """)

    assert out.splitlines() == ["False", "True 0"]


@needs("torch")
def test_tensors_are_freed_by_any_thread_after_a_recording_and_at_exit():
    out, err = run("""
        import threading
        import gpuviz, torch
        gpuviz.allocators.torch.install()
        shelf = []

        def allocate():
            for size in range(1, 2000):
                shelf.append(torch.empty(size * 100, dtype=torch.uint8, device="cuda"))

        def free():
            while len(shelf) > 5:
                shelf.pop()

        with gpuviz.record(streams=False) as recorder:
            makers = [threading.Thread(target=allocate) for _ in range(4)]
            for each in makers:
                each.start()
            for each in makers:
                each.join()
            half = len(shelf) // 2
            while len(shelf) > half:
                shelf.pop()
        takers = [threading.Thread(target=free) for _ in range(4)]
        for each in takers:
            each.start()
        for each in takers:
            each.join()
        actions = recorder.recording.table("memory_events")["action"].to_pylist()
        print(actions.count("alloc"), actions.count("free_requested"), len(shelf) <= 5)
        kept = shelf  # until the process ends
    """)

    assert out == "7996 3998 True"
    assert err == ""


@needs("torch")
def test_recorded_tensors_have_their_lines():
    out, _ = run("""
        import gpuviz, torch
        gpuviz.allocators.torch.install()
        torch.empty(1, device="cuda")
        with gpuviz.record() as recorder:
            kept = torch.empty(5 << 20, dtype=torch.uint8, device="cuda")
            moved = torch.ones(1000).cuda()
        frames = recorder.recording.table("memory_events").to_pylist()
        allocated = [row for row in frames if row["action"] == "alloc"]
        print([row["requested_size"] for row in allocated], all(row["stack"] for row in allocated))
    """)

    assert out == f"[{5 << 20}, 4000] True"


@needs("torch")
def test_backward_passes_allocate_from_torchs_threads():
    out, err = run("""
        import gpuviz, torch
        gpuviz.allocators.torch.install()
        with gpuviz.record(streams=False) as recorder:
            x = torch.ones(1 << 20, device="cuda", requires_grad=True)
            (x * 2 + x.square()).sum().backward()
            print(float(x.grad.sum()))
        threads = set(recorder.recording.table("memory_events")["thread"].to_pylist())
        print(len(threads) > 1)
    """)

    assert out.splitlines() == [str(4.0 * (1 << 20)), "True"]
    assert err == ""


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


@needs("cuda_core")
def test_cuda_core_raises_a_memory_error_and_keeps_other_threads_resources():
    out, err = run("""
        import threading
        import cuda.core
        import gpuviz
        device = cuda.core.Device(0)
        device.set_current()
        before = device.memory_resource
        gpuviz.allocators.cuda_core.install()
        gpuviz.allocators.cuda_core.install()
        stream = device.create_stream()
        try:
            device.allocate(1 << 45, stream=stream)
        except MemoryError as error:
            print(type(error).__mro__[1].__name__)
        buffer = device.allocate(1000, stream=stream)
        print(buffer.size, buffer.device_id, buffer.is_device_accessible, buffer.is_host_accessible)
        print(gpuviz.memory_allocated(0))
        buffer.close(stream)
        print(gpuviz.memory_allocated(0), gpuviz.allocators.cuda_core.is_installed())

        def elsewhere():
            own = cuda.core.Device(0)
            own.set_current()
            print(own.memory_resource is device.memory_resource)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        gpuviz.allocators.cuda_core.uninstall()
        print(device.memory_resource is before, gpuviz.allocators.cuda_core.is_installed())
        kept = gpuviz.allocators.cuda_core.memory_resource(0).allocate(77, stream=stream)
        print(gpuviz.memory_allocated(0))
    """)

    assert out.splitlines() == [
        "CUDAError",
        "1000 0 True False",
        "1024",
        "0 True",
        "False",
        "True False",
        "512",
    ]
    assert err == ""


@needs("torch")
def test_a_graph_that_torch_captures_on_the_shared_pool_is_refused():
    out, err = run("""
        import torch, gpuviz
        from gpuviz.errors import InstallationError
        gpuviz.allocators.torch.install()
        x = torch.ones(1000, device="cuda")
        before = torch.cuda.current_stream()
        try:
            with torch.cuda.graph(torch.cuda.CUDAGraph()):
                y = x * 2 + 1
        except InstallationError as error:
            print(str(error).partition(",")[0])
        print(torch.cuda.current_stream() == before, float((x * 2)[0]))
    """)

    assert out.splitlines() == [
        "torch cannot capture a CUDA graph on gpuviz's caching allocator",
        "True 2.0",
    ]
    assert err == ""


@needs("rmm")
def test_rmm_raises_a_memory_error_and_gets_its_resource_back():
    out, err = run("""
        import gpuviz, rmm
        before = rmm.mr.get_current_device_resource()
        gpuviz.allocators.rmm.install()
        gpuviz.allocators.rmm.install()
        try:
            rmm.DeviceBuffer(size=1 << 45)
        except MemoryError:
            print("MemoryError")
        kept = rmm.DeviceBuffer(size=1000)
        print(gpuviz.memory_allocated(0), gpuviz.allocators.rmm.is_installed())
        gpuviz.allocators.rmm.uninstall()
        print(rmm.mr.get_current_device_resource() is before)
        del kept
        print(gpuviz.memory_allocated(0))
    """)

    assert out.splitlines() == ["MemoryError", "1024 True", "True", "0"]
    assert err == ""


KEPT_POOL = (
    "RMM keeps the program's PoolMemoryResource: its allocations are recorded, but not the memory "
    "that it reserves."
)


@needs("rmm")
@pytest.mark.parametrize("allocator", ["caching", "observe"])
def test_rmms_own_pool_is_recorded_and_put_back(allocator):
    out, err = run(f"""
        import gpuviz, rmm
        rmm.reinitialize(pool_allocator=True, initial_pool_size=64 << 20)
        pool = rmm.mr.get_current_device_resource()
        streams = [rmm.pylibrmm.stream.Stream() for _ in range(2)]
        handles = [stream.__cuda_stream__()[1] for stream in streams]
        wanted = []
        def allocate(size, place):
            buffer = rmm.DeviceBuffer(size=size, stream=streams[place])
            wanted.append(("alloc", buffer.ptr, size, handles[place]))
            return buffer
        def freed(buffer, size, place):
            for action in ("free_requested", "free_completed"):
                wanted.append((action, buffer.ptr, size, handles[place]))
        with gpuviz.record(allocator={allocator!r}, streams=False) as recorder:
            first, second = allocate(1000, 0), allocate(3 << 20, 1)
            freed(first, 1000, 0)
            del first
            third = allocate(77, 1)
            try:
                rmm.DeviceBuffer(size=1 << 45)
            except MemoryError:
                print("MemoryError")
        del third
        print(rmm.mr.get_current_device_resource() is pool)
        with gpuviz.record(allocator={allocator!r}, streams=False) as again:
            freed(second, 3 << 20, 1)
            del second
        def events(recording):
            handle = {{row["id"]: row["handle"] for row in recording.table("streams").to_pylist()}}
            return [
                (row["action"], row["address"], row["requested_size"], handle[row["stream"]])
                for row in recording.table("memory_events").to_pylist() if row["framework"] == "rmm"
            ]
        print(events(recorder.recording) == wanted[:5], len(wanted))
        print(events(again.recording) == [wanted[1], *wanted[5:]])
        print([row["id"] for row in recorder.recording.table("devices").to_pylist()])
        print(*recorder.status().notes)
        print(rmm.mr.get_current_device_resource() is pool, rmm.DeviceBuffer(size=1000).size)
    """)

    assert out.splitlines() == [
        "MemoryError",
        "True",
        "True 7",
        "True",
        "[0]",
        KEPT_POOL,
        "True 1000",
    ]
    # RMM itself prints that its pool could not grow.
    assert [line for line in err.splitlines() if "FAILURE maximum pool size" not in line] == []


@needs("rmm")
def test_an_array_of_cupy_in_rmms_pool_is_recorded_once():
    out, err = run("""
        import cupy, gpuviz, rmm
        from rmm.allocators.cupy import rmm_cupy_allocator
        rmm.reinitialize(pool_allocator=True, initial_pool_size=64 << 20)
        cupy.cuda.set_allocator(rmm_cupy_allocator)
        with gpuviz.record(allocator="observe", streams=False) as recorder:
            x = cupy.empty(1000, "u1")
            y = rmm.DeviceBuffer(size=77)
            del x, y
        for row in recorder.recording.table("memory_events").to_pylist():
            print(row["action"], row["requested_size"], row["framework"])
    """)

    assert out.splitlines() == [
        "alloc 1000 cupy",
        "alloc 77 rmm",
        "free_requested 1000 cupy",
        "free_completed 1000 cupy",
        "free_requested 77 rmm",
        "free_completed 77 rmm",
    ]
    assert err == ""


@frameworks("torch", "numba", "cuda_core", "rmm")
def test_a_forked_child_cannot_allocate_and_exits_quietly(name):
    programs = {
        "torch": "a = torch.empty(1000, device='cuda')",
        "numba": "a = numba.cuda.device_array(1000)",
        "cuda_core": "a = device.allocate(1000, stream=device.default_stream)",
        "rmm": "a = rmm.DeviceBuffer(size=1000)",
    }
    start = {
        "torch": "import torch",
        "numba": "import numba.cuda",
        "cuda_core": "import cuda.core\ndevice = cuda.core.Device(0)\ndevice.set_current()",
        "rmm": "import rmm",
    }
    text = "\n".join(
        [
            "import os, sys, gpuviz",
            start[name],
            f"gpuviz.allocators.{name}.install()",
            programs[name],
            "child = os.fork()",
            "if child == 0:",
            "    try:",
            f"        {programs[name].replace('a =', 'b =')}",
            "    except Exception as error:",
            "        print('refused', flush=True)",
            "    sys.exit(3)",
            "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))",
        ]
    )

    done = python("-c", text)

    assert done.stdout.splitlines() == ["refused", "3"]
    assert "Traceback" not in done.stderr


def gpuviz_run(folder, program, *options):
    """Return the recording of a program under ``gpuviz run``, and what was written to stderr."""
    path = folder / "program.py"
    path.write_text(textwrap.dedent(program))
    recording = folder / "run.gpuviz"
    done = python("-m", "gpuviz", "run", *options, "-o", str(recording), str(path))
    return gpuviz.load(recording), done.stderr


def allocated_sizes(recording):
    events = recording.table("memory_events").to_pylist()
    return [row["requested_size"] for row in events if row["action"] == "alloc"]


def owners(recording):
    events = recording.table("memory_events").to_pylist()
    return [row["framework"] for row in events if row["action"] == "alloc"]


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
