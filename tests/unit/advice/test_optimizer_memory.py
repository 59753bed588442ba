"""R53: memory of an optimizer's step."""

from functools import partial

import pytest

from gpuviz.advice.findings import findings
from gpuviz.recording import Recording
from tests.unit.advice.training import MIB, Model, found, named, recorded, saved, step_of
from tests.unit.recording.from_activities import rows_of

STEPS = 3


def _in_place(gpu, model, states):
    for name in model.names:
        gpu.work_on_host(1e-6)
        arrays = [model.weights[name], states[name]]
        gpu.launch("update", duration=1e-5, reads=[model.gradients[name]], writes=arrays)


def _at_once(gpu, model, states):
    """Compute an intermediate value of all parameters, then update them."""
    gpu.work_on_host(1e-6)
    roots = [gpu.empty(weight.nbytes) for weight in model.weights.values()]
    gpu.launch("root", duration=1e-5, reads=[*states.values()], writes=roots)
    gpu.launch("update", duration=1e-5, reads=roots, writes=[*model.weights.values()])


def _with_two(gpu, model, states):
    """Compute two intermediate values of all parameters."""
    gpu.work_on_host(1e-6)
    sizes = [weight.nbytes for weight in model.weights.values()]
    roots = [*map(gpu.empty, sizes)]
    gpu.launch("root", duration=1e-5, reads=[*states.values()], writes=roots)
    scaled = [*map(gpu.empty, sizes)]
    gpu.launch("scale", duration=1e-5, reads=[*model.gradients.values()], writes=scaled)
    gpu.launch("update", duration=1e-5, reads=[*roots, *scaled], writes=[*model.weights.values()])


def _in_turn(gpu, model, states):
    """Update one parameter after the other; a variable has its array until it gets the next."""
    for name in model.names:
        gpu.work_on_host(1e-6)
        root = gpu.empty(model.weights[name].nbytes)
        gpu.launch("root", duration=1e-5, reads=[states[name]], writes=[root])
        gpu.launch("update", duration=1e-5, reads=[root], writes=[model.weights[name]])


def _zero(gpu, model):
    for gradient in model.gradients.values():
        if gradient is not None:
            gpu.launch("zero", duration=1e-6, writes=[gradient])


def _drop(gpu, model):
    gpu.work_on_host(1e-6)
    model.gradients = dict.fromkeys(model.names)


in_place, zero, drop = (named(each, "optimizer") for each in (_in_place, _zero, _drop))
in_turn_of = partial(step_of, _in_turn, kind="_single_tensor")


def _loss(gpu):
    """Compute a loss with an array that is as large as all activations."""
    gpu.work_on_host(1e-6)
    logits = gpu.empty(32 * MIB)
    gpu.launch("loss", duration=1e-5, writes=[logits])


loss = named(_loss, "forward loss")


def trains(*, step=in_place, passes=1, zero_grad="drop", size=8 * MIB):
    """Return a program whose peak is in the loss of the forward pass, or in the step."""

    def program(gpu):
        model = Model(gpu, size=size)
        states = {name: gpu.empty(MIB) for name in model.names}
        for _ in range(STEPS):
            for _ in range(passes):
                x = gpu.empty(size)
                gpu.launch("load", duration=1e-4, writes=[x])
                output = model.forward(x)
                if size > MIB:
                    loss(gpu)
                if zero_grad == "late":
                    drop(gpu, model)
                model.backward(output)
                del output, x
            step(gpu, model, states)
            if zero_grad == "zero":
                zero(gpu, model)
            elif zero_grad == "drop":
                drop(gpu, model)

    return program


# With the peak in the step.
steps = partial(trains, size=512)


@pytest.mark.parametrize("optimizer", ["Adam", "AdamW", "SGD"])
def test_temporaries_of_a_step_are_found_and_none_save_what_was_predicted(optimizer):
    before, after = steps(step=step_of(_at_once, optimizer)), steps()
    (finding,) = found(before, "R53")

    assert finding.saved_bytes == saved(before, after)
    assert finding.title == "4.00 MiB of the peak are temporary arrays of the optimizer's step."
    assert finding.certainty == "likely"
    assert "with `fused=True`, which needs no such arrays, or with `foreach=" in finding.change
    assert found(after, "R53") == []


def test_a_step_in_turn_can_only_be_fused():
    before, after = steps(step=in_turn_of("Adam")), steps()
    (finding,) = found(before, "R53")

    assert finding.saved_bytes == saved(before, after)
    assert "of all parameters at once" not in finding.reason
    assert finding.change == ("Create the optimizer with `fused=True`, which needs no such arrays.")


@pytest.mark.parametrize("optimizer", ["Adagrad", "RMSprop"])
def test_what_has_no_fused_form_updates_one_parameter_at_a_time(optimizer):
    before, after = steps(step=step_of(_at_once, optimizer)), steps(step=in_turn_of(optimizer))
    (finding,) = found(before, "R53")

    assert finding.saved_bytes == saved(before, after) == 2 * MIB
    assert finding.change == (
        "Create the optimizer with `foreach=False`, which needs them for one parameter at a time "
        f"but launches more kernels. PyTorch has no fused {optimizer} for CUDA."
    )
    assert found(after, "R53") == []


@pytest.mark.parametrize(("source", "left"), [("numerator = torch._foreach_mul(", 2), ("", 4)])
def test_of_two_values_of_each_parameter_those_stay_that_updates_in_turn_have(source, left):
    recording = recorded(steps(step=step_of(_with_two, "Adagrad")))
    frames = recording.tables["frames"].to_pylist()
    lines = sorted({row["line"] for row in frames if row["name"] == "_multi_tensor_adagrad"})
    # Before those of the last two launches, that of the allocations.
    scaled = lines[-3]
    for row in frames:
        row["source"] = source if row["line"] == scaled else row["source"]
    tables = {**recording.tables, "frames": rows_of("frames", frames)}
    marked = Recording(tables, recording.manifest)
    (finding,) = [each for each in findings(marked, small=True) if each.rule == "R53"]

    assert finding.saved_bytes == (8 - left) * MIB


def test_of_an_unknown_optimizer_no_option_is_named():
    (finding,) = found(steps(step=step_of(_at_once, "")), "R53")

    assert finding.title.startswith("4.00 MiB")
    assert finding.certainty == "possible"
    assert "fused" not in finding.change
    assert "foreach" not in finding.change


@pytest.mark.parametrize("zero_grad", ["zero", "late"])
def test_gradients_that_wait_for_the_next_pass_are_found_and_none_save_what_was_predicted(
    zero_grad,
):
    before, after = trains(zero_grad=zero_grad), trains()
    (finding,) = found(before, "R53")

    assert finding.saved_bytes == saved(before, after) == 4 * MIB
    assert finding.title == (
        "4.00 MiB of gradients stay allocated at the peak after the optimizer has used them."
    )
    assert found(after, "R53") == []


def test_gradients_that_several_passes_add_to_are_needed():
    assert found(trains(passes=2), "R53") == []


def test_nothing_is_said_of_temporaries_that_are_not_at_the_peak():
    assert found(trains(step=step_of(_at_once, "Adam")), "R53") == []
