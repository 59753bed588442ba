"""Each cause of a failure, produced on a simulated GPU."""

import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuviz
from gpuviz import _core
from tests.examples import examples

MIB, GIB = 1 << 20, 1 << 30


def new_gpu(memory=1000 * MIB, settings=""):
    return gpuviz.SimulatedGPU(memory=memory, settings=settings, real_time=False)


def too_large(gpu):
    gpu.empty(1001 * MIB)


def full(gpu):
    live = [gpu.empty(100 * MIB) for _ in range(9)]
    gpu.empty(200 * MIB)
    return live


def fragmented(gpu):
    whole = gpu.empty(900 * MIB)
    del whole
    live = [gpu.empty(size * MIB) for size in (400, 20, 400, 20)]
    del live[2], live[0]
    gpu.empty(500 * MIB)


def cached_in_another_stream(gpu):
    with gpu.Stream():
        whole = gpu.empty(900 * MIB)
        del whole
        pin = gpu.empty(20 * MIB)
    gpu.empty(500 * MIB)
    return pin


def cached_in_another_pool(gpu):
    pool = gpu._allocator.create_pool()
    gpu._allocator.begin_pool(pool)
    whole = gpu.empty(900 * MIB)
    del whole
    gpu._allocator.end_pool(pool)
    gpu.empty(500 * MIB)


def pending_frees(gpu):
    array, stream = gpu.empty(900 * MIB), gpu.Stream(non_blocking=True)
    with stream:
        gpu.launch("long", duration=10, reads=[array])
    gpu.record_stream(array, stream)
    pool = gpu._allocator.create_pool()
    gpu._allocator.begin_pool(pool, _core.CachingAllocator.PoolFilter.everything)
    del array
    try:
        gpu.empty(500 * MIB)
    finally:
        gpu._allocator.end_pool(pool)


def capped(gpu):
    gpu._allocator.set_memory_fraction(0.5)
    live = gpu.empty(400 * MIB)
    gpu.empty(200 * MIB)
    return live


def refused(gpu):
    gpu._allocator.device.refuse_beyond(500 * MIB)
    live = gpu.empty(400 * MIB)
    gpu.empty(200 * MIB)
    return live


def taken_by_others(gpu):
    other = _core.CachingAllocator(gpu._allocator.device)
    other.allocate(5 * GIB)
    live = gpu.empty(2 * GIB)
    gpu.empty(2 * GIB)
    return live


CAUSES = [
    (too_large, 1000 * MIB, "too_large", "exceeds the device's total memory"),
    (full, 1000 * MIB, "full", "900 MiB are in use in 9 live blocks"),
    (fragmented, 1000 * MIB, "fragmented", "860 MiB are free in segments and 100 MiB on the"),
    (
        cached_in_another_stream,
        1000 * MIB,
        "cached_elsewhere",
        "has 880 MiB free .largest block 880 MiB",
    ),
    (
        cached_in_another_pool,
        1000 * MIB,
        "cached_elsewhere",
        "private pool 1 .large blocks., default stream",
    ),
    (
        pending_frees,
        1000 * MIB,
        "pending_frees",
        "900 MiB have been freed but wait for work on other",
    ),
    (
        capped,
        1000 * MIB,
        "capped",
        "limited to 500 MiB, had reserved 400 MiB and needed 200 MiB more",
    ),
    (
        refused,
        1000 * MIB,
        "refused",
        "600 MiB free just after the failure, enough for the 200 MiB requested",
    ),
    (
        taken_by_others,
        8 * GIB,
        "other_memory",
        "5.00 GiB of the device are used by other processes",
    ),
]


