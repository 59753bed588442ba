"""R53: memory of an optimizer's step."""

import pytest

from tests.unit.advice.training import MIB, Model, found, named, saved

STEPS = 3


def _step(gpu, model, *, foreach, states):
    temporaries = []
    for name in model.names:
        weight, gradient, state = model.weights[name], model.gradients[name], states[name]
        gpu.work_on_host(1e-6)
        written = [gpu.empty(weight.nbytes)] if foreach else []
        gpu.launch("update", duration=1e-5, reads=[gradient], writes=[weight, state, *written])
        temporaries += written
        del written
    temporaries.clear()


def _zero(gpu, model):
    for gradient in model.gradients.values():
        if gradient is not None:
            gpu.launch("zero", duration=1e-6, writes=[gradient])


def _drop(gpu, model):
    gpu.work_on_host(1e-6)
    model.gradients = dict.fromkeys(model.names)


step, zero, drop = (named(each, "optimizer") for each in (_step, _zero, _drop))


def _loss(gpu):
    """Compute a loss with an array that is as large as all activations."""
    gpu.work_on_host(1e-6)
    logits = gpu.empty(32 * MIB)
    gpu.launch("loss", duration=1e-5, writes=[logits])


loss = named(_loss, "forward loss")


def trains(*, foreach=False, passes=1, zero_grad="drop", size=8 * MIB):
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
            step(gpu, model, foreach=foreach, states=states)
            if zero_grad == "zero":
                zero(gpu, model)
            elif zero_grad == "drop":
                drop(gpu, model)

    return program


def test_temporaries_of_a_step_are_found_and_none_save_what_was_predicted():
    before, after = trains(foreach=True, size=MIB // 4), trains(size=MIB // 4)
    (finding,) = found(before, "R53")

    assert finding.saved_bytes == saved(before, after)
    assert finding.title == "4.00 MiB of the peak are temporary arrays of the optimizer's step."
    assert "fused=True" in finding.change
    assert found(after, "R53") == []


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
    assert found(trains(foreach=True), "R53") == []
