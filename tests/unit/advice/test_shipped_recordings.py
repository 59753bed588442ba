"""What the shipped recordings say about time."""

import gc
import weakref
from functools import cache
from pathlib import Path

import pytest

import gpuviz
from gpuviz.advice.findings import findings
from gpuviz.advice.host.dominant import dominant

RECORDINGS = Path(gpuviz.__file__).parent / "commands" / "recordings"


@pytest.fixture
def without_collections():
    """Collect no garbage during a test."""
    gc.disable()
    yield
    gc.enable()


@cache
def time_findings(name, *, small=False):
    """Return the findings that save time, and with ``small`` all that are about time."""
    recording = gpuviz.load(RECORDINGS / f"{name}.gpuviz")
    found = findings(recording, small=small)
    return [each for each in found if each.saved_ns or (small and not each.saved_bytes)]


def one(name, rule, *, small=False):
    (finding,) = (each for each in time_findings(name, small=small) if each.rule == rule)
    return finding


def rules(name):
    return sorted(each.rule for each in time_findings(name))


def test_kmeans_reduces_on_one_block_and_its_wait_is_no_fault_of_the_copy():
    kernel, wait = one("kmeans", "R42"), one("kmeans", "R18")

    assert rules("kmeans") == ["R08", "R18", "R42"]
    assert kernel.title == "`cupy_sum` takes 40 % of the GPU's busy time on one thread block."
    assert kernel.lines[0].source == "counts += membership.sum(axis=0)"
    assert wait.title == (
        "`return means, float(inertia)` reads a scalar 29 times and waits 54.6 ms for the GPU."
    )
    assert wait.reason == (
        "In 58 calls the host waits 54.6 ms until the GPU has done what was launched before, "
        "21.3 ms of it while `counts += membership.sum(axis=0)` works, and has copied at most 8 B. "
        "Meanwhile it launches nothing, so that the GPU then waits for the next launch."
    )
    assert wait.saved_ns < 0.03 * 213_843_544
    assert wait.further_ns < 0.25 * wait.saved_ns


def test_the_distances_of_kmeans_are_one_kernel():
    first = time_findings("kmeans")[0]

    assert first.title == (
        "`distances = cp.square(differences).sum(axis=2)` and 1 line before it write 46.4 GiB to "
        "temporary arrays."
    )
    assert first.reason == (
        "`subtract`, `square`, `DeviceFixedSizeSegmentedReduceKernel` take 82.7 ms in 1,080 "
        "launches. 720 arrays of them are only read by the next ones; 360 launches of one kernel "
        "would keep the elements in registers."
    )
    assert first.change == (
        "Make one kernel of these lines, with `cupy.ReductionKernel` or a kernel of your own."
    )


def test_monte_carlo_computes_its_variance_on_one_block():
    finding = one("monte_carlo", "R42")

    assert rules("monte_carlo") == ["R42"]
    assert finding.title == (
        "`cupy_var_core_float64` takes 56 % of the GPU's busy time on one thread block."
    )
    assert finding.reason.startswith("1 launch takes 6.08 ms.")
    assert finding.saved_ns == pytest.approx(6_076_000, rel=0.02)


def test_conjugate_gradient_waits_for_launches():
    finding = one("conjugate_gradient", "R27")

    assert rules("conjugate_gradient") == [*["R08"] * 4, "R27"]
    assert finding.title == (
        "The GPU is busy for 14 % of the time and waits for launches: `step = squared / (direction "
        "@ product)` makes 735 of 3,204."
    )
    assert finding.reason == (
        "The kernels have a median of 2.14 µs on the GPU. The host needs 8.71 µs (median) between "
        "two launches; the GPU is idle for 34.8 ms during launches and such short gaps, and for "
        "45.5 ms in all."
    )
    assert finding.saved_ns < 53_900_000


def test_conjugate_gradient_updates_each_array_with_two_kernels():
    lines = [each.lines[0].source for each in time_findings("conjugate_gradient")]

    assert lines[1:] == [
        "step = squared / (direction @ product)",
        "solution = solution + step * direction",
        "direction = residual + (squared / previous) * direction",
        "residual = residual - step * product",
    ]


def test_fft_filter_waits_for_numpy_and_its_pageable_streams_never_overlap():
    starved, copies = one("fft_filter", "R43"), one("fft_filter", "R17")
    streams = one("fft_filter", "R44", small=True)

    assert rules("fft_filter") == ["R17", "R43", "R44"]
    assert starved.title == (
        "The GPU is idle for 227 ms, 76 % of the time, while the host works between "
        "`lane.stream.synchronize()` and `lane.start()`."
    )
    assert copies.title == (
        "128 copies of pageable memory take 50.8 ms on the GPU and 62.3 ms of the host; pinned "
        "memory is faster."
    )
    assert copies.reason.endswith(
        " The streams `even chunks` and `odd chunks` never work at the same time for this reason."
    )
    assert copies.further_ns == pytest.approx(58_940_000, rel=0.01)
    assert streams.further_ns == 0
    assert streams.title == (
        "The streams `even chunks` and `odd chunks` never work at the same time: the host waits in "
        "copies of pageable memory before it launches the next work."
    )


def test_the_first_fact_tells_launches_from_work_of_the_host():
    limits = {"fft_filter": "the host limits", "conjugate_gradient": "launches limit"}
    for name, limit in limits.items():
        fact, _ = dominant(gpuviz.load(RECORDINGS / f"{name}.gpuviz"))
        assert f"{limit} the program, with " in fact.text


def test_the_images_wait_for_two_kernels_of_one_line():
    finding = one("image_pipeline", "R41")
    kernels = gpuviz.load(RECORDINGS / "image_pipeline.gpuviz").kernels("line").to_pylist()

    assert rules("image_pipeline") == ["R08", "R41"]
    assert finding.lines[1].source == kernels[0]["source"]
    assert finding.lines[1].amount == "96.7 ms"
    assert kernels[0]["share"] == pytest.approx(0.898, abs=0.001)


@pytest.mark.usefixtures("without_collections")
@pytest.mark.parametrize("path", sorted(RECORDINGS.iterdir()), ids=lambda path: path.stem)
def test_a_recording_is_freed_with_the_last_reference_after_its_findings(path):
    recording = gpuviz.load(path)
    recording.findings()
    recording.iterations()
    recording.peak_chain(seconds=None)
    known = weakref.ref(recording)
    del recording

    assert known() is None
