"""R70: autograd's anomaly detection."""

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.training import MIB, Model, found, in_backward_pass, installed, recorded

STEPS = 12
COMPARE = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float, float, "
    "bool, at::native::(anonymous namespace)::CompareEqFunctor<float> >, std::array<char*, 3ul> >"
)
ANY = (
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<bool, at::native::func_wrapper_t"
    "<bool, at::native::or_kernel_cuda(at::TensorIterator&)::{lambda()#1}> >"
)
# The backward pass of `cumprod` does so, and waits for the outcome.
COMPARE_WITH_ZERO = COMPARE.replace("BinaryFunctor", "BUnaryFunctor")


def _read(gpu, kernels, size):
    value = gpu.empty(size)
    for kernel in kernels:
        gpu.work_on_host(5e-6)
        gpu.launch(kernel, duration=5e-6, writes=[value])
    gpu.work_on_host(5e-6)
    gpu.copy_to_host(value)
    gpu.work_on_host(5e-6)


# Such as torch does outside of Python, and in a function of the program that it calls.
by_torch = installed(_read, "torch/autograd/__init__.py", "backward")
by_the_program = in_backward_pass(_read)


def trains(*, tests=4, read=by_torch, kernels=(COMPARE, ANY), size=1):
    """Return a program that trains, and reads values in its backward passes.

    Args:
        tests: How many in each step.
        read: How it does that.
        kernels: The kernels before the copy to the host.
        size: The bytes that are copied.
    """

    def program(gpu):
        model = Model(gpu)
        for _ in range(STEPS):
            x = gpu.empty(8 * MIB)
            gpu.launch("load", duration=1e-4, writes=[x])
            model.backward(model.forward(x))
            for _ in range(tests):
                gpu.launch("gradient", duration=5e-5, writes=[x])
                read(gpu, kernels, size)

    return program


def test_tests_for_nan_in_backward_passes_are_found_and_cost_what_was_predicted():
    before, after = trains(), trains(kernels=(), read=lambda *_: None)
    (finding,) = found(before, "R70")

    faster = recorded(before).duration_ns - recorded(after).duration_ns
    assert finding.saved_ns == pytest.approx(faster, rel=0.2)
    assert finding.title == (
        "Autograd's anomaly detection is enabled: the host waits 48 times in backward passes to "
        "test results for NaN."
    )
    assert finding.change.startswith("Remove `torch.autograd.set_detect_anomaly(True)` or ")
    assert len(finding.evidence.rows) == STEPS * 4
    assert found(after, "R70") == []


def test_results_of_one_element_are_compared_only():
    assert len(found(trains(kernels=(COMPARE,)), "R70")) == 1


def test_no_other_rule_speaks_of_these_waits():
    rules = {each.rule for each in findings(recorded(trains()), small=True)}

    assert "R70" in rules
    assert rules & {"R18", "R21", "R22", "R27", "R41"} == set()


@pytest.mark.parametrize(
    "options",
    [
        {"read": by_the_program},
        {"read": _read},
        {"kernels": ("reduce",)},
        {"kernels": (ANY,)},
        {"kernels": (COMPARE, "reduce")},
        {"kernels": (COMPARE_WITH_ZERO, ANY)},
        {"size": 4},
        {"tests": 1},
    ],
)
def test_what_else_a_backward_pass_reads_is_no_anomaly_detection(options):
    assert found(trains(**options), "R70") == []
