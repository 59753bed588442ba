"""gpuviz's caching allocator in RMM, and RMM's own resources; each test has its own process."""

import pytest

from tests.gpu.library_processes import needs, run

pytestmark = pytest.mark.gpu


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
