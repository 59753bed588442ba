import re

import pytest

from gpuviz import _core

MIB = 1 << 20
parse = _core.AllocatorSettings.parse


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("foo:1", "Unrecognized key 'foo' in CUDA allocator config."),
        ("foo", "Unrecognized key 'foo' in CUDA allocator config."),
        ("max_splitsize_mb:64", "The keys are max_split_size_mb, max_non_split_rounding_mb, "),
        ("expandable_segments:True,bar:2", "Unrecognized key 'bar' in CUDA allocator config."),
        ("max_split_size_mb:2", "max_split_size_mb too small, must be >= 20, got 2"),
        ("max_split_size_mb:x", "max_split_size_mb expects a whole number, got 'x'"),
        ("max_split_size_mb:-1", "max_split_size_mb expects a whole number, got '-1'"),
        ("max_split_size_mb:99999999999999999999", "expects a whole number, got '9999999999"),
        ("max_split_size_mb", "end where ':' is expected"),
        ("max_split_size_mb:", "end where a number is expected"),
        ("max_split_size_mb:20 garbage", "have 'garbage' where ',' is expected"),
        ("max_non_split_rounding_mb:4", "max_non_split_rounding_mb too small, must be >= 20"),
        ("large_segment_size_mb:10", "large_segment_size_mb must be > 10 MB, got 10"),
        ("large_segment_size_mb:64,max_split_size_mb:32", "too small, must be >= 64, got 32"),
        ("garbage_collection_threshold:1.2", "is invalid, set it in (0.0, 1.0)"),
        ("garbage_collection_threshold:0", "is invalid, set it in (0.0, 1.0)"),
        ("garbage_collection_threshold:nan", "is invalid, set it in (0.0, 1.0)"),
        ("per_process_memory_fraction:1.1", "is invalid, set it in [0.0, 1.0]"),
        ("expandable_segments:yes", "Expected 'True' or 'False' at index 2"),
        ("roundup_power2_divisions:0", "the divisions has to be power of 2, got 0"),
        ("roundup_power2_divisions:3", "the divisions has to be power of 2"),
        ("roundup_power2_divisions:[3:2]", "the intervals have to be power of 2"),
        ("roundup_power2_divisions:[4:2", "end where ',' is expected"),
        ("roundup_power2_divisions:[", "end where a number is expected"),
        ("pinned_num_register_threads:3", "has to be power of 2, got 3"),
        ("pinned_num_register_threads:256", "less than or equal to 128, got 256"),
        ("pinned_reserve_segment_size_mb:0", "has to be greater than 0"),
        ("backend:other", "options are native and cudaMallocAsync, got 'other'"),
    ],
)
def test_a_bad_setting_is_refused_and_named(text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        parse(text)


def test_every_option_is_read():
    settings = parse(
        " max_split_size_mb : 64, max_non_split_rounding_mb:30,garbage_collection_threshold:0.8,"
        "expandable_segments:True,roundup_power2_divisions:[256:1,512:2,1024:4,>:8],"
        "per_process_memory_fraction:0.5,release_lock_on_cudamalloc:True,backend:native,"
        "pinned_num_register_threads:8,pinned_use_cuda_host_register:False",
    )

    assert settings.max_split_size == 64 * MIB
    assert settings.max_non_split_rounding_size == 30 * MIB
    assert settings.garbage_collection_threshold == 0.8
    assert settings.per_process_memory_fraction == 0.5
    assert settings.expandable_segments is True
    assert list(settings.roundup_power2_divisions.values()) == [1] * 9 + [2, 4] + [8] * 5
    assert list(settings.roundup_power2_divisions)[:3] == ["1", "2", "4"]


@pytest.mark.parametrize(
    ("text", "divisions"),
    [
        ("[]", [0] * 16),
        ("[>:4]", [0] + [4] * 15),
        ("[>:4,256:2]", [2] * 9 + [4] * 7),
        ("[256:2,>:0]", [2] * 9 + [0] * 7),
        ("[1:8,>:2]", [8] + [2] * 15),
        ("[131072:4]", [4] * 16),
        ("[4:2,1024:8]", [2, 2, 2] + [0] * 7 + [8] + [0] * 5),
    ],
)
def test_lists_of_divisions_fill_the_intervals_as_in_torch(text, divisions):
    settings = parse(f"roundup_power2_divisions:{text}")

    assert list(settings.roundup_power2_divisions.values()) == divisions


def test_a_very_large_split_size_is_as_large_as_fits():
    settings = parse("max_split_size_mb:99999999999999999,max_non_split_rounding_mb:1" + "9" * 17)

    assert settings.max_split_size == -MIB
    assert settings.max_non_split_rounding_size == 2**64 - MIB


def test_large_segments_have_exactly_the_size_of_the_setting(make):
    allocator, device = make("large_segment_size_mb:33")

    allocator.allocate(5 * MIB)

    assert device.used == 33 * MIB


def test_pages_of_expandable_segments_are_multiples_of_what_the_driver_maps(make):
    allocator, device = make("large_segment_size_mb:33,expandable_segments:True")

    allocator.allocate(5 * MIB)

    assert device.used == 34 * MIB


def test_a_later_text_resets_the_four_options_that_torch_resets():
    settings = parse(
        "max_split_size_mb:64,garbage_collection_threshold:0.8,roundup_power2_divisions:4,"
        "max_non_split_rounding_mb:64,expandable_segments:True,large_segment_size_mb:32",
    ).updated("")

    assert settings.max_split_size == -1
    assert settings.garbage_collection_threshold == 0
    assert set(settings.roundup_power2_divisions.values()) == {0}
    assert settings.max_non_split_rounding_size == 32 * MIB
    assert settings.expandable_segments is True
    assert settings.large_segment_size == 32 * MIB


def test_the_fraction_in_the_settings_limits_a_new_allocator(make):
    allocator, _ = make("per_process_memory_fraction:0.25", capacity=400 * MIB)

    assert allocator.memory_fraction == 0.25
    allocator.allocate(100 * MIB)
    with pytest.raises(_core.OutOfMemoryError):
        allocator.allocate(2 * MIB)


def test_settings_can_change_between_a_block_s_split_and_an_oversize_release(make):
    allocator, device = make(capacity=100 * MIB)
    allocator.free(allocator.allocate(100 * MIB))
    kept = allocator.allocate(20 * MIB)
    allocator.apply_settings(allocator.settings.updated("max_split_size_mb:40"))

    with pytest.raises(_core.OutOfMemoryError):
        allocator.allocate(90 * MIB)

    assert device.used == 100 * MIB
    assert allocator.owns(kept)
