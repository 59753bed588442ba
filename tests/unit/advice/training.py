"""Training programs on a simulated GPU, recorded as torch's: with modules and phases."""

import re
from functools import partial
from types import FunctionType

import gpuviz
from gpuviz.advice.findings import findings
from gpuviz.recording import Recording
from tests.unit.recording.from_activities import rows_of

MIB = 1 << 20
# The names of functions that stand for what torch does, and the part of a step that they are.
_ROLE = re.compile(r"(forward|no_grad|again|backward|optimizer|parameter)(?: (.*))?$")
# Of roles that are called otherwise than their part of a step.
_PHASES = {"no_grad": "forward", "again": "backward"}
_US = 1e-6


def named(function, role):
    """Return a function with another name in call stacks."""
    code = function.__code__.replace(co_name=role, co_qualname=role)
    return FunctionType(code, function.__globals__, role, function.__defaults__)


def installed(function, file, name):
    """Return a function as one of a file of an installed package."""
    path = f"/env/lib/python3/site-packages/{file}"
    code = function.__code__.replace(co_name=name, co_qualname=name, co_filename=path)
    return FunctionType(code, function.__globals__, name, function.__defaults__)


def _call_with(function, *arguments, **options):
    return function(*arguments, **options)


def step_of(function, optimizer, kind="_multi_tensor"):
    """Return a function as the step of an optimizer.

    Args:
        function: What it does.
        optimizer: The name of its class in PyTorch, such as ``Adam``; empty if it has none there.
        kind: The begin of the name of PyTorch's function.
    """
    if optimizer:
        file = f"torch/optim/{optimizer.lower()}.py"
        inner = installed(function, file, f"{kind}_{optimizer.lower()}")
        function = partial(installed(_call_with, file, f"{optimizer}.step"), inner)
    return partial(named(_call_with, "optimizer"), function)


def in_module(function):
    """Return a function as what torch does in the call of a module."""
    return partial(named(_call_with, "Module._wrapped_call_impl"), function)


def in_backward_pass(function):
    """Return a function as what torch does within a backward pass."""
    return partial(installed(_call_with, "torch/autograd/__init__.py", "backward"), function)


def _allocate(gpu, size):
    gpu.work_on_host(_US)
    return gpu.empty(size)


def _layer(gpu, x, weight, size, kernel):
    y = _allocate(gpu, size)
    gpu.launch(**kernel, reads=[x, weight], writes=[y])
    return y


def _gradient(gpu, kept, weight, gradient, kernel):
    saved, output = kept
    below = _allocate(gpu, saved.nbytes)
    if gradient is None:
        gradient = _allocate(gpu, weight.nbytes)
    gpu.launch(**kernel, reads=[saved, output, weight], writes=[below, gradient])
    return below, gradient


def _free(gpu, arrays):
    gpu.work_on_host(_US)
    arrays.clear()


def _call(model, x, **options):
    return model.forward(x, **options)


class Output:
    """A result of a model; without gradients it has no graph.

    The graph has the arrays that are saved for the backward pass, innermost last.
    """

    def __init__(self, value, graph):
        self.value, self.graph = value, graph


class Model:
    """Layers, each with a weight of 1 MiB and an output of 8 MiB that its gradient needs.

    The kernel of a layer takes 0.1 ms, and that of its gradient twice as long, if not shorter.
    """

    def __init__(
        self,
        gpu,
        names=("0", "1", "2", "3"),
        *,
        size=8 * MIB,
        kernels=("layer", "gradient"),
        shorter=1.0,
    ):
        self.gpu, self.names, self.size = gpu, names, size
        self.kernels = [
            {"name": name, "duration": length * shorter}
            for name, length in zip(kernels, (1e-4, 2e-4), strict=True)
        ]
        make = named(_allocate, "parameter")
        self.weights = {name: make(gpu, MIB) for name in names}
        self.gradients = dict.fromkeys(names)
        self._forward = {name: named(_layer, f"forward {name}") for name in names}
        self._no_grad = {name: named(_layer, f"no_grad {name}") for name in names}
        self._again = {name: named(_layer, f"again {name}") for name in names}
        self._backward = {name: named(_gradient, f"backward {name}") for name in names}
        self._free = {name: named(_free, f"backward {name}") for name in names}

    # Such as torch calls `forward`.
    __call__ = named(_call, "Module._wrapped_call_impl")

    def forward(self, x, *, gradients=True, names=None, again=False):
        graph = []
        layers = self._forward if gradients else self._no_grad
        for name in names or self.names:
            run = (self._again if again else layers)[name]
            y = run(self.gpu, x, self.weights[name], self.size, self.kernels[0])
            if gradients:
                graph.append([x, y])
            x = y
        return Output(x, graph)

    def backward(self, output, names=None, *, retain=False):
        graph = [*output.graph] if retain else output.graph
        for name in reversed(names or self.names):
            saved, result = graph.pop()
            _, self.gradients[name] = self._backward[name](
                self.gpu,
                (saved, result),
                self.weights[name],
                self.gradients[name],
                self.kernels[1],
            )
            arrays = [saved, result]
            del saved, result
            if graph:
                self._free[name](self.gpu, arrays)


def recorded(program) -> Recording:
    """Return the recording of a program that gets the GPU, as if torch had run it."""
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        program(gpu)
        gpu.synchronize()
    return as_torch(recorder.recording)


def as_torch(recording: Recording) -> Recording:
    """Return a recording with the modules and phases that the names of functions say."""
    frames = {row["id"]: row for row in recording.tables["frames"].to_pylist()}
    forward = {row["name"]: row["id"] for row in frames.values()}
    stacks, parameters = [], set()
    for row in recording.tables["stacks"].to_pylist():
        roles = (_ROLE.match(frames[frame]["name"]) for frame in row["frames"] if frame)
        role, module = next((found.groups() for found in roles if found), ("", ""))
        if role == "parameter":
            parameters.add(row["id"])
        elif role:
            is_of_backward = role in {"again", "backward"}
            row |= {
                "phase": _PHASES.get(role, role),
                "module": module or "",
                "differentiable": int(role in {"forward", "again"}),
                "forward_frame": forward.get(f"forward {module}", 0) if is_of_backward else 0,
            }
        stacks.append(row)
    tensors = [
        {"time": row["time"], "address": row["address"], "category": "parameter"}
        for row in recording.tables["memory_events"].to_pylist()
        if row["stack"] in parameters and row["action"] == "alloc"
    ]
    changed = {"stacks": rows_of("stacks", stacks), "tensors": rows_of("tensors", tensors)}
    return Recording({**recording.tables, **changed}, recording.manifest)


def named_gpu(recording: Recording, name: str, bandwidth: int = 4_800_000_000_000) -> Recording:
    """Return a recording with a name, and bytes per second of the memory, of its GPU."""
    rows = [
        row | {"name": name, "memory_bandwidth": bandwidth}
        for row in recording.tables["devices"].to_pylist()
    ]
    tables = {**recording.tables, "devices": rows_of("devices", rows)}
    return Recording(tables, recording.manifest)


def found(program, rule):
    """Return the findings of a rule about a program, small ones too."""
    return [each for each in findings(recorded(program), small=True) if each.rule == rule]


def saved(before, after):
    """Return by how many bytes the second program's peak is lower than the first's."""
    return recorded(before).peak().bytes - recorded(after).peak().bytes
