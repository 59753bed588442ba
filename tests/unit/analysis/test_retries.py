"""Allocations that succeeded on a retry, against the allocator's own counts."""

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

import gpuviz
from gpuviz.analysis.retries import succeeded_on_retry
from gpuviz.conclusions.ranking import ranked
from tests.examples import examples

MIB = 1 << 20
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("empty"), st.sampled_from([1, 15, 120, 300, 700, 1000])),
        st.tuples(st.just("delete"), st.integers(0, 3)),
        st.just(("empty_cache", 0)),
    ),
    max_size=25,
)


def recorded(steps, settings=""):
    gpu = gpuviz.SimulatedGPU(memory=1 << 30, settings=settings, real_time=False)
    held, succeeded = [], 0
    with gpuviz.record(device=gpu) as recorder:
        for step, argument in steps:
            if step == "empty":
                retries = gpu.memory_stats()["num_alloc_retries"]
                with suppress(MemoryError):
                    held.append(gpu.empty(argument * MIB))
                    succeeded += gpu.memory_stats()["num_alloc_retries"] > retries
            elif step == "empty_cache":
                gpu.empty_cache()
            elif argument < len(held):
                del held[argument]
    return recorder.recording, succeeded


@examples(30)
@given(steps=STEPS, settings=st.sampled_from(["", "expandable_segments:True"]))
def test_retries_that_failed_do_not_count(steps, settings):
    recording, succeeded = recorded(steps, settings)

    assert succeeded_on_retry(recording, 0) == succeeded


def test_a_request_that_failed_after_its_retry_is_one_finding():
    steps = [("empty", 700), ("delete", 0), ("empty", 1000), ("empty", 1000)]
    recording, _ = recorded(steps)

    titles = [notice.title for notice in ranked(recording, ())]

    assert titles[:2] == [
        "1 allocation failed: out of memory.",
        "1 allocation succeeded only after cached segments were released.",
    ]
