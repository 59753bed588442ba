"""R17: pageable copies worth pinning."""

import pytest

from gpuviz.advice.findings import findings
from gpuviz.recording import Recording
from tests.unit.advice.timed_programs import found, saved_ns, small, timed

CHUNK = 32 << 20
CHUNKS = 10
# What is assumed of pinning memory, in bytes per second, which the simulated GPU does at once.
PINNING_RATE = 4e9


def copies(gpu, *, pinned, reference=True, blocking=False, nbytes=CHUNK):
    """Copy chunks in and out, after one pinned copy in each direction."""
    x, y = gpu.empty(nbytes), gpu.empty(CHUNK)
    if reference:
        gpu.copy_to_device(y, pinned=True)
        gpu.copy_to_host(y, pinned=True)
    for _ in range(CHUNKS):
        gpu.copy_to_device(x, pinned=pinned, blocking=blocking)
        gpu.launch("filter", duration=100e-6, writes=[x])
        gpu.copy_to_host(x, pinned=pinned, blocking=blocking)


def pageable(gpu):
    copies(gpu, pinned=False)


def reads(gpu):
    x = gpu.empty(CHUNK)
    for _ in range(CHUNKS):
        gpu.launch("filter", duration=100e-6, writes=[x])
        gpu.copy_to_host(x)


def pinned(gpu):
    copies(gpu, pinned=True)


def blocking(gpu):
    copies(gpu, pinned=False, blocking=True)


def blocking_pinned(gpu):
    copies(gpu, pinned=True, blocking=True)


def without_reference(gpu):
    copies(gpu, pinned=False, reference=False)


def pinned_without_reference(gpu):
    copies(gpu, pinned=True, reference=False)


def scalars(gpu):
    copies(gpu, pinned=False, nbytes=8)


def uploads_once(gpu):
    x, y = gpu.empty(CHUNK), gpu.empty(CHUNK)
    gpu.copy_to_device(x)
    gpu.copy_to_device(y)


def loads_weights(gpu):
    for _ in range(CHUNKS):
        weights = gpu.empty(CHUNK)
        gpu.copy_to_device(weights)
    for _ in range(CHUNKS):
        gpu.launch("step", duration=1e-3, reads=[weights])


def mostly_kernels(gpu):
    for _ in range(CHUNKS):
        gpu.launch("long", duration=100e-3)
        gpu.copy_to_host(gpu.empty(1 << 20))


@pytest.mark.parametrize(("program", "after"), [(pageable, pinned), (blocking, blocking_pinned)])
def test_pageable_copies_are_found_and_pinning_saves_what_was_predicted(program, after):
    def improved(gpu):
        gpu.work_on_host(2 * CHUNK / PINNING_RATE)
        after(gpu)

    (finding,) = found(program, "R17")

    assert finding.saved_ns == pytest.approx(saved_ns(program, improved), rel=0.2)
    assert finding.title == (
        "20 copies of pageable memory take 83.9 ms on the GPU and 86.2 ms of the host; pinned "
        "memory is faster."
    )
    assert finding.reason == (
        "640 MiB at 8.0 GB/s. CUDA copies pageable memory through a buffer of its own while the "
        "host waits. Copies of pinned memory in this recording reach 54.9 GB/s."
    )
    assert finding.change.startswith("Allocate the host's arrays with cupyx.empty_pinned (or ")
    assert finding.certainty == "likely"
    assert len(finding.lines) == 2


def test_without_pinned_copies_to_compare_with_the_rate_is_that_of_the_gpus_pcie():
    def improved(gpu):
        gpu.work_on_host(2 * CHUNK / PINNING_RATE)
        pinned_without_reference(gpu)

    (finding,) = found(without_reference, "R17")

    assert finding.certainty == "possible"
    assert finding.saved_ns == pytest.approx(saved_ns(without_reference, improved), rel=0.1)
    assert finding.reason.endswith(
        "Pinned memory reaches about 50.0 GB/s over PCIe 5, which GPUs with this memory bandwidth "
        "have, and half of that over PCIe 4; this recording has no copies of pinned memory to "
        "compare with."
    )


@pytest.mark.parametrize("bandwidth", [0, 2_039_000_000_000])
def test_with_pcie_4_or_an_unknown_one_the_saving_is_rather_too_small(bandwidth):
    recording = timed(without_reference)
    devices = recording.tables["devices"]
    place = devices.schema.get_field_index("memory_bandwidth")
    changed = devices.set_column(place, devices.schema.field(place), [[bandwidth]])
    tables = {**recording.tables, "devices": changed}

    every = findings(Recording(tables, recording.manifest))

    (finding,) = (each for each in every if each.rule == "R17")
    assert 0.4 < finding.saved_ns / saved_ns(without_reference, pinned_without_reference) < 0.7
    assert finding.reason.endswith(
        "Pinned memory reaches about 25.0 GB/s over PCIe 4, and more over PCIe 5; this recording "
        "has no copies of pinned memory to compare with."
    )


@pytest.mark.parametrize("program", [pinned, scalars, uploads_once, loads_weights, mostly_kernels])
def test_pinned_small_single_and_rare_copies_are_no_finding(program):
    assert small(program, "R17") == []
