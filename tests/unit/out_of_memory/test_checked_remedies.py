"""The remedies on a page: only those that let the request succeed."""

import pytest

import gpuviz
from gpuviz import _core
from gpuviz.out_of_memory.remedies import remedies
from gpuviz.report.out_of_memory import build_page
from tests.unit.out_of_memory.moments import page_of
from tests.unit.report.recordings import MIB, make_recording

CHECKED = " the request would have succeeded"


def split_by_a_live_block(gpu):
    whole = gpu.empty(900 * MIB)
    del whole
    live = [gpu.empty(size * MIB) for size in (400, 20, 400, 20)]
    del live[2], live[0]
    gpu.empty(500 * MIB)


def limited(gpu):
    gpu._allocator.set_memory_fraction(0.5)
    live = gpu.empty(400 * MIB)
    gpu.empty(200 * MIB)
    return live


def cache_in(gpu, stream):
    with stream:
        whole = gpu.empty(900 * MIB)
        del whole
        return gpu.empty(20 * MIB)


def in_another_stream(gpu):
    stream = gpu.Stream()
    pin = cache_in(gpu, stream)
    gpu.empty(500 * MIB)
    return pin, stream


def in_a_destroyed_stream(gpu):
    pin = cache_in(gpu, gpu.Stream())
    gpu.empty(500 * MIB)
    return pin


def in_a_stream_whose_handle_another_one_got(gpu):
    pin = cache_in(gpu, gpu.Stream())
    successor = gpu.Stream()
    gpu.empty(500 * MIB)
    return pin, successor


def split_in_a_stream_whose_handle_this_one_got(gpu):
    with gpu.Stream():
        whole = gpu.empty(900 * MIB)
        del whole
        live = [gpu.empty(size * MIB) for size in (400, 20, 400, 20)]
    with gpu.Stream():
        del live[2], live[0]
        gpu.empty(500 * MIB)


def full_of_live_blocks(gpu):
    live = [gpu.empty(300 * MIB) for _ in range(3)]
    gpu.empty(200 * MIB)
    return live


def pinned_by_two_small_blocks(gpu, *, frees=False):
    first, second, rest = (gpu.empty(size * MIB) for size in (100, 100, 800))
    del first, second
    pins = [gpu.empty(2 * MIB)]
    filling = gpu.empty(97 * MIB)
    pins.append(gpu.empty(2 * MIB))
    del filling
    if frees:
        pins.clear()
    gpu.empty(200 * MIB)
    return rest, pins


def between_large_segments(gpu, *, size=5 * MIB):
    live = [gpu.empty(985 * MIB)]
    live.append(gpu.empty(size))
    return live


def rounded_up(gpu):
    live = gpu.empty(512 * MIB), gpu.empty(320 * MIB)
    gpu.empty(100 * MIB)
    return live


def failure_of(program, settings=""):
    gpu = gpuviz.SimulatedGPU(memory=1000 * MIB, settings=settings, real_time=False)
    with gpuviz.record(device=gpu) as recorder, pytest.raises(MemoryError):
        program(gpu)
    (failed,) = recorder.recording.out_of_memory()
    return failed


@pytest.mark.parametrize(
    ("program", "settings", "expected"),
    [
        (split_by_a_live_block, "", ["expandable_segments:True", "Freeing 1 live block (20.0 MiB"]),
        (limited, "", ["set_per_process_memory_fraction(1.0)"]),
        (
            in_another_stream,
            "",
            [
                "expandable_segments:True",
                "In default pool (large blocks), ",
                "Freeing 1 live block (20.0 MiB) empties segments",
            ],
        ),
        (
            in_a_destroyed_stream,
            "",
            ["expandable_segments:True", "Freeing 1 live block (20.0 MiB) empties segments"],
        ),
        (
            in_a_stream_whose_handle_another_one_got,
            "",
            [
                "expandable_segments:True",
                "In default pool (large blocks), successor ",
                "Freeing 1 live block (20.0 MiB) empties segments",
            ],
        ),
        (
            split_in_a_stream_whose_handle_this_one_got,
            "",
            ["expandable_segments:True", "Freeing 1 live block (20.0 MiB) between"],
        ),
        (pinned_by_two_small_blocks, "", ["Freeing 2 live blocks (4.00 MiB) empties segments"]),
        (
            between_large_segments,
            "",
            ["With 10.0 MiB or more, in a segment of its own", "expandable_segments:True"],
        ),
        (
            rounded_up,
            "roundup_power2_divisions:2",
            ["Without the setting roundup_power2_divisions"],
        ),
        (full_of_live_blocks, "", []),
    ],
)
def test_only_remedies_that_let_the_request_succeed_are_shown(program, settings, expected):
    failed = failure_of(program, settings)

    checked = [text for text in remedies(failed) if CHECKED in text or "Freeing" in text]

    assert len(checked) == len(expected)
    assert all(part in text for part, text in zip(expected, checked, strict=True))


