"""R81: a cross entropy with dense targets."""

from functools import partial

import pytest

import gpuviz
from gpuviz.advice.findings import findings
from tests.unit.advice.programs import threads
from tests.unit.advice.training import MIB, as_torch, installed, named

STEPS = 3
DENSE, ROWS = 16 * MIB, MIB // 8
# Seconds a byte.
RATE = 1e-12
AT = "void at::native::"
FILL = f"{AT}vectorized_elementwise_kernel<2, at::native::FillFunctor<long>>"
SCATTER = (
    f"{AT}_scatter_gather_elementwise_kernel<128, 8, at::native::_cuda_scatter_fill_internal_kernel"
    "<at::native::OpaqueType<8>, long>>"
)
SCALE = f"{AT}vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<float, MulFunctor<float>>>"
MULTIPLY = f"{AT}vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float, MulFunctor>>"
ADD = f"{AT}vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"
SOFTMAX, PROBABILITIES = (
    f"{AT}(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float, at::native::"
    f"(anonymous namespace)::{epilogue}>"
    for epilogue in ("LogSoftMaxForwardEpilogue", "SoftMaxForwardEpilogue")
)
LOG = f"{AT}vectorized_elementwise_kernel<4, at::native::log_kernel_cuda(TensorIteratorBase&)>"
DIVIDE = f"{AT}vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float, DivFunctor>>"
SOFTMAX_BACKWARD, LOG_SOFTMAX_BACKWARD = (
    f"{AT}(anonymous namespace)::cunn_SoftMaxBackward<4, float, float, float, {epilogue}>"
    for epilogue in ("SoftMaxBackwardEpilogue", "LogSoftMaxBackwardEpilogue")
)
NLL_BACKWARD = f"{AT}(anonymous namespace)::nll_loss_backward_reduce_cuda_kernel_2d<float>"
SUM = f"{AT}reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::sum_functor<float>>>"
NLL = f"{AT}(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float>"
CLAMP = f"{AT}vectorized_elementwise_kernel<4, at::native::clamp_scalar_kernel_impl>"
FILL_OF_VIEW = f"{AT}elementwise_kernel<128, 4, at::native::FillFunctor<float>>"
MAXIMUM = f"{AT}reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MaxOps<float>>>"
SQUARE = f"{AT}vectorized_elementwise_kernel<4, pow_tensor_scalar>"
GEMM = "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n"


