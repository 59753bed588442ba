"""torch.cuda's memory functions in one process, over simulated devices."""

from types import SimpleNamespace

import pytest

import gpuviz
from gpuviz.allocator import memory as allocator
from tests.unit.allocator.conftest import CAPACITY

MIB = 1 << 20


def array_at(address, device=0):
    return SimpleNamespace(data=SimpleNamespace(mem=SimpleNamespace(ptr=address, device_id=device)))


def block_at(address, device=0):
    return allocator.caching_allocator(device).block_at(address)


@pytest.mark.usefixtures("process")
def test_before_the_first_use_everything_is_empty_and_no_device_is_opened():
    assert gpuviz.memory_stats() == gpuviz.memory_stats_as_nested_dict() == {}
    assert [
        gpuviz.memory_allocated(),
        gpuviz.max_memory_allocated(),
        gpuviz.memory_reserved(),
        gpuviz.max_memory_reserved(),
    ] == [0, 0, 0, 0]
    assert gpuviz.get_per_process_memory_fraction() == 1.0
    assert gpuviz.memory_snapshot() == gpuviz.memory_snapshot(0) == []
    assert gpuviz.get_allocator_settings() == ""
    gpuviz.empty_cache()
    gpuviz.reset_peak_memory_stats()
    gpuviz.reset_accumulated_memory_stats()
    assert "device ID 3" in gpuviz.memory_summary(3)
    assert allocator.caching_allocators() == {}


@pytest.mark.usefixtures("process")
def test_sizes_are_told_in_bytes_and_peaks_stay_until_they_are_reset():
    small = gpuviz.caching_allocator_alloc(1000)
    large = gpuviz.caching_allocator_alloc(30 * MIB)
    gpuviz.caching_allocator_delete(large)

    assert (gpuviz.memory_allocated(), gpuviz.max_memory_allocated()) == (1024, 1024 + 30 * MIB)
    assert (gpuviz.memory_reserved(), gpuviz.max_memory_reserved()) == (32 * MIB, 32 * MIB)
    gpuviz.empty_cache()
    gpuviz.reset_peak_memory_stats()
    assert (gpuviz.max_memory_allocated(), gpuviz.max_memory_reserved()) == (1024, 2 * MIB)
    assert gpuviz.memory_stats()["allocation.all.allocated"] == 2
    gpuviz.reset_accumulated_memory_stats()
    assert gpuviz.memory_stats()["allocation.all.allocated"] == 0
    assert gpuviz.memory_allocated() == 1024
    gpuviz.caching_allocator_delete(small)
    assert gpuviz.memory_allocated() == 0


@pytest.mark.usefixtures("process")
def test_empty_cache_makes_the_call_of_who_records_until_it_ends():
    asked = []
    address = gpuviz.caching_allocator_alloc(30 * MIB)
    gpuviz.caching_allocator_delete(address)

    allocator.set_empty_cache(asked.append)
    gpuviz.empty_cache()
    reserved = gpuviz.memory_reserved()
    allocator.set_empty_cache(None)
    gpuviz.empty_cache()

    assert asked == [allocator.caching_allocator(0)]
    assert (reserved, gpuviz.memory_reserved()) == (30 * MIB, 0)


