"""R57: arrays that hold the same values at the same time."""

import pytest

from tests.unit.advice.training import MIB, found, installed, named, recorded, saved

ROUNDS, SIZE = 12, 32 * MIB
TO_HALF = (
    "void at::native::vectorized_elementwise_kernel<8, at::native::bfloat16_copy_kernel_cuda("
    "at::TensorIteratorBase&)::{lambda(float)#1}, std::array<char*, 2ul> >"
)


def _empty(gpu, size):
    gpu.work_on_host(1e-6)
    return gpu.empty(size)


def _linear(gpu, x, weight, half, number):
    """Multiply by a weight; what a kernel gets for a function without state has no value."""
    if half is None:
        half = gpu.empty(weight.nbytes // 2)
        gpu.launch(TO_HALF, reads=[weight], writes=[half], duration=1e-4, scalars=[number])
    result = gpu.empty(x.nbytes)
    gpu.launch("nvjet_gemm", duration=1e-4, reads=[x, half], writes=[result])
    return result, half


parameter = named(_empty, "parameter")
linear = installed(_linear, "torch/nn/modules/linear.py", "Linear.forward")
other = installed(_linear, "quantized/linear.py", "Linear.forward")


def filled(gpu, array):
    gpu.copy_to_device(array)
    return array


def unrolls(gpu, *, once=False, rounds=ROUNDS, by=(parameter, linear), changes=False):
    """Apply a layer in each step of a sequence; the backward pass needs what it has read."""
    make, layer = by
    weight, state = filled(gpu, make(gpu, SIZE)), filled(gpu, gpu.empty(MIB))
    graph, half = [], None
    for number in range(rounds):
        state, made = layer(gpu, state, weight, half, number % 3)
        if once:
            half = made
        graph.append((state, made))
        if changes:
            gpu.launch("adam", duration=1e-5, reads=[weight], writes=[weight])
    gradient = gpu.empty(MIB)
    while graph:
        output, read = graph.pop()
        gpu.launch("nvjet_gemm", duration=1e-4, reads=[output, read], writes=[gradient])


def test_parameters_that_autocast_converts_in_each_round_are_one_array():
    (finding,) = found(unrolls, "R57")

    def followed(gpu):
        unrolls(gpu, once=True)

    assert finding.title.startswith("12 arrays of `")
    assert finding.title.endswith("` hold the same values at the peak, 192 MiB.")
    assert finding.change.startswith("Enter `torch.autocast` once, around the loop")
    assert "`optimizer.step()`, exit `torch.autocast` before it" in finding.change
    assert finding.saved_bytes == saved(unrolls, followed)
    measured = recorded(unrolls).duration_ns - recorded(followed).duration_ns
    assert finding.saved_ns == pytest.approx(measured, rel=0.1)
    assert found(followed, "R57") == []


def scales(gpu, *, once=False, changes=False):
    """Convert an array for each of several lists, in lines of the program."""
    x, state, kept = filled(gpu, gpu.empty(SIZE)), filled(gpu, gpu.empty(MIB)), []
    for _ in range(ROUNDS):
        if once and kept:
            kept.append(kept[0])
        else:
            half = gpu.empty(SIZE // 2)
            gpu.launch("to_half", duration=1e-3, reads=[x], writes=[half])
            kept.append(half)
    for half in kept:
        gpu.launch("gather", duration=1e-3, reads=[half, state], writes=[state])
        if changes:
            gpu.launch("scatter", duration=1e-3, reads=[state], writes=[half])


def test_arrays_that_the_program_computes_again_from_the_same_are_one_array():
    (finding,) = found(scales, "R57")

    def followed(gpu):
        scales(gpu, once=True)

    assert finding.title.startswith("12 arrays of `")
    assert finding.title.endswith("` hold the same values at the peak, 192 MiB.")
    assert finding.saved_bytes == saved(scales, followed)
    measured = recorded(scales).duration_ns - recorded(followed).duration_ns
    assert finding.saved_ns == pytest.approx(measured, rel=0.1)
    assert found(followed, "R57") == []


def follows(gpu, *, is_used=True):
    """Convert a state in each step of a chain, which seldom changes it."""
    state, total, kept = filled(gpu, gpu.empty(SIZE)), gpu.empty(MIB), []
    for number in range(ROUNDS):
        if number % 4 == 3:
            gpu.launch("accept", duration=1e-5, reads=[state], writes=[state])
        half = gpu.empty(SIZE // 2)
        gpu.launch("to_half", duration=1e-3, reads=[state], writes=[half])
        kept.append(half)
    for half in kept if is_used else kept[:1]:
        gpu.launch("gather", duration=1e-3, reads=[half, total], writes=[total])


def test_arrays_of_a_value_that_changes_now_and_then_are_computed_again_when_it_does():
    (finding,) = found(follows, "R57")

    assert "11 arrays of `" in finding.title
    assert "hold the values of 3 arrays" in finding.title
    assert finding.change.startswith("Compute this again only when what it reads has changed")


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(lambda gpu: follows(gpu, is_used=False), id="not used yet"),
        pytest.param(lambda gpu: unrolls(gpu, rounds=3), id="few"),
        pytest.param(lambda gpu: unrolls(gpu, by=(_empty, linear)), id="no parameters"),
        pytest.param(
            lambda gpu: unrolls(gpu, by=(parameter, other)), id="converted by another library"
        ),
        pytest.param(lambda gpu: unrolls(gpu, changes=True), id="parameters that change"),
        pytest.param(lambda gpu: scales(gpu, changes=True), id="arrays that change later"),
    ],
)
def test_arrays_that_differ_or_are_not_the_programs_are_no_finding(program):
    assert found(program, "R57") == []
