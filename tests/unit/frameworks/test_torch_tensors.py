"""What torch's tensors are, from models and optimizers like torch's."""

import sys
from types import SimpleNamespace

import pytest

from gpuviz import _core
from gpuviz.data.codes import TENSOR_CATEGORIES
from gpuviz.frameworks.torch_tensors import TensorCategories


class Tensor:
    """A tensor with an address; on the host without one."""

    def __init__(self, address=0, device=0):
        self.address, self.device, self.grad = address, device, None
        self.is_cuda = bool(address)

    def data_ptr(self):
        return self.address

    def get_device(self):
        return self.device


class Distributed:
    """A tensor of which each device has a part, as DTensor is one: without memory of its own."""

    is_cuda = True

    def __init__(self, part):
        self.part, self.grad = part, None

    def data_ptr(self):
        return 0

    def get_device(self):
        return 0

    def __tensor_flatten__(self):
        return ["part"], None


class Model:
    """A model with named parameters and buffers."""

    def __init__(self, parameters, buffers):
        self._parameters, self._buffers = parameters, buffers

    def named_parameters(self):
        return self._parameters.items()

    def parameters(self):
        return self._parameters.values()

    def named_buffers(self):
        return self._buffers.items()


class Hooks:
    """The hooks of torch's optimizers."""

    def __init__(self):
        self.before, self.after = [], []

    def register_optimizer_step_pre_hook(self, hook):
        self.before.append(hook)
        return SimpleNamespace(remove=self.before.clear)

    def register_optimizer_step_post_hook(self, hook):
        self.after.append(hook)
        return SimpleNamespace(remove=self.after.clear)

    def step(self, optimizer, closure=None, **new_states):
        for hook in self.before:
            hook(optimizer, (optimizer, closure), {})
        if closure is not None:
            closure()
        for parameter in optimizer.param_groups[0]["params"]:
            optimizer.state[parameter] = dict(new_states)
        for hook in self.after:
            hook(optimizer, (optimizer, closure), {})


@pytest.fixture
def session():
    session = _core.Session()
    session.start()
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def hooks(monkeypatch):
    hooks = Hooks()
    monkeypatch.setitem(sys.modules, "torch.optim.optimizer", hooks)
    return hooks


@pytest.fixture
def compiler():
    return SimpleNamespace(is_compiling=lambda: False)


@pytest.fixture
def tensors(session, compiler):
    tensors = TensorCategories(session)
    tensors.begin(SimpleNamespace(compiler=compiler))
    return tensors


def rows_of(session):
    """Return category, device, address and name of each new row."""
    texts = [None, *session.strings(1)]
    return [
        (TENSOR_CATEGORIES[category], int(device), int(address), texts[name] or "")
        for chunk in session.take_tables(flush=True)["tensors"]
        for category, device, address, name in zip(
            *(chunk[each] for each in ("category", "device", "address", "name")), strict=True
        )
    ]


def test_a_model_names_its_parameters_and_buffers(session, tensors):
    weight, on_host = Tensor(0x1000, device=1), Tensor()
    model = Model({"layer.weight": weight, "layer.bias": on_host}, {"norm.mean": Tensor(0x2000)})

    tensors.take_model(model, "Net.")

    assert rows_of(session) == [
        ("parameter", 1, 0x1000, "Net.layer.weight"),
        ("parameter", 0, 0x2000, "norm.mean"),
    ]


def test_a_tensor_of_several_devices_is_its_part_on_this_one(session, tensors, hooks):
    weight = Distributed(Tensor(0x1000, device=1))
    weight.grad = Distributed(Tensor(0x2000, device=1))
    tensors.take_model(model := Model({"weight": weight}, {}), "")
    optimizer = SimpleNamespace(param_groups=[{"params": [weight]}], state={})

    hooks.step(optimizer, momentum=Distributed(Distributed(Tensor(0x3000, device=1))))

    assert dict.fromkeys(rows_of(session)) == dict.fromkeys(
        [
            ("parameter", 1, 0x1000, "weight"),
            ("gradient", 1, 0x2000, "weight"),
            ("optimizer_state", 1, 0x3000, "weight"),
        ]
    )
    assert model.parameters()


