"""gpuviz's caching allocator in torch; each test has its own process."""

import textwrap

import pytest

from tests.gpu.library_processes import needs, python, run

pytestmark = pytest.mark.gpu


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
