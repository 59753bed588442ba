"""R57: values of parameters that training computes again for each backward pass."""

import pytest

from tests.unit.advice.training import MIB, named, recorded

ROUNDS, SIZE = 12, 32 * MIB


def _empty(gpu, size):
    gpu.work_on_host(1e-6)
    return gpu.empty(size)


def _scale(gpu, read, written):
    gpu.launch("scale", reads=[read], writes=[written], duration=1e-4, scalars=[1])


parameter = named(_empty, "parameter")
forward, backward = (named(_scale, f"{phase} Scale") for phase in ("forward", "backward"))


def accumulates(gpu, *, make=parameter, trains=True):
    """Scale the weight in each part of a batch, as a normalization of weights does."""
    weight, state, gradient = make(gpu, SIZE), _empty(gpu, MIB), _empty(gpu, SIZE)
    gpu.copy_to_device(weight)
    gpu.copy_to_device(state)
    gpu.copy_to_device(gradient)
    for number in range(ROUNDS):
        scaled = _empty(gpu, SIZE)
        forward(gpu, weight, scaled)
        gpu.launch("gemm", reads=[scaled, state], writes=[state], duration=1e-4, scalars=[number])
        del scaled
        if trains:
            backward(gpu, gradient, gradient)


def found(program):
    return [each for each in recorded(program).findings(small=True) if each.rule == "R57"]


def test_each_backward_pass_needs_values_of_its_own():
    assert found(accumulates) == []


def test_each_backward_pass_of_a_program_without_modules_needs_values_of_its_own():
    assert found(lambda gpu: accumulates(gpu, make=_empty)) == []


def with_a_table(gpu):
    """Scale a table that is no parameter, beside one."""
    parameter(gpu, MIB)
    accumulates(gpu, make=_empty)


@pytest.mark.parametrize(
    "program", [with_a_table, lambda gpu: accumulates(gpu, trains=False)], ids=["table", "no pass"]
)
def test_values_that_no_backward_pass_goes_through_can_be_kept(program):
    (finding,) = found(program)

    assert finding.title.endswith("computes the same values 12 times.")
