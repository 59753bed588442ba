"""Who keeps the memory of torch's tensors alive, on a real GPU."""

import gc
import sys
from types import ModuleType

import pytest

import gpuviz

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.gpu
# A size that no other tensor has.
SIDE = 1500


@pytest.fixture
def main(monkeypatch):
    """The namespace of a program without IPython."""
    gc.collect()
    module = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    return vars(module)


def blocks():
    """Return the large blocks with their holders."""
    return [each for each in gpuviz.holders(4 * SIDE * SIDE).blocks if each.holders]


def test_parameters_gradients_and_states_are_named_by_their_path(main):
    main["model"] = model = torch.nn.Sequential(torch.nn.Linear(SIDE, SIDE)).cuda()
    main["optimizer"] = optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, SIDE, device="cuda")).sum().backward()
    optimizer.step()
    del model, optimizer

    paths = {path.path for block in blocks() for path in block.holders}

    assert {"model[0].weight", "model[0].weight.grad"} <= paths
    assert "optimizer.state[a Parameter]['exp_avg']" in paths


def test_a_list_of_losses_holds_their_graphs_and_letting_go_frees_them(main):
    main["weight"] = torch.ones(SIDE, SIDE, device="cuda", requires_grad=True)
    main["losses"] = [(main["weight"] * n).exp().sum() for n in range(3)]
    before = torch.cuda.memory_allocated()

    saved = [block for block in blocks() if block.only and block.only.name == "losses"]
    promised = sum(
        block.size for block in gpuviz.holders(0).blocks if block.kept_by[:6] == "losses"
    )

    assert len(saved) == 3
    assert all("result of ExpBackward0" in block.only.path for block in saved)
    assert saved[0].kept_by == "losses, in graphs of autograd"
    assert gpuviz.release("losses") == promised == before - torch.cuda.memory_allocated()


def test_hooks_that_unpack_saved_tensors_do_not_run(main):
    def unpack(_):
        raise AssertionError

    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: [tensor], unpack):
        main["loss"] = torch.ones(SIDE, SIDE, device="cuda", requires_grad=True).exp().sum()

    paths = {block.only.path for block in blocks() if block.only}

    assert any(path.startswith("loss → graph of autograd") for path in paths)
