"""R58: the graphs of several forward passes are alive until one backward pass."""

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.training import MIB, Model, found, named, recorded, saved

STEPS = 3
MICRO_BATCHES = 4
SIZE = 8 * MIB


def _loss(gpu, read):
    loss = gpu.empty(4)
    gpu.launch("loss", duration=1e-5, reads=read, writes=[loss])
    return loss


loss_of = named(_loss, "forward")


def _backward(model, output):
    model.backward(output)


backward = named(_backward, "backward")


def _step(gpu, gradients):
    gpu.launch("adam", duration=1e-4, reads=gradients, writes=[])


optimize = named(_step, "optimizer")


def _forward(gpu, model, batches):
    graphs = []
    for x in batches:
        graphs.append(model(x))
        loss_of(gpu, [graphs[-1].value])
        graphs[-1].value = None
    return graphs


call_all = named(_forward, "Module._wrapped_call_impl")


def loads(gpu):
    x = gpu.empty(SIZE)
    gpu.launch("load", duration=1e-4, writes=[x])
    return x


def _sample(gpu, arrays):
    gpu.launch("index_elementwise_kernel", duration=1e-5, reads=arrays)


sample = named(_sample, "sample")


def accumulates(*, at_once, steps=STEPS, samples_again=()):
    """Return a program that adds up the gradients of some batches.

    Args:
        at_once: Whether there is one backward pass for all of them.
        steps: The number of rounds.
        samples_again: The rounds in which the next sample also names an array of the first batch.
    """

    def program(gpu):
        model = Model(gpu)
        for step in range(steps):
            graphs, total = [], gpu.empty(4)
            for x in [loads(gpu) for _ in range(MICRO_BATCHES)]:
                output = model(x)
                if graphs and step in samples_again:
                    sample(gpu, [graphs[0].graph[0][1]])
                total = loss_of(gpu, [output.value, total])
                output.value = None
                if at_once:
                    graphs.append(output)
                else:
                    backward(model, output)
                del output
            while graphs:
                backward(model, graphs.pop())
            optimize(gpu, [each for each in model.gradients.values() if each])

    return program


def batches_of_sizes(sizes, *, at_once):
    """Return a program whose batches have activations of some sizes for each layer."""

    def program(gpu):
        model = Model(gpu)
        for _ in range(STEPS):
            graphs = []
            for model.size in sizes:
                x = gpu.empty(MIB // 4)
                gpu.launch("load", duration=1e-4, writes=[x])
                graphs.append(model(x))
                del x
                loss_of(gpu, [graphs[-1].value])
                graphs[-1].value = None
                if not at_once:
                    backward(model, graphs.pop())
            while graphs:
                backward(model, graphs.pop())
            optimize(gpu, [each for each in model.gradients.values() if each])

    return program


def runs_a_recurrent_cell(gpu):
    cell = Model(gpu)
    for _ in range(STEPS):
        outputs, state = [], loads(gpu)
        for _ in range(MICRO_BATCHES):
            outputs.append(cell(state))
            state = outputs[-1].value
            loss_of(gpu, [state])
        del state
        while outputs:
            backward(cell, outputs.pop())


def compares_two_batches(gpu):
    model = Model(gpu)
    for _ in range(STEPS):
        left = model(loads(gpu))
        norm = loss_of(gpu, [left.value])
        right = model(loads(gpu))
        loss_of(gpu, [left.value, right.value, norm])
        backward(model, right)
        backward(model, left)


def _joined(gpu, scalar):
    gpu.launch("CatArrayBatchedCopy", duration=1e-5, reads=[scalar])


join = named(_joined, "forward")


def joins_two_batches(gpu):
    """Train on outputs that one kernel gets as a table of pointers."""
    model = Model(gpu)
    for _ in range(STEPS):
        left = model(loads(gpu))
        norm = loss_of(gpu, [left.value])
        right = model(loads(gpu))
        join(gpu, norm)
        backward(model, right)
        backward(model, left)


def trains_two_models(gpu):
    generator, judge = Model(gpu, ("up.0", "up.1")), Model(gpu, ("down.0", "down.1"))
    for _ in range(STEPS):
        made = generator(loads(gpu))
        loss_of(gpu, [made.value])
        judged = judge(made.value)
        loss_of(gpu, [judged.value])
        backward(judge, judged)
        backward(generator, made)


def calls_a_module_within_another(gpu):
    model = Model(gpu)

    for _ in range(STEPS):
        graphs = call_all(gpu, model, [loads(gpu) for _ in range(MICRO_BATCHES)])
        while graphs:
            backward(model, graphs.pop())


def evaluates_before_it_trains(gpu):
    model = Model(gpu)
    for _ in range(STEPS):
        for _ in range(MICRO_BATCHES):
            loss_of(gpu, [model(loads(gpu), gradients=False).value])
        output = model(loads(gpu))
        loss_of(gpu, [output.value])
        backward(model, output)


def checkpoints(gpu):
    model = Model(gpu)
    for _ in range(STEPS):
        inputs = [loads(gpu)]
        for name in model.names:
            inputs.append(model(inputs[-1], gradients=False, names=[name]).value)
        loss_of(gpu, [inputs.pop()])
        for name in reversed(model.names):
            again = model(inputs.pop(), names=[name])
            model.backward(again, names=[name])


def test_one_backward_pass_for_several_is_found_and_one_for_each_saves_what_was_predicted():
    before, after = accumulates(at_once=True), accumulates(at_once=False)
    finding = findings(recorded(before))[0]

    assert finding.rule == "R58"
    measured = saved(before, after)
    assert abs(finding.saved_bytes - measured) <= 0.02 * measured
    assert finding.title == (
        "128 MiB of the peak are activations of 4 forward passes, which all wait for one backward "
        "pass."
    )
    assert finding.reason.startswith("`output = model(x)` calls the model 4 times before ")
    assert found(after, "R58") == []


@pytest.mark.parametrize("sizes", [(8, 2, 4), (2, 8, 4), (8, 4, 4, 4), (8, 6, 6, 6), (4, 4, 8)])
def test_the_largest_pass_need_not_be_the_last(sizes):
    sizes = [size * MIB for size in sizes]
    before, after = (batches_of_sizes(sizes, at_once=at_once) for at_once in (True, False))
    (finding,) = found(before, "R58")

    measured = saved(before, after)
    assert 0 <= measured - finding.saved_bytes <= 0.07 * measured


def test_what_a_line_names_in_one_of_many_rounds_is_left_over_from_earlier_work():
    once, again = (
        found(accumulates(at_once=True, steps=5, samples_again=rounds), "R58")
        for rounds in ([0], range(5))
    )

    expected = found(accumulates(at_once=True, steps=5), "R58")
    assert [each.saved_bytes for each in once] == [each.saved_bytes for each in expected] != []
    assert again == []


def test_what_the_next_pass_reads_is_needed():
    assert found(runs_a_recurrent_cell, "R58") == []


def test_outputs_that_a_loss_compares_are_needed():
    assert found(compares_two_batches, "R58") == []
    assert found(joins_two_batches, "R58") == []


def test_two_models_are_no_passes_of_one():
    assert found(trains_two_models, "R58") == []


def test_a_module_that_another_one_calls_is_a_part_of_one_pass():
    assert found(calls_a_module_within_another, "R58") == []


def test_passes_without_gradients_have_no_graph():
    assert found(evaluates_before_it_trains, "R58") == []


def test_each_checkpointed_part_has_a_backward_pass_of_its_own():
    assert found(checkpoints, "R58") == []
