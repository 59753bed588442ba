"""R79: images in NCHW, which convolutions on Tensor Cores convert."""

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.training import MIB, as_torch, in_backward_pass, installed, recorded

FORWARD = "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64"
BACKWARD = "sm90_xmma_dgrad_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64"
WITHOUT_TENSOR_CORES = (
    "void implicit_convolve_sgemm<__nv_bfloat16, __nv_bfloat16, 1024, 5, 5, 3, 3>"
)
OF_FEW_CHANNELS = "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nchwkcrs_nchw_ffma_aligna4"
TO_NHWC = "void cudnn::engines_precompiled::nchwToNhwcKernel<__nv_bfloat16, float>"
TO_NCHW = "void cudnn::engines_precompiled::nhwcToNchwKernel<__nv_bfloat16, float>"
OWN = "void at::native::batch_norm_{}_kernel<c10::BFloat16, float, float, int>"
OF_CUDNN = "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 512, true, 1, true>"
IN_NHWC = "void at::native::batch_norm_collect_statistics_channels_last_kernel<c10::BFloat16>"
ADDED = "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::nativ"
SUMMED = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<c10::BFloat16, at::native::f"
DEPTHWISE = "void at::native::conv_depthwise2d_forward_kernel<3, c10::BFloat16, int>"
MS = 1e-3
STEPS = 4
NORMALIZATION = [(OWN.format("collect_statistics"), 0.3 * MS), (OWN.format("backward"), 0.7 * MS)]


def _launch(gpu, x, y, kernels):
    for name, duration in kernels:
        gpu.launch(name, duration=duration, reads=[x], writes=[y])


def network(before=(), *, convolution=FORWARD, beside=(), layer="Conv2d", again=False):
    """Return a program that trains a network, whose convolution takes 1 ms in each direction.

    Args:
        before: The kernels and times of each convolution beside its own.
        convolution: The kernel of the forward pass.
        beside: The kernels and times of other work.
        layer: The class of the layer in PyTorch.
        again: Whether the backward pass is differentiable.
    """
    forward = installed(_launch, "torch/nn/modules/conv.py", f"{layer}._conv_forward")
    backward = in_backward_pass(_again if again else _launch)

    def program(gpu):
        x, y = gpu.empty(8 * MIB), gpu.empty(8 * MIB)
        for _ in range(STEPS):
            forward(gpu, x, y, [*before, (convolution, MS)])
            _launch(gpu, y, x, beside)
            backward(gpu, x, y, [*before, (BACKWARD, MS)])

    return program


def _again(gpu, x, y, kernels):
    _launch(gpu, x, y, kernels)


_again.__code__ = _again.__code__.replace(co_name="again", co_qualname="again")


def found(program):
    recording = as_torch(recorded(program))
    return [each for each in findings(recording, small=True) if each.rule == "R79"]


def test_conversions_around_convolutions_are_found_and_saved():
    (finding,) = found(network([(TO_NHWC, 0.1 * MS), (TO_NCHW, 0.1 * MS)]))

    without = recorded(network())
    with_them = recorded(network([(TO_NHWC, 0.1 * MS), (TO_NCHW, 0.1 * MS)]))
    assert finding.saved_ns == pytest.approx(with_them.duration_ns - without.duration_ns, rel=0.05)
    assert finding.title.endswith("take 1.60 ms, 17 % of the time of kernels.")
    assert finding.reason == "Conversions before and after convolutions take 1.60 ms."
    assert "memory_format=torch.channels_last" in finding.change
    assert finding.certainty == "possible"


@pytest.mark.parametrize(
    ("kernel", "share"),
    [
        (OWN.format("backward"), 0.4),
        (OWN.format("collect_statistics"), 0.4),
        (OF_CUDNN, 0.6),
    ],
)
def test_other_kernels_for_nchw_take_less_time_in_nhwc(kernel, share):
    (finding,) = found(network(beside=[(kernel, MS)]))

    assert finding.saved_ns == pytest.approx((1 - share) * STEPS * 1e6, rel=0.01)


def test_biases_and_conversions_of_types_are_no_convolutions():
    (without,) = found(network([(TO_NHWC, 0.2 * MS)]))
    (with_them,) = found(network([(TO_NHWC, 0.2 * MS), (ADDED, MS), (SUMMED, MS)]))

    assert with_them.saved_ns == pytest.approx(without.saved_ns, rel=0.01)


def test_images_in_nhwc_are_no_finding():
    assert found(network(beside=[(IN_NHWC, MS)])) == []


def test_depthwise_convolutions_take_a_quarter_of_the_time_in_nhwc():
    (finding,) = found(network([(DEPTHWISE, 0.5 * MS)]))

    assert finding.saved_ns == pytest.approx(0.75 * STEPS * 1e6, rel=0.01)


def test_depthwise_convolutions_of_one_dimension_stay():
    beside = [(OWN.format("backward"), MS)]
    (one,) = found(network(beside=beside))
    (other,) = found(network(beside=[*beside, (DEPTHWISE, MS)]))

    assert other.saved_ns == pytest.approx(one.saved_ns, rel=0.01)


@pytest.mark.parametrize("layer", ["Conv1d", "Conv3d"])
def test_convolutions_of_other_dimensions_have_no_such_layout(layer):
    assert found(network([(TO_NHWC, 0.2 * MS)], layer=layer)) == []


def test_convolutions_without_tensor_cores_prefer_nchw():
    conversion, slow = (TO_NHWC, 0.2 * MS), (WITHOUT_TENSOR_CORES, MS)
    assert found(network([conversion, (FORWARD, 2 * MS)], convolution=slow[0])) != []
    assert found(network([conversion], convolution=slow[0])) == []
    assert found(network([(DEPTHWISE, 2 * MS)], convolution=slow[0])) == []


def test_float32_with_few_channels_has_no_fast_kernel_for_nhwc():
    before = [(TO_NHWC, 0.2 * MS)]
    assert found(network(before)) != []
    assert found(network([*before, (OF_FEW_CHANNELS, 0.005 * MS)])) != []
    assert found(network([*before, (OF_FEW_CHANNELS, 0.1 * MS)])) == []


@pytest.mark.parametrize("function", ["group_norm", "instance_norm"])
def test_normalizations_of_groups_and_instances_convert_back(function):
    normalize = installed(_launch, "torch/nn/functional.py", function)
    before = [(TO_NHWC, 0.2 * MS)]

    def program(gpu):
        network(before)(gpu)
        x = gpu.empty(8 * MIB)
        normalize(gpu, x, x, [("void at::native::RowwiseMomentsCUDAKernel<float>", 0.1 * MS)])

    assert found(network(before)) != []
    assert found(program) == []


def test_batch_normalization_without_convolutions_is_no_finding():
    def program(gpu):
        x, y = gpu.empty(8 * MIB), gpu.empty(8 * MIB)
        for _ in range(STEPS):
            _launch(gpu, x, y, [(OWN.format("backward"), MS), ("gemm", MS)])

    assert found(program) == []


def test_gradients_that_are_differentiated_have_other_kernels():
    before = [(TO_NHWC, 0.2 * MS)]
    assert found(network(before)) != []
    assert found(network(before, again=True)) == []


def test_a_few_conversions_are_not_worth_a_word():
    assert found(network([(TO_NHWC, 0.02 * MS)])) == []
