"""R83: products with a one-hot matrix."""

from functools import partial

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.test_dense_targets import GEMM, ROWS, SQUARE, SUM, recorded, run
from tests.unit.advice.test_dense_targets import one_hot as scattered
from tests.unit.advice.training import MIB

CONVERT = "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda<float>>"
ADD_BY_INDEX = "void at::native::indexFuncLargeIndex<float, long, unsigned int>"
RESULT = MIB


def multiplies(gpu, points, indices, *, kernels=(CONVERT, GEMM, SUM), with_itself=False):
    """Add the points of each class by a product with a one-hot matrix, and count them."""
    convert, product, then = kernels
    hot = scattered(gpu, indices)
    if convert:
        hot = run(gpu, convert, [hot])
    sums = run(gpu, product, [hot] if with_itself else [hot, points], RESULT)
    return sums, run(gpu, then, [hot], 4096)


def adds_by_index(gpu, points, indices):
    """Do the same without the matrix."""
    gpu.launch("zeros", duration=1e-6)
    sums = run(gpu, ADD_BY_INDEX, [points, indices], RESULT)
    return sums, run(gpu, "histogram", [indices], 4096)


def found(program, **options):
    made = findings(recorded(program, **options), small=True)
    return [each for each in made if each.rule == "R83"]


def test_a_one_hot_matrix_for_products_is_found_and_indices_save_what_was_predicted():
    before, after = recorded(multiplies), recorded(adds_by_index)
    (finding,) = found(multiplies)

    assert finding.saved_bytes == before.peak().bytes - after.peak().bytes
    # What the product and the sum take to read the matrix is not predicted.
    measured = before.duration_ns - after.duration_ns
    assert 0.3 * measured < finding.saved_ns < measured
    assert "32.0 MiB with its conversions" in finding.title
    assert found(adds_by_index) == []


def test_a_matrix_in_the_type_of_the_product_needs_no_conversion():
    (finding,) = found(partial(multiplies, kernels=("", GEMM, SUM)))

    assert finding.saved_bytes > 0


@pytest.mark.parametrize(
    "options",
    [
        # Nothing is multiplied, or something else uses the matrix too.
        {"kernels": (CONVERT, SUM, SUM)},
        {"kernels": (CONVERT, GEMM, SQUARE)},
        # A function of the matrix, such as smoothed labels.
        {"kernels": (SQUARE, GEMM, SUM)},
        # Not only rows of another matrix.
        {"with_itself": True},
    ],
)
def test_matrices_with_another_use_are_no_finding(options):
    assert found(partial(multiplies, **options)) == []


def test_few_classes_are_no_finding():
    assert found(multiplies, indices=2 * ROWS) == []
