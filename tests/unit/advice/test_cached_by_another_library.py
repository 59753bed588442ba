"""R72: a library caches memory that it needs no more while another one reserves its own."""

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuviz.analysis.statistics import statistics
from tests.unit.both_allocators import MIB, recorded


def peak_of(program):
    """Return the most bytes that both allocators have reserved."""
    recording, has_failed = recorded(program)
    assert not has_failed
    return statistics(recording, 0)["reserved_bytes.all.peak"]


def found(program):
    recording, _ = recorded(program)
    return [each for each in recording.findings() if each.rule == "R72"]


def cupy_first(both, *, follow=False):
    """CuPy prepares, and torch trains."""
    raw, scaled = both.gpu.empty(200 * MIB), both.gpu.empty(200 * MIB)
    kept = both.gpu.empty(50 * MIB)
    del raw, scaled
    if follow:
        both.empty_gpuvizs_cache()
    both.torch(300 * MIB)
    both.torch(100 * MIB)
    return kept


def torch_first(both, *, follow=False):
    """Torch prepares, and CuPy needs the memory."""
    prepared = [both.torch(150 * MIB) for _ in range(3)]
    both.torch(40 * MIB)
    for each in prepared:
        both.free(each)
    if follow:
        both.empty_torchs_cache()
    return both.gpu.empty(350 * MIB)


def cupy_goes_on_with_less(both, *, follow=False):
    """CuPy uses a small part of what it has cached after torch's peak."""
    raw = both.gpu.empty(400 * MIB)
    del raw
    if follow:
        both.empty_gpuvizs_cache()
    both.free(both.torch(400 * MIB))
    return both.gpu.empty(20 * MIB)


def the_second_half_only(both, *, follow=False):
    """CuPy needs its first array until torch has reserved a part of its memory."""
    first, second = both.gpu.empty(100 * MIB), both.gpu.empty(300 * MIB)
    del first
    both.torch(30 * MIB)
    del second
    if follow:
        both.empty_gpuvizs_cache()
    both.torch(350 * MIB)


@pytest.mark.parametrize(
    ("program", "cached", "saved", "call"),
    [
        (cupy_first, 400, 400, "gpuviz.empty_cache()"),
        (torch_first, 450, 350, "torch.cuda.empty_cache()"),
        (cupy_goes_on_with_less, 400, 380, "gpuviz.empty_cache()"),
        (the_second_half_only, 400, 350, "gpuviz.empty_cache()"),
    ],
)
def test_what_a_library_caches_for_nothing_is_found_and_saved(program, cached, saved, call):
    (finding,) = found(program)

    assert finding.saved_reserved_bytes == saved * MIB
    assert finding.title.startswith(f"{cached} MiB stays cached by ")
    assert finding.change.startswith(f"Call `{call}` before that line.")
    followed = partial(program, follow=True)
    assert not found(followed)
    assert peak_of(program) - peak_of(followed) == finding.saved_reserved_bytes


def test_the_line_that_needs_memory_and_what_is_used_again_are_named():
    (finding,) = found(torch_first)
    (less,) = found(cupy_goes_on_with_less)

    assert "`return both.gpu.empty(350 * MIB)`" in finding.title
    assert "nothing uses them again" in finding.reason
    assert "after the peak, only 20.0 MiB of it is used again" in less.reason
    assert "last held arrays of `raw = both.gpu.empty(400 * MIB)`" in less.reason


def in_turns(both):
    """Each library needs its cache again."""
    for _ in range(3):
        array = both.gpu.empty(400 * MIB)
        del array
        both.free(both.torch(400 * MIB))


def in_turns_with_more(both):
    """The same, but torch needs most in the last round."""
    for size in (100, 100, 200):
        array = both.gpu.empty(400 * MIB)
        del array
        both.free(both.torch(size * MIB))


def still_used(both):
    """CuPy uses its memory while torch does."""
    kept = both.gpu.empty(400 * MIB)
    both.torch(400 * MIB)
    return kept


def freed_afterwards(both):
    """CuPy frees its memory when torch has reserved all of its own."""
    array = both.gpu.empty(400 * MIB)
    both.torch(400 * MIB)
    del array


def a_part_is_used(both):
    """A small array is in the segment that CuPy has freed."""
    array = both.gpu.empty(400 * MIB)
    del array
    small = both.gpu.empty(20 * MIB)
    both.torch(400 * MIB)
    return small


def released_by_itself(both):
    array = both.gpu.empty(400 * MIB)
    del array
    both.empty_gpuvizs_cache()
    both.torch(400 * MIB)


def little(both):
    """CuPy caches less than a tenth of what torch uses."""
    array = both.gpu.empty(30 * MIB)
    del array
    both.torch(400 * MIB)


@pytest.mark.parametrize(
    "program",
    [
        in_turns,
        in_turns_with_more,
        still_used,
        freed_afterwards,
        a_part_is_used,
        released_by_itself,
        little,
    ],
)
def test_a_cache_that_is_needed_is_not_found(program):
    assert found(program) == []


def test_one_allocator_alone_is_not_found():
    def program(both):
        for size in (300, 400, 500):
            array = both.gpu.empty(size * MIB)
            del array

    assert found(program) == []


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 5)), min_size=2, max_size=14)
)
def test_the_saving_is_what_a_release_there_saves(steps):
    """With arrays of one size for each library, so that blocks are reused as they are."""

    def program(both, release=None):
        cupys, torchs = [], []
        for number, (of_torch, allocates, which) in enumerate(steps):
            if release == (number, True):
                both.empty_torchs_cache()
            elif release == (number, False):
                both.empty_gpuvizs_cache()
            own = torchs if of_torch else cupys
            if not allocates and own:
                freed = own.pop(which % len(own))
                if of_torch:
                    both.free(freed)
                del freed
            elif of_torch:
                own.append(both.torch(40 * MIB))
            else:
                own.append(both.gpu.empty(30 * MIB))

    for each in found(program):
        of_torch = "torch.cuda" in each.change
        releases = [(number, of_torch) for number in range(len(steps))]
        peaks = [peak_of(partial(program, release=release)) for release in releases]
        assert each.saved_reserved_bytes == peak_of(program) - min(peaks)
