"""Functions of files that gpuviz takes for those of torch, without torch."""

import sys
from functools import partial, reduce
from types import ModuleType

ROOT = "/opt/torch"
STEPS, ADAM, SCHEDULERS = (
    f"{ROOT}/optim/{name}.py" for name in ("optimizer", "adam", "lr_scheduler")
)
CONTEXTS, COMPILER = f"{ROOT}/utils/_contextlib.py", f"{ROOT}/_dynamo/eval_frame.py"
COMPILED, PROGRAM = "/var/torchinductor/step.py", "/home/train.py"
# Of a tensor whose operations are written in Python.
OPERATION = "/home/tensors.py:__torch_dispatch__"


def know_files(monkeypatch):
    """Let Python know those files as torch's that are below its root."""
    for name, path in (("torch", ""), ("torch.optim", "/optim")):
        package = ModuleType(name)
        package.__path__ = [ROOT + path]
        monkeypatch.setitem(sys.modules, name, package)
    contexts = ModuleType("torch.utils._contextlib")
    contexts.__file__ = CONTEXTS
    monkeypatch.setitem(sys.modules, contexts.__name__, contexts)


def called_through(call, files):
    """Return what a call returns that functions of some files make, the first file outermost.

    The name of a function may follow that of its file.
    """

    def through(inner, file):
        path, _, name = file.partition(":")
        namespace, name = {}, name or "call"
        exec(compile(f"def {name}(inner):\n    return inner()\n", path, "exec"), namespace)  # noqa: S102
        return partial(namespace[name], inner)

    return reduce(through, reversed(files), call)()
