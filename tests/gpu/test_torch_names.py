"""Modules, phases and categories of torch's programs on a real GPU."""

import threading
from itertools import pairwise

import pytest

import gpuviz
from gpuviz.analysis.categories import block_categories
from gpuviz.data.codes import CATEGORIES

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.gpu


class Net(torch.nn.Module):
    """Layers that one line calls."""

    def __init__(self, width=512):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
        return x


def kernels_of(recording):
    """Return the phases and modules of all kernels."""
    rows = recording.kernels(by="stack").to_pylist()
    return {(row["phase"], row["module"]) for row in rows}


def recorded(program):
    program()
    torch.cuda.synchronize()
    with gpuviz.record() as recorder:
        program()
        torch.cuda.synchronize()
    return recorder.recording


def test_kernels_have_module_and_phase_and_blocks_their_category():
    model = Net().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    batch = torch.randn(256, 512)

    def step():
        optimizer.zero_grad()
        model(batch.cuda()).square().mean().backward()
        optimizer.step()

    recording = recorded(lambda: [step() for _ in range(3)])

    found = kernels_of(recording)
    for n in range(3):
        assert {("forward", f"layers.{n}"), ("backward", f"layers.{n}")} <= found
    assert ("optimizer", "") in found
    blocks, categories = block_categories(recording)
    names = {CATEGORIES[code] for code in categories}
    assert {"parameter", "gradient", "optimizer_state", "activation", "temporary"} <= names
    expected = sum(each.numel() * 4 for each in model.parameters())
    weights = categories == CATEGORIES.index("parameter")
    assert expected <= int(blocks.size[weights].sum()) <= 1.5 * expected


@pytest.mark.parametrize("is_closure", [False, True])
def test_the_passes_of_each_step_are_ranges_also_in_a_closure(is_closure):
    class Trained(Net):
        def training_step(self, batch):
            loss = sum(layer(batch).square().mean() for layer in self.layers)
            loss.backward()
            return loss

    model = Trained().cuda()
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    batch = torch.randn(256, 512, device="cuda")

    def step():
        if is_closure:
            optimizer.step(lambda: model.training_step(batch))
        else:
            model.training_step(batch)
            optimizer.step()
        batch.clone()  # between two steps

    recording = recorded(lambda: [step() for _ in range(3)])

    rows = recording.table("phases").to_pylist()
    assert [row["kind"] for row in rows] == ["forward", "backward", "optimizer"] * 3
    assert {row["thread"] for row in rows} == {threading.get_native_id()}
    assert all(before["end"] <= after["time"] for before, after in pairwise(rows))
    assert {("forward", f"layers.{n}") for n in range(3)} <= kernels_of(recording)


def test_without_gradients_there_is_no_backward_pass():
    model = Net().cuda().eval()
    batch = torch.randn(256, 512, device="cuda")

    def infer():
        with torch.no_grad():
            model(batch)

    assert {phase for phase, _ in kernels_of(recorded(infer))} == {"forward"}


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_runs_its_forward_pass_again_in_the_backward_pass(reentrant):
    from torch.utils.checkpoint import checkpoint

    model = Net().cuda()
    batch = torch.randn(256, 512, device="cuda", requires_grad=True)

    def step():
        checkpoint(model, batch, use_reentrant=reentrant).sum().backward()

    found = kernels_of(recorded(step))

    assert {("forward", "layers.0"), ("backward", "layers.0")} <= found
    assert {phase for phase, _ in found} <= {"", "forward", "backward"}


def test_a_second_backward_pass_and_an_exception_change_nothing():
    model = Net().cuda()

    class Failing(torch.nn.Module):
        def forward(self, x):
            model(x)
            raise ValueError("of the program")

    failing = Failing()

    def step():
        x = torch.randn(64, 512, device="cuda", requires_grad=True)
        y = model(x).square().sum()
        (gradient,) = torch.autograd.grad(y, x, create_graph=True)
        gradient.square().sum().backward()
        with pytest.raises(ValueError, match="of the program"):
            failing(x)

    found = kernels_of(recorded(step))

    assert {("forward", "layers.2"), ("backward", "layers.2")} <= found


def test_modules_that_die_and_threads_that_train_crash_nothing():
    def train():
        for _ in range(20):
            Net(64).cuda()(torch.randn(8, 64, device="cuda")).sum().backward()

    def both():
        threads = [threading.Thread(target=train) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        train()

    found = kernels_of(recorded(both))

    assert {"forward", "backward"} <= {phase for phase, _ in found}
    assert any(module.endswith("layers.1") for _, module in found)
