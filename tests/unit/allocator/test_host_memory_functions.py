import pytest

import gpuviz
from gpuviz.allocator import memory

MIB = 1 << 20

pytestmark = pytest.mark.usefixtures("process")


def test_without_pinned_memory_the_statistics_are_empty(process):
    gpuviz.reset_accumulated_host_memory_stats()
    gpuviz.reset_peak_host_memory_stats()

    assert gpuviz.host_memory_stats() == gpuviz.host_memory_stats_as_nested_dict() == {}
    assert process.devices == {}


def test_the_statistics_are_those_of_the_process(process):
    memory.host_allocator(1).allocate(3 * MIB)

    assert gpuviz.host_memory_stats()["active_bytes.current"] == 4 * MIB
    assert gpuviz.host_memory_stats_as_nested_dict()["active_bytes"] == {
        "current": 4 * MIB,
        "peak": 4 * MIB,
        "allocated": 4 * MIB,
        "freed": 0,
    }
    assert process.devices[1].host_used == 4 * MIB


def test_all_devices_share_one_allocator(process):
    first = memory.host_allocator(1)

    assert memory.host_allocator(0) is first
    assert list(process.devices) == [1]


@pytest.mark.parametrize("is_early", [True, False])
def test_a_hook_is_called_for_the_allocator_whenever_it_is_created(is_early):
    seen = []
    if is_early:
        memory.host_allocator(0)
    memory.set_new_host_allocator_hook(seen.append)
    made = memory.host_allocator(0)
    memory.host_allocator(1)

    assert seen == [made]


def test_resets_set_peaks_to_now_and_totals_to_zero():
    allocator = memory.host_allocator(0)
    allocator.free(allocator.allocate(MIB))

    gpuviz.reset_peak_host_memory_stats()
    peak = gpuviz.host_memory_stats()["active_bytes.peak"]
    gpuviz.reset_accumulated_host_memory_stats()
    stats = gpuviz.host_memory_stats()

    assert peak == 0
    assert (stats["active_bytes.allocated"], stats["num_host_alloc"]) == (0, 0)


@pytest.mark.parametrize("is_early", [True, False])
def test_settings_apply_to_pinned_memory(process, is_early):
    if not is_early:
        memory.host_allocator(0)
    gpuviz.set_allocator_settings("pinned_max_round_threshold_mb:1")

    memory.host_allocator(0).allocate(3 * MIB)

    assert process.devices[0].host_used == 3 * MIB
    assert gpuviz.get_allocator_settings() == "pinned_max_round_threshold_mb:1"
