"""R59: a graph of autograd is kept after the backward pass that used it."""

from gpuviz.advice.findings import findings
from tests.unit.advice.training import MIB, Model, found, recorded, saved

STEPS = 4
SIZE = 8 * MIB
LAYERS = ("0", "1", "2", "3", "4", "5")


def loads(gpu):
    x = gpu.empty(SIZE)
    gpu.launch("load", duration=1e-4, writes=[x])
    return x


def trains_twice(*, retain):
    """Return a program with two models, of which the first one's graph stays for the second."""

    def program(gpu):
        first, second = Model(gpu, ("a", "b", "c", "d")), Model(gpu, ("e", "f", "g"))
        for _ in range(STEPS):
            x = loads(gpu)
            output = first(x)
            output.value = None
            first.backward(output, retain=retain)
            second.backward(second(x))
            del output

    return program


def backward_twice(gpu):
    """Train with two losses of one graph: the second backward pass frees it."""
    model = Model(gpu, LAYERS)
    for _ in range(STEPS):
        output = model(loads(gpu))
        model.backward(output, retain=True)
        model.backward(output)


def keeps_features(gpu):
    """Train, and keep the outputs of every other layer until the step has ended."""
    model, other = Model(gpu, LAYERS), Model(gpu, ("e", "f", "g"))
    for _ in range(STEPS):
        x = loads(gpu)
        output = model(x)
        features = [made for _, made in output.graph[::2]]
        model.backward(output)
        other.backward(other(x))
        features.clear()


def test_a_retained_graph_is_found_and_freeing_it_saves_what_was_predicted():
    before, after = trains_twice(retain=True), trains_twice(retain=False)
    finding = findings(recorded(before))[0]

    assert finding.rule == "R59"
    measured = saved(before, after)
    assert abs(finding.saved_bytes - measured) <= 0.02 * measured
    assert finding.title.endswith(
        " of the peak are activations of a graph that is kept after its backward pass."
    )
    assert finding.reason.startswith("4 times `")
    assert found(before, "R51") == []
    assert found(after, "R59") == []


def test_a_second_backward_pass_needs_the_graph():
    assert found(backward_twice, "R59") == []


def test_arrays_that_the_program_keeps_are_no_graph():
    assert found(keeps_features, "R59") == []
    assert found(keeps_features, "R51") == []
    assert found(keeps_features, "R45")
