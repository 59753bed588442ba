"""R91: differences of all pairs of vectors that are only squared and summed."""

from functools import partial

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.test_dense_targets import recorded, run
from tests.unit.advice.training import MIB, as_torch

ELEMENTS = "void at::native::vectorized_elementwise_kernel<4, at::native::"
SUBTRACT = "void at::native::elementwise_kernel<128, 2, at::native::CUDAFunctor_add<float>>"
SQUARE = f"{ELEMENTS}pow_tensor_scalar_kernel_impl<float, float>>"
PRODUCT = f"{ELEMENTS}BinaryFunctor<float, MulFunctor<float>>>"
EXP = f"{ELEMENTS}exp_kernel_cuda>"
SUM = "void at::native::reduce_kernel<512, 1, at::native::sum_functor<float, float>>"
MEAN = "void at::native::reduce_kernel<512, 1, at::native::MeanOps<float, float>>"
LARGEST = "void at::native::reduce_kernel<512, 1, at::native::MaxOps<float>>"
NORM = "void at::native::reduce_kernel<512, 1, at::native::NormTwoOps<float, float>>"
CDIST = "void at::native::cdist_kernel"
PAIRS, RESULT = 128 * MIB, 4 * MIB


def square_distances(gpu, a, b, *, kernels=(SQUARE, SUM), result=RESULT):
    """Sum the squares of a - b."""
    pairs = run(gpu, SUBTRACT, [a, b], PAIRS)  # a[:, None] - b
    square, reduce = kernels
    squares = run(gpu, square, [pairs], PAIRS)
    return run(gpu, reduce, [squares], result)


def norms(gpu, a, b):
    """Take the norms of a - b without their squares."""
    pairs = run(gpu, SUBTRACT, [a, b], PAIRS)  # a[:, None] - b
    return run(gpu, NORM, [pairs], RESULT)


def by_products(gpu, a, b):
    """Do the same with a function that stores no differences."""
    return run(gpu, CDIST, [a, b], RESULT)


def sums_of_pairs(gpu, a, b):
    """Add the vectors."""
    pairs = run(gpu, SUBTRACT, [a, b], PAIRS)  # a[:, None] + b
    return run(gpu, SUM, [run(gpu, SQUARE, [pairs], PAIRS)], RESULT)


def forces(gpu, a, b):
    """Need the differences themselves too."""
    pairs = run(gpu, SUBTRACT, [a, b], PAIRS)  # a[:, None] - b
    distances = run(gpu, SUM, [run(gpu, SQUARE, [pairs], PAIRS)], RESULT)
    return run(gpu, PRODUCT, [pairs, distances], PAIRS)


def of_equal_sizes(gpu, a, b):
    """Subtract two arrays that are as large."""
    large = run(gpu, EXP, [a], PAIRS)
    pairs = run(gpu, SUBTRACT, [large, b], PAIRS)  # large - b
    return run(gpu, SUM, [run(gpu, SQUARE, [pairs], PAIRS)], RESULT)


def found(program):
    made = findings(as_torch(recorded(program)), small=True)
    return [each for each in made if each.rule == "R91"]


@pytest.mark.parametrize(
    "program",
    [
        square_distances,
        partial(square_distances, kernels=(PRODUCT, SUM)),
        partial(square_distances, kernels=(SQUARE, MEAN)),
        norms,
    ],
)
def test_distances_need_no_differences(program):
    before, after = recorded(program), recorded(by_products)
    (finding,) = found(program)

    assert finding.saved_bytes == before.peak().bytes - after.peak().bytes
    assert finding.saved_ns == pytest.approx(before.duration_ns - after.duration_ns, rel=0.2)
    assert "128 MiB" in finding.title
    assert found(by_products) == []


@pytest.mark.parametrize(
    "program",
    [
        *(sums_of_pairs, forces, of_equal_sizes),
        # Another function of the differences, another reduction, or hardly a reduction.
        partial(square_distances, kernels=(EXP, SUM)),
        partial(square_distances, kernels=(SQUARE, LARGEST)),
        partial(square_distances, result=PAIRS // 4 * 3),
    ],
)
def test_differences_that_are_needed_are_no_finding(program):
    assert found(program) == []
