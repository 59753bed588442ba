"""R69: models that the program does not use any more are still allocated at the peak."""

import pytest

from tests.unit.advice.training import MIB, Model, found, named, recorded, saved

FOLDS, STEPS = 4, 3


def _step(gpu, model, states):
    for name in model.names:
        gpu.work_on_host(1e-6)
        if name not in states:
            states[name] = gpu.empty(2 * MIB)
        arrays = [model.weights[name], states[name]]
        gpu.launch("update", duration=1e-5, reads=[model.gradients[name]], writes=arrays)


step = named(_step, "optimizer")


def fit(gpu, model, states, *, stream=None):
    for _ in range(STEPS):
        x = gpu.empty(8 * MIB)
        gpu.launch("load", duration=1e-4, writes=[x])
        output = model.forward(x)
        del x
        if stream is not None:
            beside(gpu, model, stream)
        model.backward(output)
        del output
        step(gpu, model, states)
    gpu.synchronize()


def beside(gpu, model, stream):
    """Read the parameters on another stream, as cuDNN does for recurrent layers."""
    joined = gpu.Event()
    with stream:
        gpu.launch("rnn", duration=1e-5, reads=[*model.weights.values()])
        joined.record()
    joined.synchronize()


def folds(*, keep=None, stream=False, use=None):
    """Return a program that trains a model in each fold, and keeps what `keep` returns of it."""

    def program(gpu):
        other = gpu.Stream() if stream else None
        results = []
        for _ in range(FOLDS):
            model, states = Model(gpu), {}
            fit(gpu, model, states, stream=other)
            results.append(None if keep is None else keep(model, states))
            del model, states
        if use is not None:
            use(gpu, results)

    return program


def all_of(model, states):
    return model, states


def model_of(model, _):
    return model


def parameters_of(model, _):
    model.gradients.clear()
    return model


def predict(gpu, results):
    """Predict with all models together."""
    x = gpu.empty(8 * MIB)
    gpu.launch("load", duration=1e-4, writes=[x])
    for model, _ in results:
        model.forward(x, gradients=False)


@pytest.mark.parametrize("stream", [False, True])
def test_what_earlier_models_hold_is_what_dropping_them_saves(stream):
    before, after = folds(keep=all_of, stream=stream), folds(stream=stream)
    (finding,) = found(before, "R69")

    assert finding.saved_bytes == saved(before, after) == (FOLDS - 1) * 16 * MIB
    assert finding.title == (
        "Models that are no longer used hold 48.0 MiB at the peak: parameters, gradients and "
        "optimizer states."
    )
    assert [line.amount for line in finding.lines][:2] == [
        "24.0 MiB in 12 arrays",
        "12.0 MiB in 12 arrays",
    ]
    assert found(after, "R69") == []


def test_other_findings_do_not_say_the_same_again():
    first, *others = recorded(folds(keep=all_of)).findings()

    assert first.rule == "R69"
    named_first = {line.site for line in first.lines}
    assert named_first.isdisjoint(line.site for each in others for line in each.lines[:1])


def test_parameters_alone_may_be_kept_for_a_reason():
    assert found(folds(keep=parameters_of), "R69") == []


def test_models_that_are_used_together_at_last_are_needed():
    """All but their optimizers, which are a single kind, and their gradients."""
    (finding,) = found(folds(keep=all_of, use=predict), "R69")

    assert finding.title.startswith("Models that are no longer trained hold ")
    assert "gradients and optimizer states" in finding.title
    assert "parameters" not in finding.title


def keeps_the_best(*, keep):
    """Return a program that keeps the best model so far: none is better than the first."""

    def program(gpu):
        best = None
        for _ in range(FOLDS):
            model, states = Model(gpu), {}
            fit(gpu, model, states)
            best = best or keep(model, states)
            del model, states

    return program


def test_a_single_earlier_model_may_be_the_best_so_far():
    (finding,) = found(keeps_the_best(keep=all_of), "R69")

    assert finding.title == (
        "Models that are no longer trained hold 12.0 MiB at the peak: gradients and optimizer "
        "states."
    )
    assert found(keeps_the_best(keep=model_of), "R69") == []


def trains_two(gpu):
    """Both models are used in each step."""
    models = [(Model(gpu), {}) for _ in range(2)]
    for _ in range(STEPS):
        for model, states in models:
            fit(gpu, model, states)


def test_models_that_are_trained_in_turn_are_used():
    assert found(trains_two, "R69") == []