def flattened(nested, prefix=""):
    for key, value in nested.items():
        if isinstance(value, dict):
            yield from flattened(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


@pytest.mark.usefixtures("process")
def test_the_nested_statistics_hold_the_same_values():
    gpuviz.caching_allocator_alloc(1000)
    nested = gpuviz.memory_stats_as_nested_dict()

    assert dict(flattened(nested)) == gpuviz.memory_stats()
    assert nested["requested_bytes"]["small_pool"]["current"] == 1000
    assert nested["num_ooms"] == 0


def test_each_device_has_its_own_statistics_and_the_current_one_is_meant(process):
    gpuviz.caching_allocator_alloc(1000)
    process.device = 1
    gpuviz.caching_allocator_alloc(5000)

    assert [gpuviz.memory_allocated(d) for d in (None, 0, 1)] == [5120, 1024, 5120]
    assert [segment["device"] for segment in gpuviz.memory_snapshot()] == [0, 1]
    assert [segment["device"] for segment in gpuviz.memory_snapshot(1)] == [1]
    assert gpuviz.memory_snapshot(3) == []
    assert "device ID 1" in gpuviz.memory_summary()


def test_the_first_question_about_memory_goes_to_the_current_device(process):
    process.device = 1

    assert gpuviz.mem_get_info() == (CAPACITY, CAPACITY)
    assert list(process.devices) == [1]
    gpuviz.caching_allocator_alloc(30 * MIB)
    assert gpuviz.mem_get_info(1) == (CAPACITY - 30 * MIB, CAPACITY)


def test_raw_memory_is_for_the_stream_asked_for_or_the_current_one(process):
    process.device = 1
    streams = [None, 0x99, SimpleNamespace(ptr=0x98), 0]
    addresses = [gpuviz.caching_allocator_alloc(10, stream=stream) for stream in streams]

    assert [block_at(a, 1)["stream"] for a in addresses] == [0x71, 0x99, 0x98, 0]
    assert block_at(gpuviz.caching_allocator_alloc(10, 0))["stream"] == 0x70


@pytest.mark.usefixtures("process")
def test_a_wrong_size_or_stream_is_named():
    with pytest.raises(ValueError, match=r"^size must be a number of bytes from 0 .* got int -5"):
        gpuviz.caching_allocator_alloc(-5)
    for stream in ("fast", 1.5, True):
        with pytest.raises(TypeError, match=f"Stream .* int, got {type(stream).__name__}"):
            gpuviz.caching_allocator_alloc(5, stream=stream)
    with pytest.raises(MemoryError, match=r"Tried to allocate 300\.00 MiB"):
        gpuviz.caching_allocator_alloc(300 * MIB)


@pytest.mark.usefixtures("process")
def test_size_0_is_address_0_and_freeing_it_does_nothing():
    assert gpuviz.caching_allocator_alloc(0) == 0
    gpuviz.caching_allocator_delete(0)
    assert gpuviz.memory_stats()["allocation.all.allocated"] == 0


@pytest.mark.usefixtures("process")
def test_raw_memory_is_freed_on_the_device_that_owns_it():
    gpuviz.caching_allocator_alloc(10, 0)
    gpuviz.caching_allocator_alloc(10, 1)
    second = gpuviz.caching_allocator_alloc(10, 1)
    gpuviz.caching_allocator_delete(second)

    assert [gpuviz.memory_allocated(d) for d in (0, 1)] == [512, 512]
    for wrong in (second, 0x1234):
        with pytest.raises(ValueError, match=f"invalid device pointer: {wrong:#x}"):
            gpuviz.caching_allocator_delete(wrong)


def test_processes_are_listed_or_said_to_be_none(process, monkeypatch):
    assert gpuviz.list_gpu_processes() == "GPU:0\nno processes are running"
    assert process.devices[0].processes() == []

    device = SimpleNamespace(processes=lambda: [(42, 3 * MIB // 2), (1234567, 2048 * MIB)])
    monkeypatch.setitem(allocator._process.allocators, 1, SimpleNamespace(device=device))
    assert gpuviz.list_gpu_processes(1).splitlines() == [
        "GPU:1",
        "process         42 uses        1.5 MiB of GPU memory",
        "process    1234567 uses     2048.0 MiB of GPU memory",
    ]


@pytest.mark.usefixtures("process")
def test_a_fraction_bounds_the_device_it_is_set_for():
    gpuviz.set_per_process_memory_fraction(0.1, 1)

    assert [gpuviz.get_per_process_memory_fraction(d) for d in (0, 1)] == [1.0, 0.1]
    with pytest.raises(MemoryError):
        gpuviz.caching_allocator_alloc(30 * MIB, 1)
    assert gpuviz.caching_allocator_alloc(30 * MIB, 0) > 0
    gpuviz.set_per_process_memory_fraction(1.0, 1)
    assert gpuviz.caching_allocator_alloc(30 * MIB, 1) > 0


@pytest.mark.usefixtures("process")
@pytest.mark.parametrize(
    ("fraction", "error", "text"),
    [
        (1, TypeError, "float, got int"),
        ("0.5", TypeError, "float, got str"),
        (-0.1, ValueError, r"within \[0, 1\], got -0.1"),
        (1.5, ValueError, r"within \[0, 1\], got 1.5"),
        (float("nan"), ValueError, r"within \[0, 1\], got nan"),
    ],
)
def test_a_fraction_out_of_range_is_named_and_changes_nothing(fraction, error, text):
    with pytest.raises(error, match=text):
        gpuviz.set_per_process_memory_fraction(fraction)
    assert gpuviz.get_per_process_memory_fraction() == 1.0


def test_settings_of_the_environment_hold_from_the_first_use(process, monkeypatch):
    monkeypatch.setenv("GPUVIZ_ALLOC_CONF", "expandable_segments:True")
    gpuviz.caching_allocator_alloc(10)
    monkeypatch.setenv("GPUVIZ_ALLOC_CONF", "")
    gpuviz.caching_allocator_alloc(10, 1)

    assert gpuviz.get_allocator_settings() == "expandable_segments:True"
    assert [segment["is_expandable"] for segment in gpuviz.memory_snapshot()] == [True, True]
    assert sorted(process.devices) == [0, 1]


@pytest.mark.usefixtures("process")
@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("no_such_key:1", "no_such_key"),
        ("max_split_size_mb:many", "max_split_size_mb.*'many'"),
        ("expandable_segments:yes", "'yes'"),
        ("max_split_size_mb:3", "got 3"),
    ],
)
def test_wrong_settings_are_named_and_change_nothing(text, named, monkeypatch):
    gpuviz.set_allocator_settings("max_split_size_mb:40")
    with pytest.raises(ValueError, match=named):
        gpuviz.set_allocator_settings(text)
    assert gpuviz.get_allocator_settings() == "max_split_size_mb:40"

    monkeypatch.setattr(allocator, "_process", allocator._Process())
    monkeypatch.setenv("GPUVIZ_ALLOC_CONF", text)
    with pytest.raises(ValueError, match=f"GPUVIZ_ALLOC_CONF='{text}': .*{named}"):
        gpuviz.caching_allocator_alloc(10)
    assert gpuviz.memory_stats() == {}


@pytest.mark.usefixtures("process")
def test_settings_reach_allocators_of_before_and_after():
    gpuviz.mem_get_info(0)
    gpuviz.set_allocator_settings("roundup_power2_divisions:2")
    found = [block_at(gpuviz.caching_allocator_alloc(4500, d), d)["size"] for d in (0, 1)]
    gpuviz.set_allocator_settings("")
    found += [block_at(gpuviz.caching_allocator_alloc(4500, d), d)["size"] for d in (0, 1)]

    assert found == [6144, 6144, 4608, 4608]


def test_record_stream_keeps_memory_until_the_other_stream_is_done(process):
    address = gpuviz.caching_allocator_alloc(1000)
    process.devices[0].occupy(0x99)
    gpuviz.record_stream(array_at(address), SimpleNamespace(ptr=0x99))
    gpuviz.caching_allocator_delete(address)

    assert gpuviz.memory_stats()["active.all.current"] == 1
    process.devices[0].finish(0x99)
    gpuviz.empty_cache()
    assert gpuviz.memory_stats()["active.all.current"] == gpuviz.memory_reserved() == 0


@pytest.mark.usefixtures("process")
def test_record_stream_refuses_memory_of_others():
    stream = SimpleNamespace(ptr=0x99)
    with pytest.raises(ValueError, match="needs memory of gpuviz's allocator"):
        gpuviz.record_stream(array_at(0x1000), stream)
    address = gpuviz.caching_allocator_alloc(1000)
    for array in (array_at(address + 512), array_at(address, device=1)):
        with pytest.raises(ValueError, match="needs memory of gpuviz's allocator"):
            gpuviz.record_stream(array, stream)


@pytest.mark.usefixtures("process")
def test_a_new_allocator_is_told_to_the_hook_and_garbage_is_collected_when_memory_ends():
    class Array:
        def __init__(self):
            self.address = gpuviz.caching_allocator_alloc(150 * MIB)
            self.itself = self

        def __del__(self):
            gpuviz.caching_allocator_delete(self.address)

    told = []
    allocator.set_new_allocator_hook(lambda device, _: told.append(device))
    Array()

    assert gpuviz.caching_allocator_alloc(150 * MIB) > 0
    gpuviz.mem_get_info(1)
    assert told == [0, 1]
