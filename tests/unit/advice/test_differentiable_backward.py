"""R82: backward passes that autograd records, and that nothing differentiates."""

from functools import partial

import pytest

from gpuviz.advice.findings import findings
from gpuviz.recording import Recording
from tests.unit.advice.training import (
    MIB,
    Model,
    found,
    in_backward_pass,
    named,
    recorded,
    saved,
    step_of,
)
from tests.unit.recording.from_activities import rows_of

STEPS, SIZE = 4, 8 * MIB
LAYERS = ("0", "1", "2", "3", "4", "5")


def _work(gpu, name, reads, size):
    y = gpu.empty(size)
    gpu.work_on_host(1e-6)
    gpu.launch(name, duration=1e-4, reads=reads, writes=[y])
    return y


def _free(gpu, graph, made):
    gpu.work_on_host(1e-6)
    graph.pop()
    del made[:-1]


def gradients(gpu, model, graph, role, *, recomputes):
    """Return the gradients of the parameters, and what the backward pass makes on the way.

    Without ``create_graph=True``, it frees what it has used. It may compute a part of the forward
    pass again, with gradients.
    """
    again = model.forward(graph[0][0], again=True) if recomputes else None
    made, found_gradients = [], []
    for layer in reversed(LAYERS):
        run = named(_work, f"{role} {layer}")
        saved_input, output = graph[LAYERS.index(layer)]
        made.append(run(gpu, "below", [saved_input, output, *made[-1:]], SIZE))
        reads = [made[-1], saved_input, model.weights[layer]]
        found_gradients.append(run(gpu, "gradient", reads, MIB))
        if role == "backward":
            del saved_input, output
            named(_free, f"backward {layer}")(gpu, graph, made)
    del again
    return found_gradients, made


def differentiate(gpu, arrays, role="backward 0"):
    """Use the graph of a backward pass."""
    for _ in LAYERS:
        named(_work, role)(gpu, "second", arrays, MIB)


def _call(function, *arguments, **options):
    return function(*arguments, **options)


first_pass = named(_call, "forward first")


def trains(*, create_graph, differentiates=False, recomputes=False):
    """Return a program whose backward passes are recorded by autograd, or are not."""

    def program(gpu):
        model = Model(gpu, LAYERS)
        for _ in range(STEPS):
            x = gpu.empty(SIZE)
            gpu.launch("load", duration=1e-4, writes=[x])
            graph = model(x).graph
            del x
            role = "again" if create_graph else "backward"
            run = in_backward_pass(gradients)
            arrays, made = run(gpu, model, graph, role, recomputes=recomputes)
            if differentiates:
                named(_work, "forward norm")(gpu, "norm", arrays, MIB)
                in_backward_pass(differentiate)(gpu, made)
            step_of(_work, "SGD")(gpu, "step", arrays, MIB)
            del arrays, made, graph

    return program


def test_a_graph_of_backward_passes_is_found_and_leaving_it_out_saves_what_was_predicted():
    before, after = trains(create_graph=True), trains(create_graph=False)
    finding = findings(recorded(before))[0]

    measured = saved(before, after)
    assert finding.rule == "R82"
    assert finding.saved_bytes == pytest.approx(measured, rel=0.05)
    assert finding.title.endswith(
        " of the peak belong to backward passes that autograd records, and that nothing "
        "differentiates."
    )
    assert "runs 4 backward passes with `create_graph=True`" in finding.reason
    assert found(after, "R82") == []


@pytest.mark.parametrize("differentiates", [False, True])
def test_a_pass_that_is_recorded_keeps_its_graph_without_being_told_to(differentiates):
    assert found(trains(create_graph=True, differentiates=differentiates), "R59") == []


def test_a_second_backward_pass_needs_the_graph_of_the_first():
    assert found(trains(create_graph=True, differentiates=True), "R82") == []


def test_what_checkpoints_compute_again_is_no_graph_of_a_backward_pass():
    assert found(trains(create_graph=False, recomputes=True), "R82") == []


@pytest.mark.parametrize(("role", "count"), [("backward 0", 1), ("backward first", 0)])
def test_a_second_backward_pass_may_need_no_array_of_the_first(role, count):
    def program(gpu):
        model = Model(gpu, LAYERS)
        for _ in range(STEPS):
            graph = model(gpu.empty(SIZE)).graph
            run = in_backward_pass(gradients)
            arrays, made = first_pass(run, gpu, model, graph, "again", recomputes=False)
            in_backward_pass(differentiate)(gpu, graph[0], role)
            step_of(_work, "SGD")(gpu, "step", arrays, MIB)
            del arrays, made, graph

    assert len(found(program, "R82")) == count


def test_a_pass_may_differentiate_the_one_before_it_in_the_same_line():
    def program(gpu):
        model = Model(gpu, LAYERS)
        for _ in range(STEPS):
            graph = model(gpu.empty(SIZE)).graph
            passes = [
                partial(gradients, gpu, model, graph, "again", recomputes=False),
                partial(differentiate, gpu, graph[0], "again first"),
            ]
            made = [first_pass(in_backward_pass(each)) for each in passes]
            named(_work, "forward next")(gpu, "next", graph[0], 64 * MIB)
            del made, graph

    assert found(program, "R82") == []


def test_a_backward_pass_with_unknown_call_stacks_may_need_the_graph_of_another():
    recording = recorded(trains(create_graph=True, differentiates=True))
    second = {
        row["id"]
        for row in recording.tables["stacks"].to_pylist()
        if row["phase"] == "backward" and not row["differentiable"]
    }
    calls = [
        row | {"stack": 0} if row["stack"] in second else row
        for row in recording.tables["api_calls"].to_pylist()
    ]
    tables = {**recording.tables, "api_calls": rows_of("api_calls", calls)}
    unknown = Recording(tables, recording.manifest)

    assert "R82" not in {each.rule for each in findings(unknown, small=True)}
