"""R66: dense gradients of embeddings of which a step uses few rows."""

from functools import partial

import pytest

from gpuviz.advice.findings import findings
from gpuviz.recording import Recording
from tests.unit.advice.training import MIB, found, installed, named, recorded, saved, step_of
from tests.unit.recording.from_activities import rows_of

STEPS, TABLE, ROWS = 5, 64 * MIB, MIB
FILL = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)"
SCATTER = "void at::native::(anonymous namespace)::sum_and_scatter<float, long>(long const*)"
SORT = "void at_cuda_detail::cub::detail::radix_sort::DeviceRadixSortOnesweepKernel<long>(long*)"
FEW = "void at::native::embedding_backward_feature_kernel<float, float, long>(long const*)"
# Of kernels that read and write whole tables.
PER_BYTE = 1e-4 / TABLE


class Table:
    """A table of embeddings; with sparse gradients they have only the rows that are looked up."""

    def __init__(self, gpu, *, rows=ROWS, sparse=False, kernel=SCATTER):
        self.weight, self.rows, self.sparse, self.kernel = gpu.empty(TABLE), rows, sparse, kernel
        self.gradient = self.momentum = None

    @property
    def bytes_of_gradient(self):
        return self.rows if self.sparse else TABLE


def _make(gpu, **options):
    gpu.work_on_host(1e-6)
    return Table(gpu, **options)


def _look_up(gpu, table):
    gpu.work_on_host(1e-6)
    output = gpu.empty(table.rows)
    gpu.launch("gather", duration=1e-6, reads=[table.weight], writes=[output])
    return output


def _undo(gpu, table, output, *others):
    gpu.work_on_host(1e-6)
    size = table.bytes_of_gradient
    made = gpu.empty(size)
    if not table.sparse:
        gpu.launch(FILL, duration=size * PER_BYTE, writes=[made])
    gpu.launch(table.kernel, duration=1e-6, reads=[output], writes=[made])
    for each in others:
        gpu.launch("add", duration=size * PER_BYTE, reads=[each], writes=[made])
    if table.gradient is None:
        table.gradient = made
    else:
        gpu.launch("add", duration=size * PER_BYTE, reads=[made], writes=[table.gradient])


def _sort_and_add(gpu, table, output):
    """Make the gradient as PyTorch does, with a host that takes longer than the GPU."""
    gpu.work_on_host(1e-6)
    table.gradient = made = gpu.empty(table.bytes_of_gradient)
    if table.sparse:
        return
    order = gpu.empty(table.rows)
    works = [(SORT, [], order)] * 8 + [(FILL, [], made), (table.kernel, [output], made)]
    for kernel, reads, written in works:
        gpu.work_on_host(20e-6)
        gpu.launch(kernel, duration=1e-6, reads=reads, writes=[written])


