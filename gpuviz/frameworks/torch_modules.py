"""Names of the modules of torch that a program calls, without hooks in them.

Every call of a module runs one function of torch, whose first argument is the module. Call stacks
contain the number of that object; here it gets its path in the outermost module that is called.
"""

import sys
import threading
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpuviz import _core

# What `Module.__call__` is.
MODULE_CALL = "_wrapped_call_impl"
# What torch and others wrap around a model, and where the model is in it.
_WRAPPERS = {
    "OptimizedModule": "_orig_mod",
    "DistributedDataParallel": "module",
    "DataParallel": "module",
    "FullyShardedDataParallel": "_fsdp_wrapped_module",
    "DeepSpeedEngine": "module",
    "_FabricModule": "_forward_module",
}
# Parts of paths that such wrappers add inside a model.
_ADDED = frozenset(("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"))
# What a compiler of torch makes of a module or function.
_COMPILED = "GraphModule"


def own_path(path: str) -> str:
    """Return the path of a module or parameter without what wrappers of torch add to it."""
    return ".".join(part for part in path.split(".") if part not in _ADDED)


class ModuleNames:
    """The paths of modules by their number in a session's stacks, such as ``layer3.5.conv2``.

    The model is the outermost module that is called, or that calls it in one of its own methods, as
    `training_step` of Lightning does. A module outside the first model has the model's type before
    its path. The outermost one, which has no path, is called by its type. Wrappers, such as those
    of torch for several GPUs or of `torch.compile`, are in no name, so that a model's modules are
    called alike with and without them. What was compiled belongs to the module that was called.

    Args:
        session: The session; it keeps this until `end`.
        take_model: Called with each model, and what is before the paths of its modules.
    """

    def __init__(
        self,
        session: "_core.Session",
        take_model: Callable[[Any, str], None] = lambda _model, _before: None,
    ) -> None:
        self._session = session
        self._take_model = take_model
        self._names: dict[int, str] = {}
        self._models: list[str] = []
        # What is before the paths of the modules of a model, by the model's number.
        self._before: dict[int, str] = {}
        # They tell the session when a module dies.
        self._watched: dict[int, weakref.ref[Any]] = {}
        self._code: Any = None
        self._module: type[Any] = type(None)
        self._lock = threading.RLock()

    def begin(self, torch: ModuleType) -> None:
        """Find modules in stacks from now on, if this release of torch has the function."""
        call = getattr(torch.nn.Module, MODULE_CALL, None)
        self._code = getattr(call, "__code__", None)
        self._module = torch.nn.Module
        if self._code is not None:
            self._session.watch_modules(self._code, self._name_running)

    def end(self) -> None:
        """Stop; the names stay known."""
        self._session.watch_modules(None, None)
        with self._lock:
            self._watched.clear()

    def _name_running(self) -> bool:
        """Name the modules of each model that a thread is calling; return whether there was one."""
        found = False
        # A local variable with this function's own frame would keep the variables of all callers.
        for called, callers in map(self._running, [*sys._current_frames().values()]):  # noqa: SLF001
            if called:
                found = True
                with self._lock:
                    self._name_model(_outermost(called[-1], callers))
                    outer = ""
                    for module in reversed(called):
                        kind = type(module).__name__
                        self._set_name(module, outer if kind == _COMPILED and outer else kind)
                        outer = self._names[self._watch(module)]
        return found

    def _running(self, innermost: FrameType) -> tuple[list[Any], list[Any]]:
        """Return the modules that a thread is calling, and those whose methods call the outermost.

        Both are innermost first.
        """
        called: list[Any] = []
        callers: list[Any] = []
        frame: FrameType | None = innermost
        while frame is not None:
            own = self._session.first_local_of(frame) if frame.f_code.co_argcount else None
            if issubclass(type(own), self._module):
                if frame.f_code is self._code:
                    called.append(own)
                    callers.clear()
                else:
                    callers.append(own)
            frame = frame.f_back
        return called, callers

    def _name_model(self, model: Any) -> None:
        wrapped = _wrapped(model)
        if wrapped is not None:
            self._name_model(wrapped)
            self._set_name(model, self._names[self._watch(wrapped)])
            return
        number = self._watch(model)
        if number not in self._names:
            name, self._before[number] = self._new_model(_kind(type(model)))
            self._set_name(model, name)
            self._take_model(model, self._before[number])
        before = self._before.get(number, f"{self._names[number]}.")
        with suppress(Exception):  # whatever a program's module does
            for path, module in model.named_modules():
                if path:
                    self._set_name(module, f"{before}{own_path(path)}")

    def _set_name(self, module: Any, name: str) -> None:
        number = self._watch(module)
        if number not in self._names:
            self._names[number] = name
            self._session.name_module(number, name)

    def _new_model(self, kind: str) -> tuple[str, str]:
        """Return the name of a model, and what is before the paths of its modules."""
        earlier = self._models.count(kind)
        self._models.append(kind)
        name = f"{kind}#{earlier + 1}" if earlier else kind
        return name, f"{name}." if len(self._models) > 1 else ""

    def _watch(self, module: Any) -> int:
        address = id(module)
        number = self._session.module_number(module)
        if address not in self._watched:
            forget = self._session.forget_module

            def died(_: object, address: int = address) -> None:
                forget(address)
                self._watched.pop(address, None)

            self._watched[address] = weakref.ref(module, died)
        return number


def _outermost(model: Any, callers: Iterable[Any]) -> Any:
    """Return the last of the modules that the model is a part of, or itself."""
    for caller in callers:
        with suppress(Exception):  # whatever a program's module does
            if any(each is model for _, each in caller.named_modules()):
                model = caller
    return model


def _wrapped(model: Any) -> Any:
    """Return the module that a wrapper of torch is around; None if it is no wrapper."""
    parts = vars(model).get("_modules")
    place = _WRAPPERS.get(type(model).__name__, "")
    return parts.get(place) if type(parts) is dict else None


def _kind(kind: type) -> str:
    """Return the name of a module's class, as it was before its parameters were sharded."""
    own = [each.__name__ for each in kind.__mro__]
    return own[2] if own[1:2] == ["FSDPModule"] else own[0]
