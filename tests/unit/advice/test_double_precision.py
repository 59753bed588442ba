"""R71: models that are trained in double precision."""

import pytest

from tests.unit.advice.training import (
    MIB,
    Model,
    found,
    in_backward_pass,
    recorded,
    saved,
    step_of,
)

STEPS = 3
DOUBLE = ("cutlass_80_tensorop_d884gemm_64x32", "sm90_xmma_gemm_f64f64_f64f64_f64_nt_n")
SINGLE = ("sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n",) * 2
SILU = "void at::native::vectorized_elementwise_kernel<2, silu(double)>"
ADAM = "void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor<double, 4>>"


def _update(gpu, model):
    gpu.launch(ADAM, duration=1e-5, writes=[*model.weights.values()])


def trains(*, products=DOUBLE, beside=SILU, size=8 * MIB, optimizer="Adam", again=False):
    """Return a program that trains a model.

    Args:
        products: The kernels of its layers, in the forward and the backward pass.
        beside: A kernel that uses their result, and takes longer with more bytes.
        size: The size of their results.
        optimizer: The class of the optimizer.
        again: Whether the gradients are differentiated.
    """

    def program(gpu):
        model = Model(gpu, size=size, kernels=products)
        step = step_of(_update, optimizer)
        for _ in range(STEPS):
            x = gpu.empty(size)
            gpu.launch(beside, duration=size * 1e-11, writes=[x])
            output = model.forward(x)
            gpu.launch(beside, duration=size * 1e-11, reads=[output.value], writes=[x])
            if again:
                in_backward_pass(model.forward)(x, again=True)
            model.backward(output)
            step(gpu, model)
            gpu.work_on_host(1e-6)

    return program


def test_a_model_in_double_precision_is_found_and_single_precision_saves_half_of_its_arrays():
    before, after = trains(), trains(products=SINGLE, beside="silu(float)", size=4 * MIB)
    (finding,) = found(before, "R71")

    # The weights stay as large in the second program.
    measured = saved(before, after)
    assert measured <= finding.saved_bytes <= measured + 4 * MIB
    faster = recorded(before).duration_ns - recorded(after).duration_ns
    assert finding.saved_ns == pytest.approx(faster, rel=0.2)
    assert finding.title.startswith("A model is trained in double precision: ")
    assert finding.change.startswith("Train in single precision, if that suffices: ")
    assert finding.certainty == "possible"
    assert found(after, "R71") == []


@pytest.mark.parametrize(
    "beside",
    ["reduce_kernel<512, 1, ReduceOp<double, double>>", "void cusolver::potrf<double>", "load"],
)
def test_float64_beside_a_model_in_single_precision_is_no_finding(beside):
    assert found(trains(products=SINGLE, beside=beside), "R71") == []


@pytest.mark.parametrize(
    "options",
    [
        {"beside": "void trsm_left_kernel<double, 256, 4>"},
        {"beside": "vector_fft<512, complex<double>>"},
        {"beside": SINGLE[0]},
        {"products": (DOUBLE[0], SINGLE[0])},
        {"products": (SILU, SILU)},
        {"optimizer": "LBFGS"},
        {"optimizer": ""},
        {"again": True},
    ],
)
def test_programs_that_may_need_the_precision_or_use_it_in_part_are_no_finding(options):
    assert found(trains(**options), "R71") == []