def _update_parts(gpu, tables):
    """Update the parameters with a kernel for each quarter of a table."""
    gpu.work_on_host(1e-6)
    for _ in range(-(-4 * sum(each.bytes_of_gradient for each in tables) // TABLE)):
        gpu.work_on_host(20e-6)
        arrays = [array for each in tables for array in (each.gradient, each.weight)]
        gpu.launch("update", duration=1e-6, reads=arrays, writes=arrays[1::2])


def _multiply(gpu):
    """Compute the gradient of an output layer."""
    gpu.work_on_host(1e-6)
    gradient = gpu.empty(TABLE)
    gpu.launch("gemm", duration=1e-4, writes=[gradient])
    return gradient


def _step(gpu, tables):
    gpu.work_on_host(1e-6)
    sizes = [each.bytes_of_gradient for each in tables]
    roots = [*map(gpu.empty, sizes)]
    duration = sum(sizes) * PER_BYTE
    gpu.launch("root", duration=duration, writes=roots)
    arrays = [array for each in tables for array in (each.gradient, each.weight)]
    gpu.launch("update", duration=duration, reads=roots, writes=arrays)


def _step_of_sgd(gpu, tables):
    gpu.work_on_host(1e-6)
    arrays = [array for each in tables for array in (each.gradient, each.weight)]
    gpu.launch("update", duration=len(arrays) * TABLE * PER_BYTE, reads=arrays, writes=arrays[1::2])


def _step_with_momentum(gpu, tables):
    gpu.work_on_host(1e-6)
    for each in tables:
        each.momentum = each.momentum or gpu.empty(TABLE)
    arrays = [array for each in tables for array in (each.gradient, each.weight, each.momentum)]
    gpu.launch("update", duration=len(arrays) * TABLE * PER_BYTE, reads=arrays, writes=arrays)


def _drop(gpu, tables):
    gpu.work_on_host(1e-6)
    for each in tables:
        each.gradient = None


def _clip(gpu, tables):
    gpu.work_on_host(1e-6)
    gpu.launch("norm", duration=1e-6, reads=[each.gradient for each in tables])


make, drop = named(_make, "parameter"), named(_drop, "optimizer")
lookup = installed(_look_up, "torch/nn/functional.py", "embedding")
NAMES = ("user", "item")
_UNDO = {name: named(_undo, f"backward {name}") for name in NAMES}
output_layer = named(_multiply, "backward head")


def _call(function, *arguments):
    return function(*arguments)


_LOOK_UP = {name: named(_call, f"forward {name}") for name in NAMES}
_LOOK_UP_ONLY = {name: named(_call, f"no_grad {name}") for name in NAMES}


def trains(  # noqa: PLR0913 - the program's variants
    *,
    optimizer="Adagrad",
    names=NAMES,
    passes=1,
    tied=False,
    clips=False,
    update=_step,
    **options,
):
    """Return a program that trains tables.

    Args:
        optimizer: The class of the optimizer.
        names: The modules of the tables.
        passes: The backward passes of each step; 0 if the tables are frozen.
        tied: Whether the tables are the weights of output layers, too.
        clips: Whether something else uses the gradients.
        update: What the step of the optimizer does.
        **options: Those of the tables.
    """
    step = step_of(update, optimizer)

    def program(gpu):
        tables = {name: make(gpu, **options) for name in names}
        for _ in range(STEPS):
            for name, table in tables.items():
                _LOOK_UP_ONLY[name](lookup, gpu, table)
            for _ in range(passes):
                outputs = {
                    name: _LOOK_UP[name](lookup, gpu, table) for name, table in tables.items()
                }
                for name, table in tables.items():
                    others = [output_layer(gpu)] if tied else []
                    _UNDO[name](gpu, table, outputs.pop(name), *others)
                    others.clear()
            if not passes:
                continue
            if clips:
                _clip(gpu, tables.values())
            step(gpu, tables.values())
            drop(gpu, tables.values())

    return program


@pytest.mark.parametrize("kernel", [SCATTER, FEW])
@pytest.mark.parametrize("names", [NAMES, NAMES[:1]])
def test_dense_gradients_are_found_and_sparse_ones_save_what_was_predicted(names, kernel):
    program = partial(trains, names=names, kernel=kernel)
    before, after = program(), program(sparse=True)
    recording = recorded(before)
    finding = findings(recording)[0]

    assert finding.rule == "R66"
    assert finding.saved_bytes == pytest.approx(saved(before, after), rel=0.01)
    saved_ns = recording.duration_ns - recorded(after).duration_ns
    assert finding.saved_ns == pytest.approx(saved_ns, rel=0.1)
    assert finding.certainty == "likely"
    assert "R53" not in {each.rule for each in findings(recording)}


def test_the_finding_names_tables_and_what_the_optimizer_takes():
    (finding,) = found(trains(), "R66")

    assert finding.title == (
        "The gradients of 2 embeddings, 128 MiB, have a row for every entry, though a step uses at "
        "most 1.6 % of them."
    )
    assert "`item` 64.0 MiB and `user` 64.0 MiB" in finding.reason
    assert "256 MiB of the peak" in finding.reason
    assert finding.change == (
        "Create these embeddings with `nn.Embedding(..., sparse=True)`, or pass that to "
        "`F.embedding`, so that gradients have only the rows that a step uses. Adagrad supports "
        "sparse gradients, but not with weight decay or `fused=True`. For a sparse gradient, an "
        "optimizer sorts and adds up its rows, with dozens of launches: where the GPU waits for "
        "the host, a step may take longer."
    )
    assert "forward" in finding.lines[0].site


def launches(optimizer, *, sparse=False):
    """Return a program whose host takes longer than the GPU."""
    sort, step = named(_sort_and_add, "backward user"), step_of(_update_parts, optimizer)

    def program(gpu):
        table = make(gpu, sparse=sparse)
        for _ in range(STEPS):
            sort(gpu, table, _LOOK_UP["user"](lookup, gpu, table))
            step(gpu, [table])
            drop(gpu, [table])

    return program


def test_a_step_launches_less_for_sparse_gradients():
    before, after = recorded(launches("SGD")), recorded(launches("SGD", sparse=True))
    (finding,) = [each for each in findings(before) if each.rule == "R66"]

    # Of each step eight kernels that sort, two that write, and three of the optimizer's four.
    assert "65 launches" in finding.reason
    assert finding.saved_ns == pytest.approx(before.duration_ns - after.duration_ns, rel=0.15)


@pytest.mark.parametrize("optimizer", ["Adagrad", "Adam"])
def test_other_optimizers_than_sgd_launch_more_for_sparse_gradients(optimizer):
    (finding,) = found(launches(optimizer), "R66")

    assert "launch" not in finding.reason
    assert "dozens of launches" in finding.change


@pytest.mark.parametrize(
    ("update", "certainty"),
    [(_step_of_sgd, "likely"), (_step_with_momentum, "possible"), (_step, "possible")],
)
def test_sgd_with_momentum_or_weight_decay_does_not_take_sparse_gradients(update, certainty):
    (finding,) = found(trains(optimizer="SGD", update=update), "R66")

    assert finding.certainty == certainty
    assert ("seems to use one of them" in finding.change) is (certainty == "possible")


@pytest.mark.parametrize(
    ("optimizer", "advice"),
    [
        (
            "SGD",
            "SGD supports sparse gradients, but not with momentum or weight decay or `fused=True`.",
        ),
        ("Adam", "Adam and AdamW do not support sparse gradients: "),
        ("RMSprop", "RMSprop does not support sparse gradients: "),
        (
            "",
            "The optimizer must support sparse gradients, as `SGD`, `Adagrad` and `SparseAdam` of",
        ),
    ],
)
def test_the_change_is_one_that_the_optimizer_takes(optimizer, advice):
    update = _step_of_sgd if optimizer == "SGD" else _step
    (finding,) = found(trains(optimizer=optimizer, update=update), "R66")

    assert advice in finding.change
    assert (finding.certainty == "likely") is (optimizer == "SGD")
    assert ("SparseAdam" in finding.change) is (optimizer != "SGD")


def test_what_else_uses_the_gradients_must_take_them_too():
    (finding,) = found(trains(clips=True), "R66")

    assert "`clip_grad_norm_` does not" in finding.change
    assert finding.certainty == "possible"


def test_gradients_of_several_passes_have_the_rows_of_all_of_them():
    before, after = trains(passes=3), trains(passes=3, sparse=True)
    (finding,) = found(before, "R66")

    assert "at most 4.7 % of them" in finding.title
    assert finding.saved_bytes == pytest.approx(saved(before, after), rel=0.05)


@pytest.mark.parametrize(
    "options",
    [
        {"sparse": True},
        {"passes": 0},
        {"tied": True},
        {"tied": True, "passes": 2},
        {"rows": TABLE // 2},
        # In one pass few enough.
        {"rows": TABLE // 8, "passes": 3},
        {"kernel": "indexing_backward_kernel"},
    ],
)
def test_other_gradients_are_dense_or_sparse_already(options):
    assert found(trains(**options), "R66") == []


def test_small_tables_are_only_shown_if_asked_for():
    def program(gpu):
        held = gpu.empty(15 << 30)
        gpu.launch("long", duration=1, writes=[held])
        trains(names=NAMES[:1])(gpu)

    recording = recorded(program)

    assert "R66" in {each.rule for each in findings(recording, small=True)}
    assert "R66" not in {each.rule for each in findings(recording)}


def test_processes_that_exchange_gradients_are_left_out():
    recording = recorded(trains())
    collectives = rows_of("collectives", [{"time": 1, "bytes": TABLE}])
    exchanging = Recording({**recording.tables, "collectives": collectives}, recording.manifest)

    assert "R66" not in {each.rule for each in findings(exchanging, small=True)}
