"""R75: matrices that are inverted only to multiply the inverse with a few columns."""

from functools import partial

import pytest

import gpuviz
from gpuviz.advice.findings import findings
from tests.unit.advice.training import installed

N = 1024
MATRIX, COLUMN = N * N * 8, N * 8
ROUNDS = 4
SOLVE_S, FACTOR_S = 4e-3, 5e-3
GEMV = "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, double, double>"
GEMM = "sm90_xmma_gemm_f64f64_f64f64_f64_nn_n"
COPY = "cupy_copy__float64_float64"
SOLVE, SLOGDET = "cupy/linalg/_solve.py", "cupy/linalg/_norms.py"


def _lu(gpu, matrix):
    copy, pivots = gpu.empty(MATRIX), gpu.empty(4 * N)
    gpu.launch(COPY, duration=1e-5, reads=[matrix], writes=[copy])
    for _ in range(4):
        gpu.launch("void getrf_pivot<double>", duration=FACTOR_S / 4, writes=[copy, pivots])
    return copy, pivots


_lu_factor = installed(_lu, "cupy/linalg/_decomposition.py", "_lu_factor")


def _solve_with(gpu, factors, columns, duration):
    gpu.launch(
        "void kernel_trsm_l_mul32<double>", duration=duration, reads=factors, writes=[columns]
    )


def _inv(gpu, matrix):
    copy, pivots = gpu.empty(MATRIX), gpu.empty(4 * N)
    gpu.launch(COPY, duration=1e-5, reads=[matrix], writes=[copy])
    inverse = gpu.empty(MATRIX)
    gpu.launch("cupy_fill", duration=1e-6, writes=[inverse])
    for _ in range(4):
        gpu.launch("void getrf_pivot<double>", duration=FACTOR_S / 4, writes=[copy, pivots])
    _solve_with(gpu, [copy, pivots], inverse, SOLVE_S)
    return inverse


inv = installed(_inv, SOLVE, "inv")
inv_of_batch = installed(_inv, SOLVE, "_batched_inv")


def _slogdet(gpu, matrix):
    factor, _ = _lu_factor(gpu, matrix)
    result = gpu.empty(8)
    gpu.launch("cupy_sum", duration=1e-6, reads=[factor], writes=[result])
    return result


slogdet = installed(_slogdet, SLOGDET, "slogdet")


def multiplies(gpu, matrix, z, *, kernel=GEMV, times=1):
    inverse = inv(gpu, matrix)
    for _ in range(times):
        y = gpu.empty(z.nbytes)
        gpu.launch(kernel, duration=1e-5, reads=[inverse, z], writes=[y])
    del inverse
    return slogdet(gpu, matrix)


def adds_to_the_inverse(gpu, matrix, z):
    """A covariance that gets the outer product of a vector, before its product with another."""
    inverse, y = inv(gpu, matrix), gpu.empty(z.nbytes)
    gpu.launch(GEMM, duration=1e-5, reads=[z], writes=[inverse])
    gpu.launch(GEMV, duration=1e-5, reads=[inverse, z], writes=[y])


def inverts_a_batch(gpu, matrix, z):
    inverse, y = inv_of_batch(gpu, matrix), gpu.empty(z.nbytes)
    gpu.launch(GEMV, duration=1e-5, reads=[inverse, z], writes=[y])


def changes_between(gpu, matrix, z):
    inverse, y = inv(gpu, matrix), gpu.empty(z.nbytes)
    gpu.launch(GEMV, duration=1e-5, reads=[inverse, z], writes=[y])
    gpu.launch("cupy_add__float64_float_float64", duration=1e-6, writes=[matrix])
    del inverse
    return slogdet(gpu, matrix)


def solves(gpu, matrix, z):
    factors, y = _lu_factor(gpu, matrix), gpu.empty(z.nbytes)
    _solve_with(gpu, [*factors, z], y, SOLVE_S / 4)


def multiplies_in_turn(gpu, matrix, z, *, times):
    inverse = inv(gpu, matrix)
    for _ in range(times):
        y = gpu.empty(z.nbytes)
        gpu.launch(GEMV, duration=1e-5, reads=[inverse, z], writes=[y])
        z = y


def solves_in_turn(gpu, matrix, z, *, times):
    factors = _lu_factor(gpu, matrix)
    for _ in range(times):
        y = gpu.empty(z.nbytes)
        _solve_with(gpu, [*factors, z], y, SOLVE_S / 4)
        z = y


def recorded(run, columns=1):
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        matrix, z = gpu.empty(MATRIX), gpu.empty(columns * COLUMN)
        for _ in range(ROUNDS):
            gpu.launch("cupy_exp__float64_float64", duration=1e-5, writes=[matrix])
            run(gpu, matrix, z)
        gpu.synchronize()
    return recorder.recording


def found(*args):
    return [each for each in findings(recorded(*args), small=True) if each.rule == "R75"]


def test_a_factorization_for_both_uses_saves_what_was_predicted():
    before, after = recorded(multiplies), recorded(solves)
    (finding,) = found(multiplies)

    faster = before.duration_ns - after.duration_ns
    assert finding.saved_ns == pytest.approx(faster, rel=0.02)
    # But for the number that `slogdet` returns.
    assert 0 <= before.peak().bytes - after.peak().bytes - finding.saved_bytes <= 512
    assert finding.title == (
        "`inverse = inv(gpu, matrix)` inverts a matrix only to multiply the inverse with an "
        "array of 8.00 KiB, 4 times."
    )
    assert "`return slogdet(gpu, matrix)` factors the same matrices again, in 20.0 ms" in (
        finding.reason
    )
    assert found(solves) == []


def test_a_matrix_that_changes_has_another_factorization():
    (once,), (twice,) = found(changes_between), found(multiplies)

    assert "again" not in once.reason
    assert once.saved_ns == pytest.approx(ROUNDS * SOLVE_S * 0.75 * 1e9, rel=0.02)
    assert twice.saved_ns > once.saved_ns


@pytest.mark.parametrize("times", [1, 2, 3])
def test_each_product_needs_a_solution(times):
    before, after = (
        recorded(partial(each, times=times)) for each in (multiplies_in_turn, solves_in_turn)
    )
    (finding,) = found(partial(multiplies_in_turn, times=times))

    faster = before.duration_ns - after.duration_ns
    assert finding.saved_ns == pytest.approx(faster, rel=0.05)
    assert "takes 16.0 ms; for so few, gpuviz assumes a quarter of that for each product." in (
        finding.reason
    )


def test_of_four_products_only_the_second_factorization_is_saved():
    (finding,) = found(partial(multiplies, times=4))

    assert finding.saved_ns == pytest.approx(ROUNDS * FACTOR_S * 1e9, rel=0.02)


@pytest.mark.parametrize(
    ("program", "columns"),
    [
        # Elements of the inverse are read, or many products have it.
        (partial(multiplies, kernel="cupy_multiply__float64_float64_float64"), 1),
        (partial(multiplies, times=5), 1),
        # Four solutions take as long.
        (partial(multiplies_in_turn, times=4), 1),
        # A solution for as many columns takes as long.
        (multiplies, N // 4),
        (adds_to_the_inverse, 1),
        # Many small matrices.
        (inverts_a_batch, 1),
    ],
)
def test_inverses_that_are_needed_are_no_finding(program, columns):
    assert found(program, columns) == []
