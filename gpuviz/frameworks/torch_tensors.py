"""What torch's tensors are: parameters, buffers, gradients and states of optimizers.

Their owners say so: the models that a program calls, and its optimizers, which torch lets gpuviz
know before and after each step. Gradients are asked for at each step, because most programs free
and allocate them anew; the others when a model or an optimizer is first seen, and at the end.
"""

import ctypes
import sys
import weakref
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gpuviz.data.codes import CATEGORIES, TENSOR_CATEGORIES
from gpuviz.frameworks.torch_modules import own_path

if TYPE_CHECKING:
    from gpuviz import _core

_PARAMETER, _GRADIENT, _STATE = map(CATEGORIES.index, ("parameter", "gradient", "optimizer_state"))
_UNUSED = TENSOR_CATEGORIES.index("unused_gradient")
_LIBRARY = "libtorch_cuda.so"
# The functions that tell how much memory cuBLAS and cuBLASLt get to work in.
_WORKSPACE_SIZES = (
    "_ZN2at4cuda22getChosenWorkspaceSizeEv",
    "_ZN2at4cuda26getCUDABlasLtWorkspaceSizeEv",
)


class TensorCategories:
    """Sends the tensors of models and optimizers to a session, from `begin` to `end`.

    Args:
        session: The session.
    """

    def __init__(self, session: "_core.Session") -> None:
        self._session = session
        self._torch: Any = None
        self._models: list[weakref.ref[Any]] = []
        # The parameter, and its name, by the id that it has as long as it lives.
        self._names: dict[int, tuple[weakref.ref[Any], str]] = {}
        # The number of states that an optimizer had, by its id.
        self._states: dict[int, int] = {}
        self._hooks: list[Any] = []

    def begin(self, torch: ModuleType) -> None:
        """Learn of each step of an optimizer, if this release of torch tells of them."""
        self._torch = torch
        # torch.optim has no attribute of this name, although it imports the module.
        optimizers: Any = sys.modules.get("torch.optim.optimizer")
        with suppress(AttributeError):
            self._hooks = [
                optimizers.register_optimizer_step_pre_hook(self._before_step),
                optimizers.register_optimizer_step_post_hook(self._after_step),
            ]

    def end(self) -> None:
        """Send what the models have now, and learn of nothing more."""
        for hook in self._hooks:
            hook.remove()
        for known in self._models:
            model = known()
            if model is not None:
                self._send_model(model)
                with suppress(Exception):
                    self._send(_GRADIENT, self._gradients(model.parameters()))

    def take_model(self, model: Any, before: str) -> None:
        """Send the parameters and buffers of a model that is called for the first time.

        Args:
            model: The module.
            before: What is before the paths of its modules in their names.
        """
        self._models.append(weakref.ref(model))
        with suppress(Exception):
            for path, parameter in model.named_parameters():
                self._names[id(parameter)] = weakref.ref(parameter), f"{before}{own_path(path)}"
        self._send_model(model)

    def _send_model(self, model: Any) -> None:
        with suppress(Exception):  # whatever a program's module does
            self._send(_PARAMETER, ((each, self._name(each)) for each in model.parameters()))
            self._send(_PARAMETER, ((each, name) for name, each in model.named_buffers()))

    def _before_step(
        self, optimizer: Any, arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> None:
        if self._torch.compiler.is_compiling():
            return  # nothing of this belongs into a compiled step
        if not _has_closure(arguments, named):
            self._send_gradients(optimizer)

    def _send_gradients(self, optimizer: Any) -> None:
        with suppress(Exception):
            for group in optimizer.param_groups:
                category = _UNUSED if _is_frozen(group) else _GRADIENT
                self._send(category, self._gradients(group["params"]))

    def _after_step(
        self, optimizer: Any, arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> None:
        if self._torch.compiler.is_compiling():
            return
        if _has_closure(arguments, named):
            self._send_gradients(optimizer)
        with suppress(Exception):
            count = sum(map(len, optimizer.state.values()))
            if self._states.get(id(optimizer)) == count:
                return
            self._states[id(optimizer)] = count
            for group in optimizer.param_groups:
                parameters = group["params"]
                self._send(_PARAMETER, ((each, self._name(each)) for each in parameters))
                self._send(_STATE, self._states_of(optimizer, parameters))

    def _gradients(self, parameters: Iterable[Any]) -> Iterator[tuple[Any, str]]:
        for parameter in parameters:
            gradient = parameter.grad
            if gradient is not None:
                yield gradient, self._name(parameter)

    def _states_of(self, optimizer: Any, parameters: Iterable[Any]) -> Iterator[tuple[Any, str]]:
        for parameter in parameters:
            for state in optimizer.state.get(parameter, {}).values():
                yield state, self._name(parameter)

    def _name(self, parameter: Any) -> str:
        known = self._names.get(id(parameter))
        return known[1] if known is not None and known[0]() is parameter else ""

    def _send(self, category: int, tensors: Iterable[tuple[Any, str]]) -> None:
        by_device: dict[int, list[tuple[int, str]]] = {}
        for whole, name in tensors:
            for tensor in _parts(whole):
                if getattr(tensor, "is_cuda", False):
                    by_device.setdefault(tensor.get_device(), []).append((tensor.data_ptr(), name))
        for device, found in by_device.items():
            self._session.add_tensors(device, category, found)


def _parts(tensor: Any) -> Iterator[Any]:
    """Yield the tensors that have the memory of one: its parts, if it wraps others.

    As a ``DTensor`` does with the part of a parameter that is on this device.
    """
    flatten = getattr(type(tensor), "__tensor_flatten__", None)
    if flatten is None:
        yield tensor
        return
    for name in flatten(tensor)[0]:
        yield from _parts(getattr(tensor, name))


def _is_frozen(group: dict[str, Any]) -> bool:
    """Return whether an optimizer's step changes no parameter of a group, whatever the gradients.

    A learning rate that is a tensor is not read, because the host might wait for it.
    """
    rate = group.get("lr")
    return isinstance(rate, (int, float)) and rate == 0


def _has_closure(arguments: tuple[Any, ...], named: dict[str, Any]) -> bool:
    """Return whether a step computes the gradients itself, as with Lightning.

    Args:
        arguments: Those of the step, the optimizer first.
        named: Those with a name.
    """
    first = arguments[1] if len(arguments) > 1 else None
    return callable(named.get("closure", first))


def workspace_sizes(torch: ModuleType) -> list[int]:
    """Return the sizes that torch requests for cuBLAS to work in; none if it does not tell."""
    sizes = []
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(str(Path(torch.__path__[0]) / "lib" / _LIBRARY))
        for name in _WORKSPACE_SIZES:
            with suppress(AttributeError):
                function = getattr(library, name)
                function.restype = ctypes.c_size_t
                sizes.append(function())
    return sizes
