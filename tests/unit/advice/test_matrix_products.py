"""R77 and R78: matrix products in float32, and those of unaligned rows."""

import pytest

from gpuviz.advice.findings import findings
from gpuviz.recording import Recording
from tests.unit.advice.training import MIB, Model, in_backward_pass, named_gpu, recorded, step_of
from tests.unit.recording.from_activities import rows_of

FLOAT32 = "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_ffma_aligna4"
OLD_FLOAT32 = "void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>"
TF32 = "sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize64x128x32_warpgroupsize1x1x1"
UNALIGNED = "void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_nn_align1>"
DOUBLE = "void cutlass::Kernel2<cutlass_80_tensorop_d884gemm_128x64_16x3_tn_align1>"
UNALIGNED_TF32 = "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x256_32x3_nn_align1>"
ALIGNED = "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_nn_align8>"
H200, RTX = "NVIDIA H200", "NVIDIA GeForce RTX 4090"
STEPS, LAYERS = 3, 4


def _update(gpu, model):
    gpu.launch("multi_tensor_apply_kernel", duration=1e-5, writes=[*model.weights.values()])


def trains(kernel, *, beside="gelu", optimizer="Adam", again=False, shorter=1.0):
    """Return a program that trains a model of a kernel's matrix products, 0.1 and 0.2 ms each."""

    def program(gpu):
        model = Model(gpu, kernels=(kernel, kernel), shorter=shorter)
        step = step_of(_update, optimizer)
        for _ in range(STEPS):
            x = gpu.empty(8 * MIB)
            gpu.launch(beside, duration=1e-4, writes=[x])
            output = model.forward(x)
            if again:
                in_backward_pass(model.forward)(x, again=True)
            model.backward(output)
            step(gpu, model)

    return program


def recorded_on(kernel, device=H200):
    """Return the recording of a model of a kernel's matrix products, on a GPU of a name."""
    return named_gpu(recorded(trains(kernel)), device)


def found(program, rule, *, device=H200):
    recording = named_gpu(recorded(program), device)
    return [each for each in findings(recording, small=True) if each.rule == rule]


@pytest.mark.parametrize("kernel", [FLOAT32, OLD_FLOAT32])
def test_products_of_a_model_in_float32_are_found_and_tf32_saves_most_of_their_time(kernel):
    (finding,) = found(trains(kernel), "R77")

    faster = (
        recorded(trains(kernel)).duration_ns - recorded(trains(TF32, shorter=1 / 7)).duration_ns
    )
    assert finding.saved_ns == pytest.approx(faster, rel=0.1)
    assert finding.title.startswith("Matrix products in float32 take 3.60 ms, ")
    assert 'torch.set_float32_matmul_precision("high")' in finding.change
    assert finding.certainty == "possible"


def test_products_with_tf32_are_no_finding():
    assert found(trains(TF32), "R77") == []


@pytest.mark.parametrize(
    "options",
    [
        {"beside": "void getrf_pivot<float, 256>"},
        {"optimizer": "LBFGS"},
        {"again": True},
    ],
)
def test_programs_that_may_need_float32_are_no_finding(options):
    assert found(trains(FLOAT32, **options), "R77") == []


def test_a_gpu_that_is_hardly_faster_with_tf32_is_no_finding():
    assert found(trains(FLOAT32), "R77", device=RTX) == []


def test_products_without_parameters_are_no_finding():
    def program(gpu):
        first, second = gpu.empty(8 * MIB), gpu.empty(8 * MIB)
        for _ in range(8):
            product = gpu.empty(8 * MIB)
            gpu.launch(FLOAT32, duration=1e-3, reads=[first, second], writes=[product])

    assert found(program, "R77") == []


def test_products_take_at_least_what_their_arrays_need():
    # 17 MiB a product take 3.7 µs at the bandwidth of an H200, half of the recorded time.
    (finding,) = found(trains(FLOAT32, shorter=0.07), "R77")

    spent = STEPS * LAYERS * 0.07 * 300_000
    assert 0 < finding.saved_ns < 0.5 * spent


@pytest.mark.parametrize(("kernel", "share"), [(UNALIGNED, 0.2), (UNALIGNED_TF32, 0.35)])
def test_products_of_unaligned_rows_are_found(kernel, share):
    (finding,) = found(trains(kernel), "R78")

    assert finding.title == "24 matrix products with unaligned rows take 3.60 ms."
    assert finding.saved_ns == pytest.approx((1 - share) * 3.6e6, rel=0.01)
    assert found(trains(ALIGNED), "R78") == []
    assert found(trains(DOUBLE), "R78") == []


def test_a_factor_of_a_few_rows_cannot_be_padded():
    def program(gpu):
        features, weight = gpu.empty(64 * MIB), gpu.empty(1536)
        for _ in range(8):
            scores = gpu.empty(2 * MIB)
            gpu.launch(UNALIGNED, duration=1e-3, reads=[features, weight], writes=[scores])

    assert found(program, "R78") == []


def test_short_products_and_other_gpus_are_no_finding():
    assert found(trains(UNALIGNED, shorter=0.09), "R78") == []
    assert found(trains(UNALIGNED), "R78", device=RTX) == []


def test_a_program_that_has_allowed_tf32_is_no_finding():
    def program(gpu):
        trains(FLOAT32)(gpu)
        trains(TF32, shorter=0.1)(gpu)

    assert found(trains(FLOAT32), "R77") != []
    assert found(program, "R77") == []


def multiplied(*begins, size=512 * MIB, bandwidth=4_800_000_000_000):
    """Return the recording of eight unaligned products of 1 ms of parts of one array.

    Args:
        begins: Where each part begins, in bytes.
        size: The bytes of the array.
        bandwidth: Bytes per second of the GPU's memory.
    """

    def program(gpu):
        whole = gpu.empty(size)
        for _ in range(8):
            gpu.launch(UNALIGNED, duration=1e-3, reads=[whole])

    recording = named_gpu(recorded(program), H200, bandwidth)
    used = [
        row | {"address": row["block"] + begin}
        for row in recording.tables["launch_blocks"].to_pylist()
        for begin in begins
    ]
    tables = {**recording.tables, "launch_blocks": rows_of("launch_blocks", used)}
    return Recording(tables, recording.manifest)


def unaligned(recording):
    return [each for each in findings(recording, small=True) if each.rule == "R78"]


def test_arrays_that_are_parts_of_one_block_end_where_the_next_one_begins():
    assert unaligned(multiplied(0, 64 * MIB, 128 * MIB)) != []
    assert unaligned(multiplied(0, 64 * MIB, 64 * MIB + 2048)) == []


@pytest.mark.parametrize(("bandwidth", "least_ms"), [(4_800_000_000_000, 0.2), (10**12, 0.537)])
def test_unaligned_products_take_at_least_what_their_arrays_need(bandwidth, least_ms):
    (finding,) = unaligned(multiplied(0, 64 * MIB, 128 * MIB, bandwidth=bandwidth))

    assert finding.saved_ns == pytest.approx(8e6 * (1 - least_ms), rel=0.01)
