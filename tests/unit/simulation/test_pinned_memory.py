import gc

import pytest

import gpuviz

MIB = 1 << 20


def test_freed_pinned_memory_is_not_reused_before_its_copy_is_done(gpu):
    array, stream = gpu.empty(8 * MIB), gpu.Stream(non_blocking=True)
    with stream:
        gpu.launch("spin", duration=60e-3)
        staging = gpu.empty_pinned(8 * MIB)
        address = staging.ptr
        gpu.copy_to_device(array, host=staging)
    del staging

    during = gpu.empty_pinned(8 * MIB).ptr
    stream.synchronize()
    after = [gpu.empty_pinned(8 * MIB) for _ in range(2)]

    assert during != address
    assert address in [each.ptr for each in after]


def test_it_is_reused_while_other_streams_work(gpu):
    array, busy = gpu.empty(MIB), gpu.Stream(non_blocking=True)
    stream = gpu.Stream(non_blocking=True)
    with busy:
        gpu.launch("spin", duration=60e-3)
    staging = gpu.empty_pinned(MIB)
    address = staging.ptr
    with stream:
        gpu.copy_to_host(array, host=staging)
        stream.synchronize()
    del staging
    gpu.work_on_host(100e-6)

    assert gpu.empty_pinned(MIB).ptr == address
    assert not busy.done


def test_it_waits_for_a_stream_that_was_destroyed(gpu):
    array, stream = gpu.empty(MIB), gpu.Stream(non_blocking=True)
    staging = gpu.empty_pinned(MIB)
    address = staging.ptr
    with stream:
        gpu.launch("spin", duration=60e-3)
        gpu.copy_to_device(array, host=staging)
    handle = stream.ptr
    del stream
    gc.collect()
    reused = gpu.Stream(non_blocking=True)
    del staging

    assert reused.ptr == handle
    assert gpu.empty_pinned(MIB).ptr != address


def test_a_blocking_copy_is_on_the_default_stream_and_leaves_nothing_pending(gpu):
    array, staging = gpu.empty(MIB), gpu.empty_pinned(MIB)
    address = staging.ptr
    with gpu.Stream(non_blocking=True):
        gpu.launch("spin", duration=60e-3)
        gpu.copy_to_device(array, host=staging, blocking=True)
    del staging
    gpu.work_on_host(100e-6)

    assert gpu.empty_pinned(MIB).ptr == address


def test_copies_with_pinned_memory_are_recorded_as_pinned(recorded):
    def program(gpu):
        array, staging = gpu.empty(MIB), gpu.empty_pinned(2 * MIB)
        gpu.copy_to_device(array, host=staging)
        gpu.copy_to_host(array, host=staging)
        gpu.copy_to_host(array)

    recording = recorded(program)

    copies = recording.table("activities").to_pylist()
    assert [row["host_memory"] for row in copies] == ["pinned", "pinned", "pageable"]


def test_the_driver_calls_are_recorded_as_operations_on_pinned_memory(recorded):
    def program(gpu):
        gpu.empty_pinned(3 * MIB)

    recording = recorded(program)

    rows = recording.table("memory_operations").to_pylist()
    assert [(row["operation"], row["memory"], row["bytes"]) for row in rows] == [
        ("allocation", "pinned", 4 * MIB)
    ]


def test_the_settings_choose_exact_sizes():
    gpu = gpuviz.SimulatedGPU(1 << 30, settings="pinned_max_round_threshold_mb:0", real_time=False)
    staging = gpu.empty_pinned(3 * MIB)

    assert gpu.host_memory_stats()["active_bytes.current"] == staging.nbytes == 3 * MIB


def test_times_are_those_of_the_simulated_clock(gpu):
    gpu.empty_pinned(MIB)

    assert gpu.host_memory_stats()["host_alloc_time.total"] == 51  # with the call


def test_a_size_of_zero_takes_no_memory(gpu):
    assert gpu.empty_pinned(0).ptr == 0
    assert gpu.host_memory_stats()["active_requests.allocated"] == 0


@pytest.mark.parametrize("copy", ["copy_to_device", "copy_to_host"])
def test_other_arguments_than_large_enough_pinned_memory_are_errors(gpu, copy):
    other = gpuviz.SimulatedGPU(1 << 30, real_time=False)
    array = gpu.empty(MIB)
    call = getattr(gpu, copy)

    with pytest.raises(TypeError, match="host must be a SimulatedPinnedArray, got bytes"):
        call(array, host=b"")
    with pytest.raises(ValueError, match="host belongs to another SimulatedGPU"):
        call(array, host=other.empty_pinned(MIB))
    with pytest.raises(ValueError, match="at least the array's 1048576 bytes, got 1234"):
        call(array, host=gpu.empty_pinned(1234))
    with pytest.raises(TypeError, match="nbytes must be a number of bytes, got str"):
        gpu.empty_pinned("1")
