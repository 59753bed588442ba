"""Failures of one of two allocators on one device, of which the other one caches memory."""

from dataclasses import replace

import pytest

from gpuviz.recording import Recording
from tests.unit.both_allocators import MIB, recorded


def torch_caches(both):
    """CuPy asks for more than is free while torch has freed most of its memory."""
    kept = both.torch(100 * MIB)
    freed = both.torch(600 * MIB)
    both.free(freed)
    both.gpu.empty(500 * MIB)
    return kept


def torch_uses(both):
    """The same, but torch uses all that it has reserved."""
    both.torch(100 * MIB)
    both.torch(600 * MIB)
    both.gpu.empty(500 * MIB)


def torch_uses_a_part(both):
    """The same, but torch still uses a small part of the segment that it has freed."""
    freed = both.torch(600 * MIB)
    both.free(freed)
    both.torch(20 * MIB)  # cut from the freed segment
    both.gpu.empty(500 * MIB)


def torch_uses_a_part_after_release(both):
    """What `torch_uses_a_part` does, with torch's cache emptied all the same."""
    freed = both.torch(600 * MIB)
    both.free(freed)
    both.torch(20 * MIB)
    both.empty_torchs_cache()
    both.gpu.empty(500 * MIB)


def gpuviz_caches(both):
    """The other way round."""
    array = both.gpu.empty(600 * MIB)
    del array
    both.torch(500 * MIB)


def with_advice(both):
    """What `torch_caches` does, with the advice followed."""
    both.torch(100 * MIB)
    freed = both.torch(600 * MIB)
    both.free(freed)
    both.empty_torchs_cache()
    both.gpu.empty(500 * MIB)


def with_the_other_advice(both):
    """What `gpuviz_caches` does, with the advice followed."""
    array = both.gpu.empty(600 * MIB)
    del array
    both.empty_gpuvizs_cache()
    both.torch(500 * MIB)


def failure(program, **options):
    recording, has_failed = recorded(program, **options)
    assert has_failed
    (failed,) = recording.out_of_memory()
    return failed


def test_what_torch_caches_is_named_and_its_release_was_tried():
    failed = failure(torch_caches)

    assert failed.verdict == "cached_beside"
    assert (failed.reserved, failed.beside, failed.cached_beside) == (0, 700 * MIB, 600 * MIB)
    assert failed.other_memory == 0
    assert failed.summary.startswith(
        "Cached by another library: PyTorch caches 600 MiB in segments"
    )
    assert "After torch.cuda.empty_cache() the request would have succeeded." in failed.explanation
    _, has_failed = recorded(with_advice)
    assert not has_failed


def test_what_gpuviz_caches_is_named_when_torch_fails():
    failed = failure(gpuviz_caches, torch_fails=True)

    assert failed.of_torch
    assert failed.verdict == "cached_beside"
    assert failed.pool_and_stream.startswith("PyTorch's default pool (large blocks)")
    assert "gpuviz's allocator caches 600 MiB" in failed.summary
    assert "After gpuviz.empty_cache() the request would have succeeded." in failed.explanation
    _, has_failed = recorded(with_the_other_advice)
    assert not has_failed


def test_what_cupys_own_pool_caches_is_named_when_torch_fails():
    recording, _ = recorded(gpuviz_caches, torch_fails=True)
    manifest = replace(recording.manifest, allocator="observe", settings="")
    (failed,) = Recording(recording.tables, manifest).out_of_memory()

    assert failed.verdict == "cached_beside"
    assert "CuPy's pool caches 600 MiB" in failed.summary
    call = "cupy.get_default_memory_pool().free_all_blocks()"
    assert f"After {call} the request would have succeeded." in failed.explanation


def test_what_torch_uses_is_no_reason_to_empty_its_cache():
    failed = failure(torch_uses)

    assert failed.verdict == "full"
    assert not [each for each in failed.explanation if "empty_cache" in each]
    assert [each for each in failed.explanation if each.startswith("PyTorch held 700 MiB, of")]


def test_a_segment_partly_in_use_is_no_reason_to_empty_torchs_cache():
    failed = failure(torch_uses_a_part)

    assert failed.verdict != "cached_beside"
    assert (failed.beside, failed.cached_beside) == (600 * MIB, 0)
    assert not [each for each in failed.explanation if "empty_cache" in each]
    _, has_failed = recorded(torch_uses_a_part_after_release)
    assert has_failed


@pytest.mark.parametrize(("torch_fails", "reserved"), [(False, 300), (True, 600)])
def test_the_numbers_are_those_of_the_allocator_that_failed(torch_fails, reserved):
    def program(both):
        kept = both.gpu.empty(300 * MIB)
        both.torch(600 * MIB)
        (both.torch if torch_fails else both.gpu.empty)(200 * MIB)
        return kept

    failed = failure(program, torch_fails=torch_fails)

    assert failed.reserved == failed.allocated == reserved * MIB
    assert failed.beside == (900 - reserved) * MIB
    assert failed.allocated_blocks == 1
    assert {each.name.startswith("PyTorch's") for each in failed.free} == {torch_fails}


def torch_is_fragmented(both):
    whole = both.torch(900 * MIB)
    both.free(whole)
    first, _, second, _ = (both.torch(size * MIB) for size in (400, 20, 400, 20))
    both.free(first)
    both.free(second)
    both.torch(500 * MIB)


@pytest.mark.parametrize("settings", ["", "expandable_segments:True"])
def test_a_failure_of_torch_is_judged_and_mended_by_torchs_settings(settings):
    failed = failure(torch_is_fragmented, torch_fails=True, settings=settings)

    assert (failed.verdict, failed.request.mapped_size) == ("fragmented", 0)
    assert (
        "With PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True at the start of the program the "
        "request would have succeeded."
    ) in failed.explanation
    _, has_failed = recorded(torch_is_fragmented, torch_settings="expandable_segments:True")
    assert not has_failed
    _, has_failed = recorded(torch_is_fragmented, settings="expandable_segments:True")
    assert has_failed


def torch_rounds(both):
    both.torch(300 * MIB)
    both.torch(520 * MIB)


def test_a_setting_of_torch_that_rounds_sizes_is_named():
    rounding = "roundup_power2_divisions:2"
    failed = failure(torch_rounds, torch_fails=True, torch_settings=rounding)

    assert failed.verdict == "rounded"
    assert (
        "Without the setting roundup_power2_divisions the request would have succeeded."
    ) in failed.explanation
    _, has_failed = recorded(torch_rounds)
    assert not has_failed