def test_the_page_lists_the_blocks_that_keep_segments_in_use():
    gpu = gpuviz.SimulatedGPU(memory=1000 * MIB, real_time=False)
    with gpuviz.record(device=gpu) as recorder, pytest.raises(MemoryError):
        pinned_by_two_small_blocks(gpu)
    page = page_of(recorder.recording)

    listed = page[page.index("Live blocks that keep segments in use") :]
    assert "Without these 4.00 MiB the request would fit:" in listed
    assert "pins.append(gpu.empty(2 * MIB))" in listed


@pytest.mark.parametrize(
    ("program", "is_destroyed"),
    [
        (in_another_stream, False),
        (in_a_destroyed_stream, True),
        (in_a_stream_whose_handle_another_one_got, False),
    ],
)
def test_memory_of_a_destroyed_stream_is_marked_as_long_as_no_other_has_its_handle(
    program, is_destroyed
):
    failed = failure_of(program)

    (cached,) = failed.free
    assert cached.is_destroyed == is_destroyed
    assert failed.verdict == "cached_elsewhere"
    assert (f"{cached.name} (destroyed) has 880 MiB free" in failed.summary) == is_destroyed
    page = build_page(failed.moment.recording, failed)
    assert ("(destroyed)</td>" in page) == is_destroyed


def test_memory_of_the_stream_that_had_the_handle_before_is_the_requests_own():
    failed = failure_of(split_in_a_stream_whose_handle_this_one_got)

    (cached,) = failed.free
    assert (cached.stream, cached.name) == (failed.stream, failed.pool_and_stream)
    assert failed.request.own_block == 400 * MIB
    assert (failed.obstacle.blocks, failed.obstacle.bytes) == (1, 20 * MIB)


def test_what_the_remedies_say_lets_the_request_succeed():
    gpu = gpuviz.SimulatedGPU(memory=1000 * MIB, real_time=False)
    assert pinned_by_two_small_blocks(gpu, frees=True)
    gpu = gpuviz.SimulatedGPU(memory=1000 * MIB, real_time=False)
    assert between_large_segments(gpu, size=10 * MIB)
    gpu = gpuviz.SimulatedGPU(memory=1000 * MIB, real_time=False)
    assert rounded_up(gpu)


def freed_while_a_pool_is_active(gpu, *, of_the_pool, leaves=False, allocates=False):
    """Free an array that another stream uses, and request memory again."""
    pool, everything = gpu._allocator.create_pool(), _core.CachingAllocator.PoolFilter.everything
    if of_the_pool:
        gpu._allocator.begin_pool(pool, everything)
    array, stream = gpu.empty(900 * MIB), gpu.Stream(non_blocking=True)
    with stream:
        gpu.launch("long", duration=10, reads=[array])
    gpu.record_stream(array, stream)
    if not of_the_pool:
        gpu._allocator.begin_pool(pool, everything)
    del array
    gpu.synchronize()
    if leaves or allocates:
        gpu._allocator.end_pool(pool)
    if allocates:
        gpu.empty(1)
        gpu._allocator.begin_pool(pool, everything)
    try:
        gpu.empty(500 * MIB)
    finally:
        if not leaves:
            gpu._allocator.end_pool(pool)


@pytest.mark.parametrize(
    ("of_the_pool", "remedy", "said"),
    [
        (False, {"leaves": True}, "leave the private pool before this line"),
        (True, {"allocates": True}, "Leave the private pool before this line, synchronize"),
    ],
)
def test_pending_frees_complete_outside_of_the_pool(of_the_pool, remedy, said):
    failed = failure_of(lambda gpu: freed_while_a_pool_is_active(gpu, of_the_pool=of_the_pool))
    gpu = gpuviz.SimulatedGPU(memory=1000 * MIB, real_time=False)

    freed_while_a_pool_is_active(gpu, of_the_pool=of_the_pool, **remedy)

    assert failed.verdict == "pending_frees"
    assert said in remedies(failed)[0]


def test_a_failure_that_no_replay_reproduces_has_no_checked_remedy():
    (failed,) = make_recording().out_of_memory()

    texts = remedies(failed)

    assert texts[0].startswith("Which settings would have helped is unknown: a replay of the")
    assert not any(CHECKED in text for text in texts)


def small_in_large_blocks(gpu):
    large = [gpu.empty(220 * MIB) for _ in range(4)]
    large.clear()
    return [gpu.empty(60 * MIB) for _ in range(8)]


def test_a_limit_of_splits_is_lifted_if_that_helps():
    failed = failure_of(small_in_large_blocks, "max_split_size_mb:21,max_non_split_rounding_mb:200")

    assert "Without the setting max_split_size_mb the request would have succeeded." in remedies(
        failed
    )
