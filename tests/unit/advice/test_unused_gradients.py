"""R61: gradients that nothing uses."""

from functools import partial

import pytest

from gpuviz.advice.findings import findings
from gpuviz.recording import Recording
from tests.unit.advice.training import MIB, Model, in_backward_pass, installed, named, recorded
from tests.unit.recording.from_activities import rows_of

STEPS, LAYER, INPUT = 4, 8 * MIB, 32 * MIB
ENCODER, HEAD = ("0", "1", "2"), ("3", "4")
# The categories of what kernels read or write: gradients of an optimizer, a library's workspace.
_CATEGORIES = {
    "update": ("read", "gradient"),
    "update at rate 0": ("read", "unused_gradient"),
    "clear": ("write", "workspace"),
}

# Workspaces, which stay until a recording has ended.
_NOT_FREED = []


def _step(gpu, model, names, kernel="update"):
    gpu.work_on_host(1e-6)
    for name in names:
        arrays = [model.gradients[name], model.weights[name]]
        gpu.launch(kernel, duration=1e-5, reads=arrays[:1], writes=arrays[1:])


def _drop(gpu, model):
    gpu.work_on_host(1e-6)
    model.gradients = dict.fromkeys(model.names)


def _read(gpu, gradient):
    gpu.launch("norm", duration=1e-5, reads=[gradient])


def _accumulate(gpu, saved, gradient):
    gpu.work_on_host(1e-6)
    part = gpu.empty(MIB)
    gpu.launch("weight gradient", duration=1e-4, reads=[saved], writes=[part])
    gpu.launch("add", duration=1e-5, reads=[part, gradient], writes=[gradient])


def _go_on(gpu, gradient):
    """Begin a backward pass with a gradient of another one."""
    gpu.work_on_host(1e-6)
    below = gpu.empty(MIB)
    gpu.launch("below", duration=1e-4, reads=[gradient], writes=[below])


def _add(gpu, gradient):
    """Add a gradient to that of another backward pass."""
    gpu.work_on_host(1e-6)
    gpu.launch("add", duration=1e-5, reads=[gradient], writes=[gradient])


def _call_with(function, *arguments):
    return function(*arguments)


def _clear(gpu, workspace):
    gpu.work_on_host(1e-6)
    gpu.launch("clear", duration=1e-6, writes=[workspace])


accumulate = named(_accumulate, "backward 3")
go_on, add, clear = (in_backward_pass(named(each, "backward 0")) for each in (_go_on, _add, _clear))
step, drop = (named(each, "optimizer") for each in (_step, _drop))


def trains(frozen=None):
    """Return a program that trains a head on an encoder, which is frozen in some way.

    A library clears its workspace at the end of each backward pass.

    Args:
        frozen: ``rate`` if the encoder's learning rate is 0, ``dropped`` if no optimizer gets its
            gradients, ``read`` if the program itself reads them then, ``passed on`` if another
            backward pass begins with them, ``added to`` if it only adds to them, ``warm-up`` if the
            rate is 0 in the first step only, ``no_grad`` if it has no gradients; None if it is
            trained.
    """

    def program(gpu):
        model, workspace = Model(gpu, ENCODER + HEAD), gpu.empty(MIB)
        _NOT_FREED.append(workspace)
        for number in range(STEPS):
            x = gpu.empty(LAYER)
            gpu.launch("load", duration=1e-4, writes=[x])
            if frozen == "no_grad":
                features = model(x, gradients=False, names=ENCODER).value
                output = model(features, names=HEAD)
                del features
                model.backward(output, names=HEAD)
            else:
                output = model(x)
                model.backward(output)
            del output, x
            clear(gpu, workspace)
            step(gpu, model, HEAD)
            if frozen == "rate" or (frozen == "warm-up" and number == 0):
                step(gpu, model, ENCODER, kernel="update at rate 0")
            elif frozen in {None, "warm-up"}:
                step(gpu, model, ENCODER)
            elif frozen == "read":
                for name in ENCODER:
                    _read(gpu, model.gradients[name])
            elif frozen in {"passed on", "added to"}:
                for name in ENCODER:
                    (go_on if frozen == "passed on" else add)(gpu, model.gradients[name])
            drop(gpu, model)

    return program


