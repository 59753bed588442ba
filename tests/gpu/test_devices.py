"""Programs that use several GPUs; skipped where there is only one."""

import ctypes
import threading
from uuid import UUID

import pytest

import gpuviz
from gpuviz.recorder.nvml import device_totals
from tests.gpu.device_programs import device_count, hand_over, spin

pytestmark = pytest.mark.gpu


def uuid_of(device):
    """Return the UUID of a device as CUDA numbers them, which NVML may do otherwise."""
    import cupy as cp

    return bytes(cp.cuda.runtime.getDeviceProperties(device)["uuid"])[:16]


@pytest.mark.skipif(device_count() < 2, reason="fewer than two GPUs")
def test_each_device_has_an_allocator_and_its_events():
    import cupy as cp

    with gpuviz.record() as recorder:
        with cp.cuda.Device(0):
            first = cp.full(1000, 1, dtype=cp.int64)
        with cp.cuda.Device(1):
            second = cp.full(2000, 2, dtype=cp.int64)
            copied = cp.asarray(first)
        del second
        live = [gpuviz.memory_stats(device)["requested_bytes.all.current"] for device in (0, 1)]

    recording = recorder.recording
    recorded = [recording.memory_stats(d)["requested_bytes.all.current"] for d in (0, 1)]
    assert recorded == live == [8000, 8000]
    assert [row["id"] for row in recording.table("devices").to_pylist()] == [0, 1]
    known = {totals["uuid"].removeprefix("GPU-") for totals in device_totals()}
    uuids = [str(UUID(bytes=uuid_of(n))) for n in (0, 1)]
    assert [row["uuid"] for row in recording.table("devices").to_pylist()] == uuids
    assert known.issuperset(uuids)
    counts = [cp.cuda.Device(n).attributes["MultiProcessorCount"] for n in (0, 1)]
    rows = recording.table("devices").to_pylist()
    assert [row["multiprocessors"] for row in rows] == counts
    assert all(1e11 < row["memory_bandwidth"] < 1e14 for row in rows)
    assert (int(first.sum()), int(copied.sum())) == (1000, 1000)
    assert copied.device.id == 1


@pytest.mark.skipif(device_count() < 2, reason="fewer than two GPUs")
def test_the_recording_has_the_link_between_two_gpus():
    import cupy as cp
    import pynvml

    with gpuviz.record() as recorder:
        for device in (0, 1):
            with cp.cuda.Device(device):
                cp.zeros(1000)
    uuids = [row["uuid"] for row in recorder.recording.table("devices").to_pylist()]
    pynvml.nvmlInit()
    first, second = (pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}") for uuid in uuids)
    level = pynvml.nvmlDeviceGetTopologyCommonAncestor(first, second)
    by_nvlink = pynvml.nvmlDeviceGetP2PStatus(first, second, pynvml.NVML_P2P_CAPS_INDEX_NVLINK)
    pynvml.nvmlShutdown()

    (link,) = recorder.recording.device_links

    can_access = [cp.cuda.runtime.deviceCanAccessPeer(*pair) for pair in ((0, 1), (1, 0))]
    assert (link.first, link.second, link.access) == (0, 1, all(can_access))
    assert (link.nvlinks > 0) == (by_nvlink == pynvml.NVML_P2P_STATUS_OK)
    names = {0: "PSB", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
    assert link.pcie == names[level]


@pytest.mark.skipif(device_count() < 2, reason="fewer than two GPUs")
def test_a_device_is_full_on_its_own():
    import cupy as cp

    with gpuviz.record():
        gpuviz.set_per_process_memory_fraction(0.01, device=1)
        try:
            with cp.cuda.Device(1), pytest.raises(cp.cuda.memory.OutOfMemoryError, match="GPU 1"):
                cp.empty(20 << 30, dtype=cp.int8)
            with cp.cuda.Device(0):
                assert cp.empty(20 << 30, dtype=cp.int8).size == 20 << 30
        finally:
            gpuviz.set_per_process_memory_fraction(1.0, device=1)


@pytest.mark.skipif(device_count() < 2, reason="fewer than two GPUs")
def test_an_allocation_is_on_the_current_device_however_it_became_current():
    import cupy as cp

    driver = ctypes.CDLL("libcuda.so.1")
    context, popped = ctypes.c_void_p(), ctypes.c_void_p()
    found = []

    def allocate():
        current = cp.cuda.runtime.getDevice()
        found.append((cp.empty(1000).data.device_id, current))

    def in_thread():
        allocate()
        cp.cuda.runtime.setDevice(1)
        allocate()
        assert driver.cuCtxSetCurrent(None) == 0
        allocate()

    with gpuviz.record():
        allocate()
        with cp.cuda.Device(1):
            allocate()
        assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 1) == 0
        assert driver.cuCtxPushCurrent_v2(context) == 0
        allocate()
        assert driver.cuCtxPopCurrent_v2(ctypes.byref(popped)) == 0
        allocate()
        thread = threading.Thread(target=in_thread)
        thread.start()
        thread.join()
    driver.cuDevicePrimaryCtxRelease_v2(1)

    assert len(found) == 7
    assert [device for device, _ in found] == [current for _, current in found]
    assert [device for device, _ in found[:4]] == [0, 1, 1, 0]


@pytest.mark.parametrize("is_ordered", [False, True])
def test_a_copy_by_its_devices_within_one_device_follows_its_stream(is_ordered):
    """CUPTI tells it as a copy on the device, which runs while another stream still writes."""
    import cupy as cp

    source = cp.zeros(1, "f")
    spin(source, 0)
    source.fill(5)
    cp.cuda.Device().synchronize()
    with gpuviz.record() as recorder:
        source, target = cp.zeros(1, "f"), cp.zeros(1, "f")
        cp.cuda.Device().synchronize()
        writing = cp.cuda.Stream(non_blocking=True)
        with writing:
            spin(source, 0.05)
            source.fill(5)
            written = writing.record()
        if is_ordered:
            cp.cuda.Stream.null.wait_event(written)
        cp.cuda.runtime.memcpyPeer(target.data.ptr, 0, source.data.ptr, 0, source.nbytes)
        cp.cuda.Device().synchronize()

    found = [(each.kind, each.showed) for each in recorder.recording.hazards()]
    assert float(target[0]) == (5 if is_ordered else 0)
    assert found == ([] if is_ordered else [("RAW", True)])


@pytest.mark.skipif(device_count() < 2, reason="fewer than two GPUs")
@pytest.mark.parametrize("side", ["before", "behind"])
@pytest.mark.parametrize("is_ordered", [False, True])
def test_a_copy_between_devices_is_a_hazard_if_nothing_orders_it(side, is_ordered):
    with gpuviz.record() as recorder:
        wrong = hand_over(side, is_ordered=is_ordered)

    kinds = [each.kind for each in recorder.recording.hazards()]
    assert kinds.count("RAW") == (not is_ordered)
    assert wrong == 0 or not is_ordered
