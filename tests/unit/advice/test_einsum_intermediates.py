"""R76: `einsum` of CuPy makes an outer product first."""

import pytest

import gpuviz
from gpuviz.advice.findings import findings
from gpuviz.advice.source.subscripts import has_small_order, subscripts_in
from tests.unit.advice.training import MIB, installed

ROUNDS = 3
ROWS, MATRIX, RESULT = 4 * MIB, MIB // 4, MIB // 16
# Seconds a byte.
RATE = 1e-12
MULTIPLY = "cupy_multiply__float32_float32_float32"
PRODUCT = "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>"


def _apply(gpu, kernel, reads, size):
    result = gpu.empty(size)
    moved = size + sum(each.nbytes for each in reads)
    gpu.launch(kernel, duration=moved * RATE, reads=reads, writes=[result])
    return result


_launch = installed(_apply, "cupy/_core/core.py", "launch")


def _einsum(_subscripts, gpu, operands, outer=64 * MIB, result=RESULT):
    first, *others = operands
    product = _launch(gpu, MULTIPLY, others, outer)
    return _launch(gpu, PRODUCT, [first, product], result)


einsum = installed(_einsum, "cupy/linalg/_einsum.py", "einsum")


def multiplies_first(gpu, matrix, rows):
    return einsum("ij,ni,nj->n", gpu, [matrix, rows])


def contracts_first(gpu, matrix, rows):
    product = _launch(gpu, PRODUCT, [matrix, rows], ROWS)
    product = _launch(gpu, MULTIPLY, [product, rows], ROWS)
    return _launch(gpu, "cupy_sum", [product], RESULT)


def needs_all(gpu, matrix, rows):
    return einsum("nk,ni,nj->ijk", gpu, [matrix, rows])


def is_not_spelled_out(gpu, matrix, rows):
    subscripts = "ij,ni,nj->n"
    return einsum(subscripts, gpu, [matrix, rows])


def is_optimized(gpu, matrix, rows):
    return einsum("ij,ni,nj->n", gpu, [matrix, rows])  # optimize=True


def is_hardly_larger(gpu, matrix, rows):
    return einsum("ij,ni,nj->n", gpu, [matrix, rows], outer=7 * ROWS)


def returns_as_much(gpu, matrix, rows):
    return einsum("ij,ni,nj->nij", gpu, [matrix, rows], result=64 * MIB)


def recorded(run):
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        matrix, rows = gpu.empty(MATRIX), gpu.empty(ROWS)
        for _ in range(ROUNDS):
            run(gpu, matrix, rows)
        gpu.synchronize()
    return recorder.recording


def found(run):
    return [each for each in findings(recorded(run), small=True) if each.rule == "R76"]


def test_the_order_that_contracts_first_saves_what_was_predicted():
    before, after = recorded(multiplies_first), recorded(contracts_first)
    (finding,) = found(multiplies_first)

    # The result is made when the first of the two products is freed.
    assert finding.saved_bytes == before.peak().bytes - after.peak().bytes - RESULT
    faster = before.duration_ns - after.duration_ns
    assert finding.saved_ns == pytest.approx(faster, rel=0.15)
    assert finding.saved_ns <= faster
    assert finding.title == (
        '`return einsum("ij,ni,nj->n", gpu, [matrix, rows])` makes a product of 64.0 MiB 3 times, '
        "from operands of at most 4.00 MiB."
    )
    assert found(contracts_first) == []


@pytest.mark.parametrize(
    "run", [needs_all, is_not_spelled_out, is_optimized, is_hardly_larger, returns_as_much]
)
def test_products_that_another_order_needs_too_are_no_finding(run):
    assert found(run) == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('y = cp.einsum("ij,ni,nj->n", p, x, x)', True),
        ("y = cp.einsum('ij, ni, nj -> n', p, x, x)", True),
        ('y = cp.einsum("ij,nj,ni", p, x, x)', True),
        ('y = cp.einsum("ni,nj,nk->ijk", x, y, z)', False),
        ('y = cp.einsum("ij,ik,jk->", a, b, c)', True),
        ('y = cp.einsum("ia,jb,kc,abc->ijk", a, b, c, t)', False),
        ('y = cp.einsum("ij,jk,kl->il", a, b, c)', False),
    ],
)
def test_an_order_needs_no_array_with_other_indices_than_an_operand_has(line, expected):
    operands, result = subscripts_in(line)

    assert has_small_order(operands, result) == expected


@pytest.mark.parametrize(
    "line",
    [
        "y = cp.einsum(subscripts, p, x, x)",
        'y = cp.einsum("...ij,...i->j", a, x)',
        'y = cp.einsum("ij,j", a, x) + cp.einsum("ij,i", a, y)',
        'y = cp.einsum("ij,j->i", a, x, optimize="greedy")',
        'y = cp.einsum("ij,j->i" if a else "ij,i->j", a, x)',
    ],
)
def test_subscripts_that_a_line_does_not_spell_out_are_unknown(line):
    assert subscripts_in(line) is None