def trained(program):
    """Return the recording of a program with the gradients that its optimizer gets."""
    recording = recorded(program)
    _NOT_FREED.clear()
    tables = recording.tables
    texts = {row["id"]: row["text"] for row in tables["strings"].to_pylist()}
    kernels = {row["correlation"]: texts[row["name"]] for row in tables["activities"].to_pylist()}
    times = {row["correlation"]: row["time"] for row in tables["api_calls"].to_pylist()}
    rows = [
        {
            "time": times[row["correlation"]],
            "address": row["address"],
            "category": category,
        }
        for row in tables["launch_blocks"].to_pylist()
        for mode, category in [_CATEGORIES.get(kernels[row["correlation"]], ("", ""))]
        if row["mode"] == mode
    ]
    named_before = tables["tensors"].to_pylist()
    tensors = rows_of("tensors", named_before + rows)
    return Recording({**tables, "tensors": tensors}, recording.manifest)


def unused(frozen):
    return [each for each in findings(trained(trains(frozen)), small=True) if each.rule == "R61"]


@pytest.mark.parametrize("frozen", ["rate", "dropped"])
def test_gradients_of_a_frozen_part_are_found_and_none_save_what_was_predicted(frozen):
    before, after = trained(trains(frozen)), trained(trains("no_grad"))
    (finding,) = unused(frozen)

    # The simulated backward pass leaves the output of the first layer to the program.
    assert finding.saved_bytes == before.peak().bytes - after.peak().bytes - LAYER
    assert finding.saved_ns == pytest.approx(before.duration_ns - after.duration_ns, rel=0.1)
    assert finding.title == (
        "4 backward passes spend 2.40 ms of the GPU's work on gradients that nothing uses."
    )
    assert ("learning rate of 0" in finding.reason) is (frozen == "rate")
    assert "12 arrays, 3.00 MiB in each pass" in finding.reason


@pytest.mark.parametrize("frozen", [None, "no_grad", "read", "passed on", "warm-up"])
def test_gradients_with_a_use_are_needed(frozen):
    assert unused(frozen) == []


def test_gradients_that_another_line_only_adds_to_are_unused():
    (finding,) = unused("added to")

    assert finding.title.endswith(" of the GPU's work on gradients that nothing uses.")


def trains_adversaries(*, through=True):
    """Return a program that trains a head, then an encoder through it, until the next step.

    Args:
        through: Whether the second pass adds to the gradients of the head, which are dropped.
    """

    def program(gpu):
        model = Model(gpu, ENCODER + HEAD)
        for _ in range(STEPS):
            x = gpu.empty(LAYER)
            gpu.launch("load", duration=1e-4, writes=[x])
            model.backward(model(x, names=HEAD), names=HEAD)
            step(gpu, model, HEAD)
            output = model(x, names=ENCODER)
            if through:
                accumulate(gpu, x, model.gradients["3"])
            model.backward(output, names=ENCODER)
            del output, x
            step(gpu, model, ENCODER)
            drop(gpu, model)

    return program


def test_gradients_that_another_pass_adds_to_after_their_step_are_unused():
    before, after = (trained(trains_adversaries(through=each)) for each in (True, False))
    (finding,) = [each for each in findings(before, small=True) if each.rule == "R61"]

    saved_ns = before.duration_ns - after.duration_ns
    assert finding.saved_ns == pytest.approx(saved_ns, rel=0.1)
    assert "4 backward passes spend 440 µs" in finding.title
    assert "backward(inputs=...)" in finding.change
    assert [each for each in findings(after, small=True) if each.rule == "R61"] == []


def test_gradients_that_add_up_until_a_step_are_needed():
    def program(gpu):
        model = Model(gpu)
        for _ in range(STEPS):
            for _ in range(STEPS):
                x = gpu.empty(LAYER)
                gpu.launch("load", duration=1e-4, writes=[x])
                output = model(x)
                model.backward(output)
                del output, x
            step(gpu, model, model.names)
            drop(gpu, model)

    assert "R61" not in {each.rule for each in findings(trained(program), small=True)}