def _run(gpu, kernel, reads, size=DENSE):
    gpu.work_on_host(1e-6)
    result = gpu.empty(size)
    moved = size + sum(each.nbytes for each in reads)
    arrays = {"reads": reads, "writes": [result]}
    gpu.launch(kernel, duration=moved * RATE, **arrays, **threads(-(-size // 16)))
    return result


run = installed(_run, "torch/_ops.py", "run")


def one_hot(gpu, indices):
    zeros = run(gpu, FILL, [])
    return scattered(gpu, zeros, indices)


def scattered(gpu, filled, indices):
    gpu.launch(SCATTER, duration=1e-6, reads=[indices], writes=[filled])
    return filled


def with_dense_targets(gpu, logits, indices, *, kernels=(SOFTMAX, MULTIPLY, SUM), result=ROWS):
    softmax, multiply, then = kernels
    log_probs = run(gpu, softmax, [logits])
    targets = run(gpu, SCALE, [one_hot(gpu, indices)])
    product = run(gpu, multiply, [targets, log_probs])
    return run(gpu, then, [product], result)


def with_indices(gpu, logits, indices):
    log_probs = run(gpu, SOFTMAX, [logits])
    loss = run(gpu, NLL, [log_probs, indices], ROWS)
    smooth = run(gpu, SUM, [log_probs], ROWS)
    return loss, smooth


def mixes_two_targets(gpu, logits, indices):
    log_probs = run(gpu, SOFTMAX, [logits])
    targets = run(gpu, ADD, [one_hot(gpu, indices), one_hot(gpu, indices)])
    product = run(gpu, MULTIPLY, [targets, log_probs])
    return run(gpu, SUM, [product], ROWS)


def compares_targets_too(gpu, logits, indices):
    log_probs, targets = run(gpu, SOFTMAX, [logits]), one_hot(gpu, indices)
    product = run(gpu, MULTIPLY, [targets, log_probs])
    return run(gpu, SUM, [product], ROWS), run(gpu, SUM, [targets], ROWS)


def changes(kernel, *, changed, elements=DENSE // 16):
    """Return a cross entropy of which one array is changed in place before the product."""

    def loss(gpu, logits, indices):
        arrays = {"log_probs": run(gpu, SOFTMAX, [logits])}
        # The largest of each row, as for an accuracy.
        run(gpu, MAXIMUM, [arrays["log_probs"]], ROWS)
        arrays["targets"] = one_hot(gpu, indices)
        gpu.launch(kernel, duration=1e-6, writes=[arrays[changed]], **threads(elements))
        product = run(gpu, MULTIPLY, [arrays["targets"], arrays["log_probs"]])
        return run(gpu, SUM, [product], ROWS)

    return loss


def _of_kernels(gpu, kernels, gradient):
    """Compute a gradient by kernels that each read the one before and some arrays."""
    for kernel, reads in kernels:
        gradient = run(gpu, kernel, [gradient, *reads])
    return gradient


backward = named(_of_kernels, "backward loss")


def writes_the_loss_out(gpu, logits, indices, *, kernels=(PROBABILITIES, LOG), more=()):
    """Multiply the logarithm of a softmax with a one-hot matrix, and go backward."""
    *before, log = kernels
    softmax = logits
    for kernel in before:
        softmax = run(gpu, kernel, [softmax])
    log_probs = run(gpu, log, [softmax])
    for kernel in more:
        run(gpu, kernel, [softmax])
    hot = one_hot(gpu, indices)
    product = run(gpu, MULTIPLY, [hot, log_probs])
    del log_probs
    loss = run(gpu, SUM, [product], ROWS)
    del product
    steps = (MULTIPLY, [hot]), (DIVIDE, [softmax]), (MULTIPLY, [softmax])
    return backward(gpu, [*steps, (SOFTMAX_BACKWARD, [softmax])], loss)


def uses_the_logarithm_too(gpu, logits, indices):
    """Compute the entropy of the predictions by the same logarithm."""
    softmax = run(gpu, PROBABILITIES, [logits])
    log_probs = run(gpu, LOG, [softmax])
    product = run(gpu, MULTIPLY, [one_hot(gpu, indices), log_probs])
    return run(gpu, SUM, [product], ROWS), run(gpu, SUM, [log_probs], ROWS)


def has_it_computed(gpu, logits, indices):
    """Do what `cross_entropy` does, forward and backward."""
    log_probs = run(gpu, SOFTMAX, [logits])
    loss = run(gpu, NLL, [log_probs, indices], ROWS)
    return backward(gpu, [(NLL_BACKWARD, []), (LOG_SOFTMAX_BACKWARD, [log_probs])], loss)


def recorded(loss, *, indices=ROWS):
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        logits, classes = gpu.empty(DENSE), gpu.empty(indices)
        for _ in range(STEPS):
            loss(gpu, logits, classes)
        gpu.synchronize()
    return recorder.recording


def found(*args, **options):
    made = findings(as_torch(recorded(*args, **options)), small=True)
    return [each for each in made if each.rule == "R81"]


def test_class_indices_save_what_was_predicted():
    before, after = recorded(with_dense_targets), recorded(with_indices)
    (finding,) = found(with_dense_targets)

    # The loss at the indices is a second number for each row.
    assert finding.saved_bytes == before.peak().bytes - after.peak().bytes + ROWS
    faster = before.duration_ns - after.duration_ns
    assert finding.saved_ns == pytest.approx(faster, rel=0.25)
    assert finding.title == (
        "`zeros = run(gpu, FILL, [])` makes dense targets of class indices: with what is computed "
        "from them, 48.0 MiB for each cross entropy."
    )
    assert found(with_indices) == []


@pytest.mark.parametrize(
    "loss",
    [
        # No cross entropy, or another function of its terms.
        partial(with_dense_targets, kernels=(SQUARE, MULTIPLY, SUM)),
        partial(with_dense_targets, kernels=(SOFTMAX, ADD, SUM)),
        partial(with_dense_targets, kernels=(SOFTMAX, MULTIPLY, SQUARE)),
        # An embedding.
        partial(with_dense_targets, kernels=(SOFTMAX, GEMM, SUM)),
        # A focal loss, and the sum of all terms or of those of each class.
        partial(with_dense_targets, kernels=(PROBABILITIES, MULTIPLY, SUM)),
        partial(with_dense_targets, result=8),
        partial(with_dense_targets, result=4096),
        partial(with_dense_targets, result=8 * ROWS),
        mixes_two_targets,
        compares_targets_too,
        # Other terms than those of the log softmax, and no weight for a padding class.
        changes(CLAMP, changed="log_probs"),
        changes(FILL_OF_VIEW, changed="targets", elements=MIB // 64),
    ],
)
def test_dense_arrays_that_are_needed_are_no_finding(loss):
    assert found(loss) == []


def test_dense_targets_that_are_scaled_in_place_are_dense_targets():
    (finding,) = found(changes(SCALE, changed="targets"))

    assert finding.saved_bytes > 0


def test_few_classes_are_no_finding():
    assert found(with_dense_targets, indices=2 * MIB) == []


@pytest.mark.parametrize("tags", [2, 8])
def test_several_classes_for_each_row_are_no_finding(tags):
    assert found(with_dense_targets, indices=tags * ROWS) == []


def test_a_loss_that_is_written_out_saves_what_was_predicted():
    before, after = recorded(writes_the_loss_out), recorded(has_it_computed)
    (finding,) = found(writes_the_loss_out)

    assert finding.saved_bytes == before.peak().bytes - after.peak().bytes
    faster = before.duration_ns - after.duration_ns
    assert 0.7 * faster < finding.saved_ns <= faster
    assert "multiplied with the logarithm of a softmax and summed" in finding.reason
    assert found(has_it_computed) == []


@pytest.mark.parametrize(
    "loss",
    [
        # The logarithm of something else, and another function of a softmax.
        partial(writes_the_loss_out, kernels=(SQUARE, LOG)),
        partial(writes_the_loss_out, kernels=(PROBABILITIES, SQUARE)),
        # Probabilities that are mixed with others before the logarithm, or used beside it.
        partial(writes_the_loss_out, kernels=(PROBABILITIES, SCALE, LOG)),
        partial(writes_the_loss_out, more=[SQUARE]),
        uses_the_logarithm_too,
    ],
)
def test_logarithms_with_another_use_are_no_finding(loss):
    assert found(loss) == []
