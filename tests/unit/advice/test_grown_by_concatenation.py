"""R49: arrays that grow by concatenation."""

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.programs import MIB, recorded, saved
from tests.unit.advice.timed_programs import saved_ns

STEPS = 20
RATE = 1.5e12


def copy(gpu, source, target):
    gpu.launch(
        "cupy_copy__float32_float32",
        duration=2 * source.nbytes / RATE,
        reads=[source],
        writes=[target],
    )


def make(gpu, part):
    gpu.launch("make", duration=1e-5, writes=[part])


def by_copies(gpu):
    whole = None
    for step in range(1, STEPS + 1):
        part = gpu.empty(16 * MIB)
        make(gpu, part)
        longer = gpu.empty(16 * MIB * step)
        if whole is not None:
            copy(gpu, whole, longer)
        copy(gpu, part, longer)
        whole = longer
        del longer, part
    gpu.launch("read", duration=1e-4, reads=[whole])


def by_one_kernel(gpu):
    whole = None
    for step in range(1, STEPS + 1):
        part = gpu.empty(16 * MIB)
        make(gpu, part)
        longer = gpu.empty(16 * MIB * step)
        gpu.launch("cupy_concatenate", duration=2 * longer.nbytes / RATE, writes=[longer])
        whole = longer
        del longer, part
    gpu.launch("read", duration=1e-4, reads=[whole])


def into_slices(gpu):
    whole = gpu.empty(16 * MIB * STEPS)
    for _ in range(STEPS):
        part = gpu.empty(16 * MIB)
        make(gpu, part)
        copy(gpu, part, whole)
        del part
    gpu.launch("read", duration=1e-4, reads=[whole])


def replaced_by_larger_ones(gpu):
    whole = None
    for step in range(1, STEPS + 1):
        whole = gpu.empty(16 * MIB * step)
        make(gpu, whole)
    gpu.launch("read", duration=1e-4, reads=[whole])


def joined_once(gpu):
    parts = [gpu.empty(16 * MIB) for _ in range(STEPS)]
    for part in parts:
        make(gpu, part)
    whole = gpu.empty(16 * MIB * STEPS)
    for part in parts:
        copy(gpu, part, whole)
    gpu.launch("read", duration=1e-4, reads=[whole])


def growing(program):
    return [each for each in findings(recorded(program), small=True) if each.rule == "R49"]


@pytest.mark.parametrize("program", [by_copies, by_one_kernel])
def test_joins_in_a_loop_are_found_and_one_allocation_saves_what_was_predicted(program):
    (finding,) = growing(program)

    assert finding.saved_bytes == pytest.approx(saved(program, into_slices), abs=16 * MIB)
    assert finding.saved_ns == pytest.approx(saved_ns(program, into_slices), rel=0.1)
    assert finding.title == (
        "`longer = gpu.empty(16 * MIB * step)` grows an array by joining it 19 times, which copies "
        "2.97 GiB again."
    )
    assert "Allocate 320 MiB once before the loop" in finding.change
    assert findings(recorded(program))[0].rule == "R49"
    assert growing(into_slices) == []


@pytest.mark.parametrize("program", [replaced_by_larger_ones, joined_once])
def test_what_looks_alike_is_no_finding(program):
    assert growing(program) == []


def joins_a_list(gpu, *, each=True, last=None):
    """Append to a list, and join it in each step, or its last parts, or all of them at last."""
    parts = []
    for step in range(STEPS):
        parts.append(gpu.empty(16 * MIB))
        make(gpu, parts[-1])
        if each or step == STEPS - 1:
            chosen = parts[-last:] if last else parts
            whole = gpu.empty(16 * MIB * len(chosen))
            for part in chosen:
                copy(gpu, part, whole)
            gpu.launch("read", duration=1e-5, reads=[whole])
            del whole, part


def a_constant_and_more(gpu):
    constant = gpu.empty(16 * MIB)
    make(gpu, constant)
    for step in range(1, STEPS):
        part, whole = gpu.empty(16 * MIB * step), gpu.empty(16 * MIB * (step + 1))
        make(gpu, part)
        copy(gpu, constant, whole)
        copy(gpu, part, whole)
        del part, whole


def test_a_list_that_is_joined_in_each_step_copies_its_parts_again():
    (finding,) = growing(joins_a_list)
    # The first result has one part.
    again = STEPS * (STEPS - 1) // 2 - 1

    assert finding.title == (
        "`whole = gpu.empty(16 * MIB * len(chosen))` joins parts that it has joined before, which "
        f"copies {again * 16 / 1024:.2f} GiB again."
    )
    copies_ns = again * 32 * MIB / RATE * 1e9
    assert finding.saved_ns == pytest.approx(copies_ns, rel=0.05)
    assert "write only the new part into a slice" in finding.change


def test_a_list_that_starts_anew_in_each_epoch_is_found():
    def epochs(gpu):
        for _ in range(3):
            joins_a_list(gpu)

    (finding,) = growing(epochs)

    copied = 3 * (STEPS * (STEPS - 1) // 2 - 1) * 16 / 1024
    assert f"which copies {copied:.2f} GiB again" in finding.title


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(lambda gpu: joins_a_list(gpu, each=False), id="joined once"),
        pytest.param(lambda gpu: joins_a_list(gpu, last=3), id="the last parts"),
        pytest.param(a_constant_and_more, id="a constant and other parts"),
    ],
)
def test_parts_of_results_that_do_not_grow_by_more_parts_are_no_finding(program):
    assert growing(program) == []
