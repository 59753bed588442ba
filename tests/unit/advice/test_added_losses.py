"""R58 without modules: rounds of a loop that add up their losses before one backward pass."""

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.training import MIB, Model, found, named, recorded, saved

STEPS = 3
ROUNDS = 4
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >"
SCALE = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::BUnaryFunctor<float, float, "
    "float, at::native::binary_internal::MulFunctor<float> > >"
)
LOG = "void at::native::vectorized_elementwise_kernel<4, at::native::log_kernel_cuda>"


def _number(gpu, kernel, reads):
    gpu.work_on_host(1e-6)
    result = gpu.empty(4)
    gpu.launch(kernel, duration=1e-5, reads=reads, writes=[result])
    return result


number = named(_number, "forward")


def _array(gpu, kernel, reads):
    result = gpu.empty(8 * MIB)
    gpu.launch(kernel, duration=1e-4, reads=reads, writes=[result])
    return result


differentiable = named(_array, "forward")


def _backward(model, graphs):
    while graphs:
        model.backward(graphs.pop())


backward = named(_backward, "backward")


def _step(gpu, gradients):
    gpu.launch("adam", duration=1e-4, reads=gradients, writes=[])


optimize = named(_step, "optimizer")


def loads(gpu):
    x = gpu.empty(MIB // 4)
    gpu.launch("load", duration=1e-4, writes=[x])
    return x


def train(gpu, run):
    model = Model(gpu)
    for _ in range(STEPS):
        run(gpu, model)
        optimize(gpu, [each for each in model.gradients.values() if each])


def adds_up(gpu, model, *, last=SCALE, each=ADD, uses=()):
    graphs, total, kept = [], gpu.empty(4), []
    for _ in range(ROUNDS):
        graphs.append(model.forward(loads(gpu)))
        loss = number(gpu, "nll_loss", [graphs[-1].value, *kept])
        total = number(gpu, each, [total, loss])
        kept = [use(graphs[-1]) for use in uses]
        graphs[-1].value = None
    total = number(gpu, last, [total])
    del kept
    backward(model, graphs)


def sums_a_list(gpu, model):
    graphs, losses = [], []
    for _ in range(ROUNDS):
        graphs.append(model.forward(loads(gpu)))
        losses.append(number(gpu, "nll_loss", [graphs[-1].value]))
        graphs[-1].value = None
    total = gpu.empty(4)
    for loss in losses:
        total = number(gpu, ADD, [total, loss])
    backward(model, graphs)


def one_by_one(gpu, model):
    total = gpu.empty(4)
    for _ in range(ROUNDS):
        output = model.forward(loads(gpu))
        loss = number(gpu, "nll_loss", [output.value])
        output.value = None
        total = number(gpu, ADD, [total, loss])
        backward(model, [output])
        del output


def shares_an_encoder(gpu, model):
    features, graphs, total = model.forward(loads(gpu)), [], gpu.empty(4)
    value, features.value = features.value, None
    for _ in range(ROUNDS):
        graphs.append(model.forward(value))
        loss = number(gpu, "nll_loss", [graphs[-1].value])
        total = number(gpu, ADD, [total, loss])
        graphs[-1].value = None
    del value
    backward(model, [features, *graphs])


def unrolls_a_cell(gpu, model):
    graphs, state, total = [], loads(gpu), gpu.empty(4)
    for _ in range(ROUNDS):
        graphs.append(model.forward(state))
        loss = number(gpu, "nll_loss", [graphs[-1].value])
        total = number(gpu, ADD, [total, loss])
        state, graphs[-1].value = graphs[-1].value, None
    del state
    backward(model, graphs)


def contrasts(gpu, model):
    graphs, total = [], gpu.empty(4)
    for _ in range(ROUNDS):
        graphs.append(model.forward(loads(gpu)))
        norm = number(gpu, "norm", [graphs[-1].value])
        total = number(gpu, ADD, [total, norm])
    compared = differentiable(gpu, "logits", [each.value for each in graphs])
    number(gpu, ADD, [compared, total])
    for each in graphs:
        each.value = None
    backward(model, graphs)


def leaves_out(gpu, model, *, which):
    """Train without the largest loss, which shows only after the loop."""
    graphs, losses = [], []
    for _ in range(ROUNDS):
        graphs.append(model.forward(loads(gpu)))
        losses.append(number(gpu, "nll_loss", [graphs[-1].value]))
        graphs[-1].value = None
        gpu.copy_to_host(losses[-1])
    del losses[which], graphs[which]
    total = losses[0]
    for loss in losses[1:]:
        total = number(gpu, ADD, [total, loss])
    backward(model, graphs)


def _free(gpu, graph):
    while graph:
        kept = graph.pop()
        gpu.launch("gemm_grad", duration=2e-4, reads=kept)
        kept.clear()


free = named(_free, "backward")


def in_rounds(gpu, kept):
    """Run all rounds with what the caller made last, before one backward pass frees it all."""
    graph, total = [kept], gpu.empty(4)
    for _ in range(ROUNDS):
        x = loads(gpu)
        hidden = differentiable(gpu, "gemm", [kept[-1], x])
        output = differentiable(gpu, "gemm", [kept[-1], hidden])
        total = number(gpu, ADD, [total, number(gpu, "nll_loss", [output])])
        graph += [[x, hidden], [hidden, output]]
        del x, hidden, output
    free(gpu, graph)


def makes_weights(gpu, _):
    z = loads(gpu)
    hidden = differentiable(gpu, "gemm", [z])
    in_rounds(gpu, [hidden, differentiable(gpu, "gemm", [z, hidden])])


def makes_weights_of_leaves(gpu, _):
    """Make weights of which the backward pass frees nothing: a variable holds them."""
    weights = differentiable(gpu, "gemm", [loads(gpu)])
    in_rounds(gpu, [weights])


def has_weights(gpu, _):
    in_rounds(gpu, [loads(gpu)])


def trained(run, **options):
    return lambda gpu: train(gpu, lambda gpu, model: run(gpu, model, **options))


@pytest.mark.parametrize("before", [adds_up, sums_a_list])
def test_a_backward_pass_in_each_round_saves_what_was_predicted(before):
    finding = findings(recorded(trained(before)))[0]

    assert finding.rule == "R58"
    measured = saved(trained(before), trained(one_by_one))
    assert abs(finding.saved_bytes - measured) <= 0.01 * measured
    assert finding.title == (
        "128 MiB of the peak are activations of 4 rounds of a loop, whose losses wait for one "
        "backward pass."
    )
    assert finding.reason.startswith(
        "4 rounds of a loop add up their losses before `model.backward("
    )
    assert found(trained(one_by_one), "R58") == []


@pytest.mark.parametrize(
    "options",
    [
        # Another function of the sum, or of each partial sum.
        {"last": LOG},
        {"each": LOG},
        # The next round uses the output of the one before.
        {"uses": [lambda output: output.value]},
    ],
)
def test_other_functions_of_the_rounds_need_all_graphs(options):
    assert found(trained(adds_up, **options), "R58") == []


@pytest.mark.parametrize("program", [shares_an_encoder, unrolls_a_cell, contrasts])
def test_rounds_that_are_connected_are_no_finding(program):
    assert found(trained(program), "R58") == []


@pytest.mark.parametrize("which", range(ROUNDS))
def test_which_loss_is_left_out_is_known_only_after_the_loop(which):
    assert found(trained(leaves_out, which=which), "R58") == []


@pytest.mark.parametrize("program", [makes_weights, makes_weights_of_leaves])
def test_what_the_caller_made_for_all_rounds_would_be_differentiated_in_each(program):
    assert len(found(trained(has_weights), "R58")) == 1
    assert found(trained(program), "R58") == []
