"""R08: what one kernel can be for an expression and the reduction that reads its result."""

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.programs import MIB, threads, without_frames
from tests.unit.advice.timed_programs import timed

ROUNDS = 10
COUNT = 16 * MIB
# Of memory, in bytes per second; of an elementwise kernel, for each of its elements.
RATE, EACH = 2.5e12, 4.8e-12
OF_ALL = "void cub::detail::reduce::DeviceReduceKernel<float*, unsigned int, cuda::std::plus<void>>"
MEAN = "cupy_mean_float32"


def elementwise(gpu, function, *reads, kind="float32"):
    """Return the result of an elementwise function of arrays, which may be broadcast."""
    target = gpu.empty(4 * COUNT)
    kinds = "_".join([kind] * (1 + len(reads)))
    moved = sum(each.nbytes for each in reads) + target.nbytes
    duration = max(EACH * COUNT, moved / RATE)
    gpu.launch(
        f"cupy_{function}__{kinds}",
        duration=duration,
        reads=reads,
        writes=[target],
        **threads(COUNT),
    )
    return target


def reduce(gpu, kernel, array, result, **width):
    gpu.launch(kernel, duration=array.nbytes / RATE, reads=[array], writes=[result], **width)


def outer_products(gpu, function="multiply", kind="float32", **width):
    """The mean of all outer products of rows, which are broadcast."""
    x, y, result = gpu.empty(MIB), gpu.empty(MIB), gpu.empty(65536)
    gpu.launch("make", duration=1e-4, writes=[x, y])
    for _ in range(ROUNDS):
        reduce(gpu, MEAN, elementwise(gpu, function, x, y, kind=kind), result, **width)
        gpu.launch("use", duration=1e-6, reads=[result])


def whole_sum(gpu, function="multiply", others=1):
    """The sum of what a function computes from arrays, element by element."""
    arrays, result = [gpu.empty(4 * COUNT) for _ in range(1 + others)], gpu.empty(8)
    gpu.launch("make", duration=1e-4, writes=arrays)
    for _ in range(ROUNDS):
        reduce(gpu, OF_ALL, elementwise(gpu, function, *arrays), result)
        gpu.launch("use", duration=1e-6, reads=[result])


def chain(program):
    recording = without_frames(without_frames(timed(program), "elementwise"), "reduce")
    (finding,) = (each for each in findings(recording, small=True) if each.rule == "R08")
    return finding


def test_a_sum_of_products_of_rows_is_a_matrix_product():
    finding = chain(outer_products)

    assert finding.change == (
        "A sum of products along an axis is a matrix product (`@`, `cupy.einsum`), which makes no "
        "such array: `x.T @ y` instead of `(x[:, :, None] * y[:, None, :]).sum(0)`."
    )
    of_all = ROUNDS * (EACH * COUNT + 4 * COUNT / RATE)
    assert finding.saved_ns == pytest.approx(1e9 * of_all, rel=0.2)


@pytest.mark.parametrize("program", [
    lambda gpu: outer_products(gpu, "hypot"),
    lambda gpu: outer_products(gpu, kind="int32"),
])  # fmt: skip
def test_other_functions_of_broadcast_arrays_take_what_their_elements_need(program):
    finding = chain(program)

    assert finding.change == (
        "Make one kernel of the expression, with `cupy.ReductionKernel` or a kernel of your own."
    )
    # 5.5 ns for 1000 elements.
    least = ROUNDS * (EACH * COUNT + 4 * COUNT / RATE - 5.5e-12 * COUNT)
    assert finding.saved_ns == pytest.approx(1e9 * least, rel=0.2)


def test_a_sum_of_products_of_all_elements_is_a_dot_product():
    assert chain(whole_sum).change == (
        "Compute the sum of products with `cupy.cublas.dot(x.ravel(), y.ravel())`, after `import "
        "cupy.cublas`: unlike `@` and `cupy.dot` of vectors, it makes no such array."
    )


def test_several_large_arrays_are_not_reduced_to_a_number_by_cupys_kernel():
    assert chain(lambda gpu: whole_sum(gpu, "subtract")).change == (
        "Make one kernel of the expression, of your own: a `cupy.ReductionKernel` that reads "
        "several arrays reduces them to one number on a single thread block, which takes longer."
    )


def test_one_thread_block_reduces_to_a_number_not_along_an_axis():
    finding = chain(lambda gpu: outer_products(gpu, "hypot", **threads(512)))

    assert "a `cupy.ReductionKernel` that reads several arrays" in finding.change


def test_one_array_is():
    assert chain(lambda gpu: whole_sum(gpu, "square", others=0)).change == (
        "Make one kernel of the expression, with `cupy.ReductionKernel` or a kernel of your own."
    )
