"""R05: arrays that nothing uses for a long time at the peak."""

from functools import partial

import pytest

import gpuviz
from gpuviz.advice.findings import findings
from tests.unit.advice.programs import MIB, found, recorded, saved, within


def works(gpu, *, duration=20e-3):
    large = gpu.empty(256 * MIB)
    gpu.launch("compute", duration=duration, writes=[large])
    gpu.launch("reduce", duration=1e-3, reads=[large])


def keeps(*, arrays=1, rounds=1, nbytes=64 * MIB, **options):
    """Return a program that uses arrays before and after it needs more memory."""

    def program(gpu):
        for _ in range(rounds):
            made = [gpu.empty(nbytes) for _ in range(arrays)]
            gpu.launch("make", duration=1e-3, writes=made)
            works(gpu, **options)
            gpu.launch("compare", duration=1e-3, reads=made)
            gpu.synchronize()
            del made

    return program


def offloads(gpu):
    made = gpu.empty(64 * MIB)
    gpu.launch("make", duration=1e-3, writes=[made])
    gpu.copy_to_host(made, pinned=True)
    del made
    works(gpu)
    again = gpu.empty(64 * MIB)
    gpu.copy_to_device(again, pinned=True)
    gpu.launch("compare", duration=1e-3, reads=[again])


def test_an_idle_array_is_found_and_copying_it_to_the_host_saves_what_was_predicted():
    (finding,) = found(keeps(), "R05")

    assert finding.saved_bytes == saved(keeps(), offloads) == 64 * MIB
    assert finding.title == (
        "64.0 MiB from `made = [gpu.empty(nbytes) for _ in range(arrays)]` is allocated at the "
        "peak, but nothing uses it for 21.0 ms."
    )
    assert finding.reason == (
        '`gpu.launch("make", duration=1e-3, writes=made)` uses it before and '
        '`gpu.launch("compare", duration=1e-3, reads=made)` afterwards. Meanwhile the peak is '
        "reached by `large = gpu.empty(256 * MIB)`. A copy to pinned memory of the host and back "
        "takes about 5.37 ms (at 25 GB/s)."
    )
    assert finding.change == (
        'Compute it again, or copy it to pinned memory after `gpu.launch("make", duration=1e-3, '
        'writes=made)` and back before `gpu.launch("compare", duration=1e-3, reads=made)`.'
    )
    assert finding.certainty == "possible"
    assert found(offloads, "R05") == []


def validates_in_each_round(gpu, *, copies=False):
    held = gpu.empty(64 * MIB)
    for _ in range(4):
        if held is None:
            held = gpu.empty(64 * MIB)
            gpu.copy_to_device(held, pinned=True)
        gpu.launch("train", duration=1e-3, reads=[held], writes=[held])
        if copies:
            gpu.copy_to_host(held, pinned=True)
            held = None
        works(gpu)


def test_an_array_that_pauses_in_each_round_is_copied_in_each():
    copies = partial(validates_in_each_round, copies=True)
    (finding,) = found(validates_in_each_round, "R05")

    assert finding.saved_bytes == saved(validates_in_each_round, copies) == 64 * MIB
    assert "uses it before and again afterwards" in finding.reason
    assert finding.change.endswith("and back before it runs again.")
    assert found(copies, "R05") == []


def test_the_arrays_of_a_line_are_one_finding():
    (finding,) = found(keeps(arrays=2, rounds=3), "R05")

    assert finding.saved_bytes == 128 * MIB
    assert finding.title.endswith("but nothing uses them for 21.0 ms.")


def used_meanwhile(gpu):
    made = gpu.empty(64 * MIB)
    gpu.launch("make", duration=1e-3, writes=[made])
    large = gpu.empty(256 * MIB)
    gpu.launch("compute", duration=20e-3, reads=[made], writes=[large])
    gpu.launch("compare", duration=1e-3, reads=[made, large])


def used_by_another_stream(gpu):
    made = gpu.empty(64 * MIB)
    with gpu.Stream():
        gpu.launch("make", duration=1e-3, writes=[made])
    gpu.synchronize()
    works(gpu)
    gpu.launch("compare", duration=1e-3, reads=[made])


def with_an_unknown_kernel(gpu):
    made = gpu.empty(64 * MIB)
    gpu.launch("make", duration=1e-3, writes=[made])
    works(gpu)
    gpu.launch("by_pointers", duration=1e-3)
    works(gpu)
    gpu.launch("compare", duration=1e-3, reads=[made])


def small_beside_the_peak(gpu):
    made = gpu.empty(8 * MIB)
    gpu.launch("make", duration=1e-3, writes=[made])
    works(gpu)
    gpu.launch("compare", duration=1e-3, reads=[made])


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(keeps(nbytes=4096 * MIB), id="a pause shorter than the copies"),
        pytest.param(keeps(arrays=4), id="a pause shorter than the copies of all arrays"),
        used_meanwhile,
        used_by_another_stream,
        with_an_unknown_kernel,
        small_beside_the_peak,
    ],
)
def test_what_looks_alike_is_no_finding(program):
    assert found(program, "R05") == []


@pytest.mark.parametrize(
    ("function", "is_found"), [("_creation/basic.py", True), ("random/_generator.py", False)]
)
def test_the_state_of_a_library_stays_where_it_is(function, is_found):
    """A generator has its state before and after the peak, as an array of `cupy.zeros` may be."""
    made = within(recorded(keeps()), f"/python3.12/site-packages/cupy/{function}")

    assert ("R05" in {each.rule for each in findings(made, small=True)}) == is_found


def test_without_call_stacks_the_lines_are_unknown():
    gpu = gpuviz.SimulatedGPU()
    with gpuviz.record(device=gpu, stacks=False) as recorder:
        keeps()(gpu)
        gpu.synchronize()

    assert [each for each in findings(recorder.recording, small=True) if each.rule == "R05"] == []


def test_an_array_that_is_only_filled_before_the_peak_could_be_filled_later():
    def program(gpu):
        total = gpu.empty(64 * MIB)
        gpu.fill(total)
        works(gpu)
        gpu.launch("add", duration=1e-3, reads=[total], writes=[total])

    assert found(program, "R05") == []


def uses(gpu, array):
    gpu.launch("first", duration=1e-3, reads=[array], writes=[array])
    works(gpu)
    gpu.launch("second", duration=1e-3, reads=[array])


def passes(gpu):
    array = gpu.empty(64 * MIB)
    gpu.launch("make", duration=1e-3, writes=[array])
    uses(gpu, array)


def test_what_a_call_uses_before_and_after_the_peak_its_caller_keeps_meanwhile():
    assert found(passes, "R05") == []