def _differentiate(gpu, x, weight, kept, workspace):
    """Compute the gradient of a weight, and that of the input, of which it has the previous one.

    The latter is reduced in parts, with a library's workspace.
    """
    gpu.work_on_host(1e-6)
    if kept is not None:
        below = gpu.empty(INPUT)
        gpu.launch("input gradient", duration=2e-4, reads=[weight], writes=[below])
        parts = [below, workspace]
        gpu.launch("reduce", duration=1e-5, reads=parts, writes=parts)
        del parts
    gradient = gpu.empty(MIB)
    gpu.launch("weight gradient", duration=1e-4, reads=[x], writes=[gradient])
    if kept:
        gpu.launch("add", duration=1e-5, reads=[below, kept[0]], writes=[kept[0]])
        del below
    elif kept is not None:
        kept.append(below)
    return gradient


differentiate, penalize = named(_differentiate, "backward 0"), named(_go_on, "forward penalty")
below = named(_go_on, "backward below")


def _pass_back(gpu, arrays, kept, use):
    gradient = differentiate(gpu, *arrays[:2], kept, arrays[2])
    if use == "passed on":
        below(gpu, kept[0])
    return gradient


pass_back = in_backward_pass(_pass_back)
recompute = partial(
    installed(_call_with, "torch/utils/checkpoint.py", "CheckpointFunction.backward"), clear
)


def trains_on(use=None, *, requires_grad=True):
    """Return a program whose backward passes also compute a gradient of the input.

    Args:
        use: ``read`` if the program reads it in each step, ``read at last`` if it adds up until
            then, ``penalized`` if a loss does, ``passed on`` if the same backward pass goes on from
            it, ``stepped`` if an optimizer gets it, ``checkpointed`` if a reentrant checkpoint
            needs it to have a backward pass; None if nothing does.
        requires_grad: Whether it computes one.
    """

    def program(gpu):
        model, kept = Model(gpu, ("0", *HEAD)), [] if requires_grad else None
        x, workspace = gpu.empty(INPUT), gpu.empty(MIB)
        _NOT_FREED.append(workspace)
        gpu.launch("load", duration=1e-4, writes=[x])
        for _ in range(STEPS):
            output = model(x)
            model.backward(output, names=HEAD)
            arrays = x, model.weights["0"], workspace
            model.gradients["0"] = pass_back(gpu, arrays, kept, use)
            (recompute if use == "checkpointed" else clear)(gpu, workspace)
            del output
            if use in {"read", "penalized"}:
                (_read if use == "read" else penalize)(gpu, kept[0])
            step(gpu, model, model.names)
            if use == "stepped":
                gpu.launch("update", duration=1e-5, reads=[kept[0]], writes=[x])
            drop(gpu, model)
            if use == "passed on":
                kept.clear()
        if use == "read at last":
            _read(gpu, kept[0])

    return program


def of_input(**options):
    found = findings(trained(trains_on(**options)), small=True)
    return [each for each in found if each.rule == "R61"]


def test_a_gradient_of_an_input_is_found_beside_that_of_a_parameter_of_the_same_module():
    before, after = (trained(trains_on(requires_grad=each)) for each in (True, False))
    (finding,) = of_input()

    assert finding.saved_bytes == before.peak().bytes - after.peak().bytes > INPUT
    assert finding.saved_ns == pytest.approx(before.duration_ns - after.duration_ns, rel=0.1)
    assert "4 backward passes spend 874 µs" in finding.title
    assert "1 array, 32.0 MiB in each pass" in finding.reason
    assert "or the input" in finding.change
    assert of_input(requires_grad=False) == []


@pytest.mark.parametrize(
    "use", ["read", "read at last", "penalized", "passed on", "stepped", "checkpointed"]
)
def test_gradients_of_inputs_with_a_use_are_needed(use):
    assert of_input(use=use) == []
