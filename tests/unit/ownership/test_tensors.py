"""Who keeps the memory of torch's tensors alive."""

import gc
import sys
from types import ModuleType

import pytest

import gpuviz
from tests.unit.ownership.hidden_torch import (
    SIZE,
    AccumulateGrad,
    Node,
    Tensor,
    drop,
    fake_torch,
    keep,
)


@pytest.fixture
def main(monkeypatch):
    """The namespace of a program without IPython."""
    module = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    return vars(module)


@pytest.fixture
def storages(monkeypatch):
    gc.collect()
    torch = fake_torch()
    monkeypatch.setitem(sys.modules, "torch", torch)
    return torch.storages


def held():
    """Return the paths of the holders of each block, and of its only holder."""
    return sorted(
        ([each.path for each in block.holders], block.only.path if block.only else None)
        for block in gpuviz.holders(0).blocks
        if block.size == SIZE
    )


def step(parameter, storages):
    """Return a loss whose graph saves an activation and ends at a parameter."""
    leaf = AccumulateGrad([], storages, parameter)
    exp = Node([leaf], storages, Tensor(storages))
    return Tensor(storages, node=Node([exp], storages))


def test_a_tensor_is_held_by_its_variable(main, storages):
    main["x"] = Tensor(storages)

    assert held() == [(["x"], "x")]


def test_views_share_the_memory_of_their_base(main, storages):
    base = Tensor(storages)
    main |= {"x": base, "v": Tensor(storages, storage=base._storage, of=base)}
    del base

    assert held() == [(["x", "v"], None)]
    del main["x"]
    assert held() == [(["v"], "v")]


def test_a_gradient_is_held_by_its_parameter(main, storages):
    main["w"] = Tensor(storages)
    main["w"].grad = Tensor(storages)

    assert held() == [(["w"], "w"), (["w.grad"], "w.grad")]


def test_a_list_of_losses_holds_what_their_graphs_save(main, storages):
    main |= {"w": Tensor(storages), "losses": []}
    for _ in range(2):
        main["losses"].append(step(main["w"], storages))

    saved = "losses[{}] → graph of autograd → result of Node"
    assert held() == [
        (["losses[0]"], "losses[0]"),
        ([saved.format(0)], saved.format(0)),
        (["losses[1]"], "losses[1]"),
        ([saved.format(1)], saved.format(1)),
        (["w", "losses[1] → graph of autograd"], None),
    ]
    assert gpuviz.release("losses") == 4 * SIZE
    assert held() == [(["w"], "w")]


def test_a_listed_tensor_is_let_go_only_if_it_is_still_the_same(main, storages):
    main["x"] = Tensor(storages)
    (listed,) = (each for each in gpuviz.holders(0).releases if each.name == "x")
    main["x"] = Tensor(storages)
    (now,) = (each for each in gpuviz.holders(0).releases if each.name == "x")

    with pytest.raises(ValueError, match="no longer what was listed"):
        gpuviz.release(listed)
    assert gpuviz.release(now) == SIZE


def test_a_reference_of_cpp_that_torch_does_not_show_leaves_the_only_holder_open(main, storages):
    main["x"] = Tensor(storages)
    unseen = keep(main["x"])

    ((paths, only),) = held()
    drop(unseen)

    assert paths == ["x", "an unseen reference to a Tensor"]
    assert only is None


def test_a_module_names_its_parameters_as_a_program_does(main, storages):
    kind = type("Module", (), {"__module__": "torch.nn.modules.module"})
    model, layer = kind(), kind()
    vars(model).update(_modules={"0": layer}, _parameters={}, _buffers={})
    vars(layer).update(_modules={}, _parameters={"weight": Tensor(storages)}, _buffers={})
    main["model"] = model
    del layer, model

    assert held() == [(["model[0].weight"], "model[0].weight")]


def test_a_search_leaves_no_references(main, storages):
    main["loss"] = step(Tensor(storages), storages)
    assert len(gpuviz.holders(0).blocks) == 3
    del main["loss"]

    assert storages.live() == []
