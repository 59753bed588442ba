"""R51: inference with gradients enabled."""

from pathlib import Path

from gpuviz.advice.findings import findings
from tests.unit.advice import training
from tests.unit.advice.training import MIB, Model, found, recorded, saved

BATCHES = 4


def serves(*, gradients):
    """Return a program that asks a model for some results."""

    def program(gpu):
        model = Model(gpu)
        x = gpu.empty(8 * MIB)
        for _ in range(BATCHES):
            gpu.launch("load", duration=1e-4, writes=[x])
            output = model.forward(x, gradients=gradients)
            gpu.launch("read", duration=1e-5, reads=[output.value])
            del output

    return program


def holds_the_last(*, gradients):
    """Return a program whose variable holds an output until the next one, and the last one on."""
    held = {}

    def program(gpu):
        model = Model(gpu)
        x = gpu.empty(8 * MIB)
        for _ in range(BATCHES):
            gpu.launch("load", duration=1e-4, writes=[x])
            held["output"] = model.forward(x, gradients=gradients)
            gpu.launch("read", duration=1e-5, reads=[held["output"].value])

    return program


def ends_in_a_training_step(outputs):
    """Return a program that adds to a list what another line's passes give, and ends in them.

    A backward pass is to follow, and they reach the peak.
    """

    def program(gpu):
        serves(gradients=True)(gpu)
        model, x = Model(gpu), gpu.empty(8 * MIB)
        outputs.extend(model.forward(x) for _ in range(3))

    return program


def installed_model():
    """Return `Model` as if it were a library's, none of whose lines are the program's."""
    source, names = Path(training.__file__).read_text(encoding="utf-8"), {}
    exec(compile(source, "/env/lib/python3/site-packages/net.py", "exec"), names)  # noqa: S102
    return names["Model"]


def serves_on_one_line(*, gradients):
    def program(gpu):
        model = installed_model()(gpu)
        x = gpu.empty(8 * MIB)

        def read(output):
            gpu.launch("read", duration=1e-5, reads=[output.value])

        for _ in range(BATCHES):
            gpu.launch("load", duration=1e-4, writes=[x])
            read(model.forward(x, gradients=gradients))

    return program


def collects_outputs(*, gradients):
    """Return a program whose list of outputs a kernel reads through a table of pointers at last."""

    def program(gpu):
        model = Model(gpu)
        for _ in range(BATCHES):
            outputs = []
            for _ in range(BATCHES):
                x = gpu.empty(8 * MIB)
                gpu.launch("load", duration=1e-4, writes=[x])
                outputs.append(model.forward(x, gradients=gradients))
                del x
            for each in outputs:
                gpu.launch("mean", duration=1e-5, reads=[each.value])
            gpu.launch("CatArrayBatchedCopy", duration=1e-5, reads=[model.weights["0"]])
            del each
            outputs.clear()

    return program


def trains(gpu):
    model = Model(gpu)
    x = gpu.empty(8 * MIB)
    for _ in range(BATCHES):
        gpu.launch("load", duration=1e-4, writes=[x])
        model.backward(model.forward(x))


def keeps_hidden_states(gpu):
    model = Model(gpu)
    x = gpu.empty(8 * MIB)
    for _ in range(BATCHES):
        gpu.launch("load", duration=1e-4, writes=[x])
        states, state = [], x
        for name in model.names:
            state = model.forward(state, gradients=False, names=[name]).value
            states.append(state)
        del state
        states.clear()


def test_activations_of_inference_are_found_and_no_grad_saves_what_was_predicted():
    before, after = serves(gradients=True), serves(gradients=False)
    finding = findings(recorded(before))[0]

    assert finding.rule == "R51"
    assert finding.saved_bytes == saved(before, after) == 2 * 8 * MIB
    assert finding.title == (
        "16.0 MiB of the peak are activations that autograd keeps, and no backward pass follows."
    )
    assert finding.reason.startswith("4 times the output of a forward pass was released")
    assert len(finding.lines) == 2
    assert found(after, "R51") == []


def leaves_small_graphs(gpu):
    """Release graphs of three small arrays as well, as a training does with temporary ones."""
    small = Model(gpu, size=512)
    x = gpu.empty(512)
    for _ in range(3 * BATCHES):
        gpu.launch("load", duration=1e-6, writes=[x])
        small.forward(x)
    serves(gradients=True)(gpu)


def test_only_large_graphs_are_counted():
    (finding,) = found(leaves_small_graphs, "R51")

    assert finding.reason.startswith(f"{BATCHES} times the output of a forward pass was released")


def test_a_forward_pass_on_one_line_would_free_its_arrays_there():
    before, after = serves_on_one_line(gradients=True), serves_on_one_line(gradients=False)
    (finding,) = found(before, "R51")

    assert finding.saved_bytes == saved(before, after) == 2 * 8 * MIB
    assert found(after, "R51") == []


def test_the_graph_that_is_still_there_at_last_would_be_none_either():
    before, after = holds_the_last(gradients=True), holds_the_last(gradients=False)
    (finding,) = found(before, "R51")

    assert finding.saved_bytes == saved(before, after) > 2 * 8 * MIB
    assert found(after, "R51") == []


def test_passes_of_another_line_may_still_be_trained():
    outlive_the_recording = []

    assert found(ends_in_a_training_step(outlive_the_recording), "R51") == []


def test_outputs_that_the_program_keeps_would_stay():
    before, after = collects_outputs(gradients=True), collects_outputs(gradients=False)
    (finding,) = found(before, "R51")

    assert finding.certainty == "possible"
    # The graphs also keep the inputs of all batches but the one that runs.
    assert finding.saved_bytes == saved(before, after)
    assert len(finding.lines) == 4
    assert found(after, "R51") == []


def test_activations_that_a_backward_pass_frees_are_needed():
    assert found(trains, "R51") == []


def test_states_that_the_program_keeps_itself_are_no_graph():
    assert found(keeps_hidden_states, "R51") == []
