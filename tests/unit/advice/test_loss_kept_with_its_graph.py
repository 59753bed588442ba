"""R50: losses or outputs that are kept with their graphs."""

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.test_inference_with_gradients import installed_model
from tests.unit.advice.training import MIB, Model, found, recorded, saved

BATCHES = 6


def evaluates(keep, *, gradients=True, backward=False):
    """Return a program that keeps something of the output of each of some batches."""

    def program(gpu):
        model, kept = Model(gpu), []
        x = gpu.empty(8 * MIB)
        for _ in range(BATCHES):
            gpu.launch("load", duration=1e-4, writes=[x])
            kept.append(keep(model.forward(x, gradients=gradients)))
        for each in kept if backward else ():
            model.backward(each)
        kept.clear()

    return program


with_graph = evaluates(lambda output: output)
without_gradients = evaluates(lambda _: None, gradients=False)


def test_graphs_that_are_kept_are_found_and_no_grad_saves_what_was_predicted():
    finding = findings(recorded(with_graph))[0]

    assert finding.rule == "R50"
    assert finding.saved_bytes == saved(with_graph, without_gradients)
    assert finding.saved_bytes == (BATCHES * 4 - 2) * 8 * MIB
    assert finding.title == (
        "192 MiB of activations stay from 6 forward passes, whose losses or outputs are kept with "
        "their graphs."
    )
    assert finding.certainty == "likely"
    assert len(finding.lines) == 4
    assert found(evaluates(lambda _: None), "R50") == found(without_gradients, "R50") == []


def retains(*, keep):
    """Return a program that keeps the graph of each batch after its backward pass."""

    def program(gpu):
        model, kept = Model(gpu), []
        x = gpu.empty(8 * MIB)
        for _ in range(BATCHES):
            gpu.launch("load", duration=1e-4, writes=[x])
            output = model.forward(x)
            model.backward(output, retain=True)
            if keep:
                kept.append(output)
        kept.clear()

    return program


def test_of_graphs_that_backward_passes_use_those_of_two_iterations_stay():
    before, after = retains(keep=True), retains(keep=False)
    (finding,) = found(before, "R50")

    # The last backward pass has two arrays more.
    assert finding.saved_bytes == saved(before, after) == (4 * 4 + 2) * 8 * MIB


def in_one_line(*, gradients=True, backward=False):
    """Return a program in which a line of a library's model is all that the loop does."""

    def program(gpu):
        model, kept = installed_model()(gpu), []
        x = gpu.empty(8 * MIB)
        gpu.launch("load", duration=1e-4, writes=[x])
        for _ in range(BATCHES):
            kept.append(model.forward(x, gradients=gradients))
            if not gradients:
                kept.clear()
        for each in kept if backward else ():
            model.backward(each)
        kept.clear()

    return program


def test_a_line_that_a_loop_repeats_alone_frees_arrays_within_its_run():
    before, after = in_one_line(), in_one_line(gradients=False)
    (finding,) = found(before, "R50")

    assert finding.saved_bytes == saved(before, after) == (BATCHES * 4 - 2) * 8 * MIB


@pytest.mark.parametrize("gradients", [True, False])
def test_a_line_that_a_loop_repeats_alone_may_be_needed_by_backward_passes(gradients):
    assert found(in_one_line(gradients=gradients, backward=gradients), "R50") == []


def joins_outputs(layers):
    """Return a program that joins the outputs that it has kept with their graphs."""

    def program(gpu):
        model, kept = Model(gpu, [str(each) for each in range(layers)]), []
        x = gpu.empty(8 * MIB)
        for _ in range(BATCHES):
            gpu.launch("load", duration=1e-4, writes=[x])
            kept.append(model.forward(x))
        joined = gpu.empty(MIB)
        for each in kept:
            gpu.launch("join", duration=1e-4, reads=[each.value], writes=[joined])
        kept.clear()

    return program


def test_outputs_that_are_joined_at_last_do_not_need_their_graphs():
    finding = findings(recorded(joins_outputs(12)))[0]

    assert finding.rule == "R50"
    assert finding.saved_bytes >= 4 * 11 * 8 * MIB


def test_much_of_a_line_that_is_used_at_last_is_no_graph_that_is_kept():
    assert found(joins_outputs(4), "R50") == []


def test_graphs_that_backward_passes_use_later_are_needed():
    assert found(evaluates(lambda output: output, backward=True), "R50") == []


def test_results_without_gradients_are_no_graphs():
    program = evaluates(lambda output: output, gradients=False)

    assert found(program, "R50") == []
    assert found(program, "R09") != []


def test_a_detached_result_of_a_forward_pass_is_no_graph():
    assert found(evaluates(lambda output: output.value), "R50") == []