@pytest.mark.parametrize(
    ("program", "memory", "verdict", "said"), CAUSES, ids=[each[0].__name__ for each in CAUSES]
)
def test_the_cause_is_named_in_the_exception_on_the_page_and_in_the_recording(
    program, memory, verdict, said, tmp_path
):
    gpu = new_gpu(memory)

    recorder = gpuviz.record(tmp_path / "run.gpuviz", device=gpu)
    with recorder, pytest.raises(MemoryError) as caught:
        program(gpu)

    text = str(caught.value)
    page = Path(re.search(r"^.*Details: (.*)$", text, re.MULTILINE)[1])
    assert re.search(said, text)
    assert (page, recorder.out_of_memory_pages) == (tmp_path / "run.oom-1.html", (page,))
    for recording in (recorder.recording, gpuviz.load(tmp_path / "run.gpuviz"), gpuviz.load(page)):
        (failed,) = recording.out_of_memory()
        assert (failed.verdict, failed.summary) == (
            verdict,
            text.splitlines()[1].split(" Details")[0],
        )
        assert recording.call_stacks.user_frame(failed.stack).name == program.__name__


def test_without_what_the_allocator_told_the_events_give_the_same_verdict():
    for program, memory, expected, _ in CAUSES:
        gpu = new_gpu(memory)
        with gpuviz.record(device=gpu) as recorder, pytest.raises(MemoryError):
            program(gpu)
        told = recorder.recording.manifest
        recording = replace(recorder.recording, manifest=replace(told, failures={}))

        (failed,) = recording.out_of_memory()

        # A limit is assumed unless it is known that there was none.
        assert failed.verdict == {"refused": "capped"}.get(expected, expected)
        assert failed.device_total == memory


@pytest.mark.parametrize("more", ["", "expandable_segments:True,"])
def test_a_fraction_in_the_settings_is_named_and_without_it_the_request_is_served(more):
    def attempt(settings):
        gpu = new_gpu(settings=settings)
        with gpuviz.record(device=gpu) as recorder:
            live = gpu.empty(400 * MIB), gpu.empty(200 * MIB)
            del live
        return recorder.recording.out_of_memory()

    said = "limited to 500 MiB, had reserved 400 MiB and needed 200 MiB more"
    with pytest.raises(MemoryError, match=said):
        attempt(f"{more}per_process_memory_fraction:0.5")
    assert attempt(more.rstrip(",")) == ()


def test_a_segment_is_as_large_as_the_allocator_asks_for():
    for size in (1, MIB, MIB + 1, 9 * MIB, 10 * MIB, 11 * MIB + 1):
        gpu = new_gpu(1)
        with gpuviz.record(device=gpu) as recorder, pytest.raises(MemoryError):
            gpu.empty(size)
        told = recorder.recording.manifest.failures
        without = replace(recorder.recording.manifest, failures={})

        (failed,) = replace(recorder.recording, manifest=without).out_of_memory()

        assert [failed.segment_size] == [each["segment_size"] for each in told.values()]


def test_retries_that_succeed_are_no_failures(tmp_path):
    gpu = new_gpu()

    with gpuviz.record(tmp_path / "run.gpuviz", device=gpu) as recorder:
        for size in (300, 800, 950):
            del_me = gpu.empty(size * MIB)
            del del_me

    assert recorder.recording.out_of_memory() == ()
    assert recorder.recording.memory_stats()["num_alloc_retries"] == 2
    assert [each.name for each in tmp_path.iterdir()] == ["run.gpuviz"]


@examples(40)
@given(
    sizes=st.lists(st.integers(1, 400), min_size=3, max_size=14),
    freed=st.lists(st.integers(0, 6), max_size=5),
)
def test_pages_of_expandable_segments_are_not_a_refusal_of_the_device(sizes, freed):
    gpu = new_gpu(settings="expandable_segments:True")
    held = []
    with gpuviz.record(device=gpu) as recorder, suppress(MemoryError):
        for number, size in enumerate(sizes):
            held.append(gpu.empty(size * MIB + number))
            if number < len(freed) and freed[number] < len(held):
                del held[freed[number]]
        while True:
            held.append(gpu.empty(16 * MIB))

    (failed,) = recorder.recording.out_of_memory()

    assert failed.verdict != "refused"
    assert not any("expandable_segments" in text for text in failed.explanation)
