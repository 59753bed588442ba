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
    assert finding.change == (
        "Allocate 320 MiB once before the loop and write each part into a slice of it. Or collect "
        "the parts in a list and join them once after the loop, which saves the time only."
    )
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


CAT = "void at::native::(anonymous namespace)::CatArrayBatchedCopy_contig<OpaqueType<2u>, ...>(...)"


def of_torch(gpu, *, steps=STEPS, caches=2, uses="at once", window=False):
    """Join each of several caches with a new part in each step, by one kernel of PyTorch."""
    wholes, kept = [None] * caches, []
    for step in range(1, steps + 1):
        for number in range(caches):
            part = gpu.empty(MIB)
            make(gpu, part)
            size = 8 if window else 7 + step
            longer = joined(gpu, size * MIB, part, wholes[number])
            kept += [longer] if uses == "at last" else []
            wholes[number] = longer
            if uses not in {"never", "at last"}:
                gpu.launch(uses, duration=1e-5, reads=[longer])
            del longer, part
    gpu.launch("read", duration=1e-4, reads=[*wholes, *kept])


def joined(gpu, size, part, whole):
    longer = gpu.empty(size)
    parts = [each for each in (whole, part) if each is not None]
    gpu.launch(CAT, duration=2 * longer.nbytes / RATE, reads=parts, writes=[longer])
    return longer


def in_rounds(gpu, **options):
    for _ in range(3):
        of_torch(gpu, **options)


def into_slices_of_torch(gpu):
    wholes = [gpu.empty((7 + STEPS) * MIB) for _ in range(2)]
    for _ in range(STEPS):
        for whole in wholes:
            part = gpu.empty(MIB)
            make(gpu, part)
            gpu.launch("write", duration=2 * part.nbytes / RATE, reads=[part], writes=[whole])
            gpu.launch("attend", duration=1e-5, reads=[whole])
            del part
    gpu.launch("read", duration=1e-4, reads=wholes)


def test_caches_that_torch_joins_in_each_step_are_found_in_each_round():
    (once,), (finding,) = growing(of_torch), growing(in_rounds)

    # The first join copies no previous result, which the program with slices does not copy either.
    assert once.saved_ns == pytest.approx(saved_ns(of_torch, into_slices_of_torch), rel=0.1)
    assert finding.title == (
        "`longer = gpu.empty(size)` grows 6 arrays by joining them 114 times, which copies "
        "1.89 GiB again."
    )
    assert finding.change == (
        "Allocate 28.0 MiB for each array once before the loop and write each part into a slice of "
        "it. What uses the results meanwhile gets a slice with the parts that are there."
    )


def test_results_that_only_joins_use_can_be_a_list():
    (finding,) = growing(lambda gpu: of_torch(gpu, caches=1, uses="never"))

    assert "grows an array by joining it 19 times" in finding.title
    assert finding.change.endswith("join them once after the loop, which saves the time only.")


# A convolution would copy a slice of the channels, as in a DenseNet.
CONVOLUTION = "void cudnn::engines_precompiled::nchwToNhwcKernel<float, float, float, false>(...)"


@pytest.mark.parametrize(
    "options", [{"steps": 4}, {"uses": "at last"}, {"window": True}, {"uses": CONVOLUTION}]
)
def test_a_few_joins_kept_results_and_windows_of_torch_are_no_finding(options):
    assert growing(lambda gpu: in_rounds(gpu, **options)) == []
