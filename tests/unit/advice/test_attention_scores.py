"""R60: attention whose scores are arrays of the program."""

import pytest

import gpuviz
from gpuviz.advice.findings import findings
from tests.unit.advice.programs import MIB

LAYERS = 6
SCORES, HEADS = 64 * MIB, 2 * MIB


def kernel(gpu, name, reads, size):
    """Launch a kernel that makes a new array."""
    made = gpu.empty(size)
    gpu.launch(name, duration=1e-5, reads=reads, writes=[made])
    return made


def attention(gpu, x, result=HEADS):
    scores = kernel(gpu, "nvjet_qk", [x], SCORES)
    scaled = kernel(gpu, "vectorized_elementwise_kernel", [scores], SCORES)
    weights = kernel(gpu, "softmax_warp_forward", [scaled], SCORES)
    weights = kernel(gpu, "fused_dropout_kernel", [weights], SCORES)
    return kernel(gpu, "nvjet_av", [weights, x], result), [scores, scaled, weights]


def stored(gpu):
    """Keep what a backward pass would read."""
    x, kept = gpu.empty(HEADS), []
    gpu.fill(x)
    for _ in range(LAYERS):
        x, saved = attention(gpu, x)
        kept.append(saved)


def computed_in_parts(gpu):
    x = gpu.empty(HEADS)
    gpu.fill(x)
    for _ in range(LAYERS):
        x = kernel(gpu, "flash_fwd_kernel", [x], HEADS)


def shown(gpu):
    """The program looks at the weights."""
    x = gpu.empty(HEADS)
    gpu.fill(x)
    for _ in range(LAYERS):
        x, (_, _, weights) = attention(gpu, x)
        gpu.copy_to_host(kernel(gpu, "reduce_kernel", [weights], 512))


def aligned(gpu):
    """A loss compares the scores with an alignment before their softmax."""
    x = gpu.empty(HEADS)
    gpu.fill(x)
    for _ in range(LAYERS):
        x, (scores, _, _) = attention(gpu, x)
        gpu.copy_to_host(kernel(gpu, "reduce_kernel", [scores], 512))


def mixes_heads(gpu):
    """A product mixes the scores of the heads before their softmax."""
    x = gpu.empty(HEADS)
    gpu.fill(x)
    for _ in range(LAYERS):
        scores = kernel(gpu, "nvjet_qk", [x], SCORES)
        mixed = kernel(gpu, "nvjet_heads", [scores, x], SCORES)
        weights = kernel(gpu, "softmax_warp_forward", [mixed], SCORES)
        x = kernel(gpu, "nvjet_av", [weights, x], HEADS)


def masked(gpu):
    """The softmax reads a mask of all scores too."""
    x, mask = gpu.empty(HEADS), gpu.empty(SCORES // 2)
    gpu.fill(x)
    gpu.fill(mask)
    for _ in range(LAYERS):
        scores = kernel(gpu, "nvjet_qk", [x], SCORES)
        weights = kernel(gpu, "scaled_masked_softmax_warp_forward", [mask, scores], SCORES)
        x = kernel(gpu, "nvjet_av", [weights, x], HEADS)


def few_queries(gpu):
    """The result is as large as the scores: there are as many columns as keys."""
    x = gpu.empty(HEADS)
    gpu.fill(x)
    for _ in range(LAYERS):
        x, _ = attention(gpu, x, result=SCORES)


def classified(gpu):
    """A softmax of the outputs of a layer, for a loss."""
    x = gpu.empty(HEADS)
    gpu.fill(x)
    for _ in range(LAYERS):
        outputs = kernel(gpu, "nvjet_linear", [x], SCORES)
        chances = kernel(gpu, "softmax_warp_forward", [outputs], SCORES)
        kernel(gpu, "nll_loss_forward", [chances], 512)


def recorded(program):
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        program(gpu)
        gpu.synchronize()
    return recorder.recording


def found(recording):
    return [each for each in findings(recording, small=True) if each.rule == "R60"]


def test_what_is_not_stored_saves_what_was_predicted():
    recording = recorded(stored)
    (finding,) = found(recording)

    fixed = recorded(computed_in_parts)
    assert finding.saved_bytes == recording.peak().bytes - fixed.peak().bytes
    assert finding.title == (
        "`made = gpu.empty(size)` computes attention from scores of 64.0 MiB; they and what is "
        "made of them hold 1.19 GiB of the peak."
    )


def test_a_softmax_may_read_a_mask():
    assert len(found(recorded(masked))) == 1


@pytest.mark.parametrize(
    "program", [computed_in_parts, shown, aligned, mixes_heads, few_queries, classified]
)
def test_what_looks_alike_is_no_finding(program):
    assert found(recorded(program)) == []
