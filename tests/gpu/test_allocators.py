"""gpuviz's caching allocator in all libraries, and in cuda.core; each test has its own process."""

import json

import pytest

from tests.gpu.library_processes import frameworks, needs, python, run

pytestmark = pytest.mark.gpu


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
