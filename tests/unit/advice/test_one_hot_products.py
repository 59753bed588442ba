"""R83: products with a one-hot matrix."""

from functools import partial

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.programs import View
from tests.unit.advice.test_dense_targets import (
    FILL,
    GEMM,
    ROWS,
    SQUARE,
    SUM,
    one_hot,
    recorded,
    run,
    scattered,
)
from tests.unit.advice.training import MIB, as_torch, installed, named

CONVERT = "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda<float>>"
ADD_BY_INDEX = "void at::native::indexFuncLargeIndex<float, long, unsigned int>"
CONVOLUTION = "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc"
RESULT = MIB


def multiplies(gpu, points, indices, *, kernels=(CONVERT, GEMM, SUM), with_itself=False):
    """Add the points of each class by a product with a one-hot matrix, and count them."""
    convert, product, then = kernels
    hot = one_hot(gpu, indices)
    if convert:
        hot = run(gpu, convert, [hot])
    sums = run(gpu, product, [hot] if with_itself else [hot, points], RESULT)
    return sums, run(gpu, then, [hot], 4096)


def adds_by_index(gpu, points, indices):
    """Do the same without the matrix."""
    gpu.launch("zeros", duration=1e-6)
    sums = run(gpu, ADD_BY_INDEX, [points, indices], RESULT)
    return sums, run(gpu, "histogram", [indices], 4096)


def counts_pairs(gpu, counts, indices):
    """Multiply the matrix with itself, and write the product to an array that is there."""
    hot = one_hot(gpu, indices)
    gpu.launch(GEMM, duration=1e-6, reads=[hot, hot], writes=[counts])


def subtracts_predictions(gpu, points, indices):
    """Subtract a product from the matrix in place, as `addmm_` does."""
    hot = one_hot(gpu, indices)
    gpu.launch(GEMM, duration=1e-6, reads=[points, hot], writes=[hot])
    return run(gpu, GEMM, [hot, points], RESULT)


def leaves_a_class_out(gpu, points, indices):
    """Multiply without the column of those that are in no class."""
    hot = one_hot(gpu, indices)
    classes = run(gpu, CONVERT, [hot], hot.nbytes - hot.nbytes // 256)
    return run(gpu, GEMM, [classes, points], RESULT)


def skips_a_class(gpu, points, indices):
    """Multiply the other columns where they are."""
    hot = one_hot(gpu, indices)
    return run(gpu, GEMM, [View(hot, offset=8), points], RESULT)


def teleports(gpu, points, indices):
    """Multiply with a matrix that has a small number wherever none is scattered."""
    start = run(gpu, FILL, [])
    steps = scattered(gpu, start, indices)
    return run(gpu, GEMM, [steps, points], RESULT)


def _fill(gpu):
    return run(gpu, FILL, [])


fill_ = installed(_fill, "torch/_refs/__init__.py", "fill_")


def teleports_from_zeros(gpu, points, indices):
    """Fill zeros with another number in the same line."""
    zeros = fill_(gpu)
    steps = scattered(gpu, zeros, indices)
    return run(gpu, GEMM, [steps, points], RESULT)


def _embed(gpu, hot, table):
    return run(gpu, GEMM, [hot, table], RESULT)


def _undo(gpu, sums, table, size):
    return run(gpu, GEMM, [sums, table], size)


embed, undo = named(_embed, "forward tokens"), named(_undo, "backward tokens")


def embeds(gpu, table, indices, *, size):
    """Multiply with a table, and make a gradient of a size."""
    sums = embed(gpu, one_hot(gpu, indices), table)
    return undo(gpu, sums, table, size)


def found(program, **options):
    made = findings(as_torch(recorded(program, **options)), small=True)
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
        # A convolution adds rows of several matrices.
        {"kernels": (CONVERT, CONVOLUTION, SUM)},
        # Not only rows of another matrix.
        {"with_itself": True},
    ],
)
def test_matrices_with_another_use_are_no_finding(options):
    assert found(partial(multiplies, **options)) == []


@pytest.mark.parametrize(
    "program",
    [
        counts_pairs,
        subtracts_predictions,
        leaves_a_class_out,
        skips_a_class,
        teleports,
        teleports_from_zeros,
    ],
)
def test_other_products_than_lookups_are_no_finding(program):
    assert found(program) == []


@pytest.mark.parametrize(("size", "count"), [(RESULT, 1), (16 * MIB, 0)])
def test_a_matrix_of_which_the_gradient_is_made_is_no_finding(size, count):
    assert len(found(partial(embeds, size=size))) == count


def test_few_classes_are_no_finding():
    assert found(multiplies, indices=2 * ROWS) == []
