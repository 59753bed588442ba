"""R50: losses or outputs that are kept with their graphs."""

from gpuviz.advice.findings import findings
from tests.unit.advice.training import MIB, Model, found, recorded, saved

BATCHES = 6


def evaluates(keep, *, gradients=True, backward=False):
    """Return a program that keeps something of the output of each of some batches."""

    def program(gpu):
        model, kept = Model(gpu), []
        x = gpu.empty(8 * MIB)
        for _ in range(BATCHES):
            gpu.launch("load", duration=1e-4, writes=[x])
            output = model.forward(x, gradients=gradients)
            kept.append(keep(output))
        for each in kept if backward else ():
            model.backward(each)
        kept.clear()

    return program


with_graph = evaluates(lambda output: output)
detached = evaluates(lambda _: None)


def test_graphs_that_are_kept_are_found_and_detaching_saves_what_was_predicted():
    finding = findings(recorded(with_graph))[0]

    assert finding.rule == "R50"
    assert finding.saved_bytes == saved(with_graph, detached) == 4 * 4 * 8 * MIB
    assert finding.title == (
        "192 MiB of activations stay from 6 forward passes, whose losses or outputs are kept with "
        "their graphs."
    )
    assert finding.certainty == "likely"
    assert len(finding.lines) == 4
    assert found(detached, "R50") == []


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