def test_each_step_names_the_gradients_and_the_first_one_the_states(session, tensors, hooks):
    weight = Tensor(0x1000)
    tensors.take_model(model := Model({"weight": weight}, {}), "")
    optimizer = SimpleNamespace(param_groups=[{"params": [weight]}], state={})
    rows_of(session)

    weight.grad = Tensor(0x3000)
    hooks.step(optimizer, momentum=Tensor(0x4000), step=Tensor())
    first = rows_of(session)
    weight.grad = Tensor(0x5000)
    hooks.step(optimizer, momentum=Tensor(0x4000), step=Tensor())

    assert first == [
        ("gradient", 0, 0x3000, "weight"),
        ("parameter", 0, 0x1000, "weight"),
        ("optimizer_state", 0, 0x4000, "weight"),
    ]
    assert rows_of(session) == [("gradient", 0, 0x5000, "weight")]
    assert model.parameters()


@pytest.mark.usefixtures("tensors")
@pytest.mark.parametrize(
    ("rate", "category"),
    [(0.0, "unused_gradient"), (1e-3, "gradient"), (Tensor(0x9000), "gradient")],
)
def test_a_gradient_with_a_learning_rate_of_0_is_unused(session, hooks, rate, category):
    weight = Tensor(0x1000)
    weight.grad = Tensor(0x3000)
    optimizer = SimpleNamespace(param_groups=[{"params": [weight], "lr": rate}], state={})

    hooks.step(optimizer)

    assert rows_of(session)[0] == (category, 0, 0x3000, "")


def test_a_step_with_a_closure_names_the_gradients_that_it_computes(session, tensors, hooks):
    weight = Tensor(0x1000)
    tensors.take_model(model := Model({"weight": weight}, {}), "")
    optimizer = SimpleNamespace(param_groups=[{"params": [weight]}], state={})
    weight.grad = Tensor(0x3000)
    rows_of(session)

    def closure():
        weight.grad = Tensor(0x5000)

    hooks.step(optimizer, closure)

    assert rows_of(session)[0] == ("gradient", 0, 0x5000, "weight")
    assert [row for row in rows_of(session) if row[0] == "gradient"] == []
    assert model.parameters()


def test_the_end_names_what_models_have_then_and_removes_the_hooks(session, tensors, hooks):
    weight = Tensor(0x1000)
    model = Model({"weight": weight}, {})
    tensors.take_model(model, "")
    tensors.take_model(Model({"other": Tensor(0x9000)}, {}), "")  # dies
    rows_of(session)
    weight.address, weight.grad = 0x6000, Tensor(0x7000)

    tensors.end()

    assert rows_of(session) == [
        ("parameter", 0, 0x6000, "weight"),
        ("gradient", 0, 0x7000, "weight"),
    ]
    assert hooks.before == hooks.after == []


@pytest.mark.usefixtures("tensors")
def test_a_compiled_step_runs_nothing_of_it(session, hooks, compiler):
    compiler.is_compiling = lambda: True
    weight = Tensor(0x1000)
    weight.grad = Tensor(0x2000)

    hooks.step(SimpleNamespace(param_groups=[{"params": [weight]}], state={}))

    assert rows_of(session) == []


def test_an_optimizer_of_a_torch_without_hooks_is_not_followed(session, monkeypatch, compiler):
    monkeypatch.setitem(sys.modules, "torch.optim.optimizer", SimpleNamespace())
    tensors = TensorCategories(session)
    tensors.begin(SimpleNamespace(compiler=compiler))
    weight = Tensor(0x1000)
    model = Model({"weight": weight}, {})
    tensors.take_model(model, "")
    rows_of(session)
    weight.grad = Tensor(0x2000)

    tensors.end()

    assert rows_of(session) == [
        ("parameter", 0, 0x1000, "weight"),
        ("gradient", 0, 0x2000, "weight"),
    ]


def test_a_module_that_fails_does_not_stop_the_program(session, tensors):
    class Failing(Model):
        def named_parameters(self):
            raise RuntimeError("of the program")

    tensors.take_model(Failing({"weight": Tensor(0x1000)}, {}), "")

    assert rows_of(session) == [("parameter", 0, 0x1000, "")]
