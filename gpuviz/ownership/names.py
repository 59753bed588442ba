"""The names of a process that keep objects alive, for the search of what they hold."""

import re
import sys
import threading
from dataclasses import dataclass
from inspect import CO_OPTIMIZED
from types import CodeType, FrameType, ModuleType
from typing import Any, Literal

from gpuviz import _core

NameKind = Literal[
    "variable", "hidden", "out", "shell", "hook", "traceback", "last_result", "sys", "script",
    "thread", "frame", "handled", "module", "modules",
]  # fmt: skip

LAST_RESULTS = ("_", "__", "___")
LAST_EXCEPTION = ("last_type", "last_value", "last_traceback", "last_exc")
_OUTPUT = re.compile(r"_[0-9]{1,9}")
TRACEBACKS = ("InteractiveTB", "SyntaxTB", "CustomTB")
# Where traitlets keeps the values of an object's traits.
_TRAITS = "_trait_values"
# A snapshot that only its frame, a variable and the counting function refer to.
_SNAPSHOT_REFERENCES = 3


@dataclass(frozen=True, slots=True)
class Names:
    """A dict whose values are held by name.

    Attributes:
        kind: What the names are.
        values: The dict.
        tier: 0 for a user's names, 1 for those of modules.
        is_copy: Whether the values are also in a running frame, which shows no references.
        owner: Name of the module, or ``f()`` of a running frame.
        thread: Identity of the thread of a frame that does not run on the calling thread, else 0.
    """

    kind: NameKind
    values: Any
    tier: int = 0
    is_copy: bool = False
    owner: str = ""
    thread: int = 0


class ProcessNames:
    """The names of this process, collected without running code of other objects.

    Attributes:
        names: By tier.
        skipped: Objects whose contents are in `names`.
        running: The functions that run now, with the identity of their thread as in `Names`.
        of_threads: The threads' names, by id of the arguments with which they were started.
        cells: By id of a value, the name of the running function's variable that a cell holds.
    """

    def __init__(self) -> None:
        self.names: list[Names] = []
        self.skipped: list[Any] = []
        self.running: dict[CodeType, int] = {}
        self.of_threads: dict[int, tuple[str, int]] = {}
        self.cells: dict[int, tuple[str, str, int]] = {}
        self._known: set[int] = set()
        shell = running_shell()
        main = sys.modules.get("__main__")
        if shell is not None:
            self._add_shell(shell)
        elif main is not None:
            self._add(Names("variable", _fields(main)))
        self._add(Names("sys", vars(sys), owner="sys"))
        handled = sys.exception()
        if handled is not None:
            self._add(Names("handled", {"": handled}, is_copy=True))
        active = getattr(threading, "_active", None)
        if type(active) is dict:
            self._add(Names("thread", active))
            for identity, thread in list(active.items()):
                fields = _core.fields_of(thread) or {}
                for part in ("_args", "_kwargs"):
                    self.of_threads[id(fields.get(part))] = thread_name(thread), identity
            self.of_threads.pop(id(None), None)
        self._add_frames()
        self._add_modules()

    def user_value(self, name: str) -> Any:
        """Return the value of a user's variable; None without it."""
        variables = (each.values for each in self.names if each.kind == "variable")
        return next((dict.get(each, name) for each in variables), None)

    def output_named(self, name: str) -> Any:
        """Return the displayed result that IPython calls ``_4``, for example; None without it."""
        if _OUTPUT.fullmatch(name) is None:
            return None
        outputs = (each.values for each in self.names if each.kind == "out")
        return next((dict.get(each, int(name[1:])) for each in outputs), None)

    def _add(self, names: Names) -> None:
        if type(names.values) is dict and id(names.values) not in self._known:
            self._known.add(id(names.values))
            self.names.append(names)

    def _add_object(self, kind: NameKind, value: Any) -> None:
        fields = _core.fields_of(value)
        if fields is not None:
            self.skipped.append(value)
            self._add(Names(kind, fields))
            self._add(Names(kind, fields.get(_TRAITS)))

    def _add_shell(self, shell: Any) -> None:
        namespace = shell.user_ns
        self._add(Names("variable", namespace))
        self._add(Names("out", namespace.get("_oh", {})))
        self._add_object("shell", shell)
        self._add(Names("hidden", field_of(shell, "user_ns_hidden")))
        self._add_object("hook", field_of(shell, "displayhook"))
        for name in TRACEBACKS:
            self._add_object("traceback", field_of(shell, name))
        self._add_object("last_result", field_of(shell, "last_execution_result"))
        scripts = field_of(shell, "_main_mod_cache")
        if type(scripts) is dict:
            self.skipped.append(scripts)
            for path, module in scripts.items():
                if issubclass(type(module), ModuleType):
                    self.skipped.append(module)
                    self._add(Names("script", _fields(module), owner=str(path)))

    def _add_frames(self) -> None:
        own = threading.get_ident()
        # The frame of this call is among them, and would keep itself alive.
        frames: dict[int, FrameType | None] = {**sys._current_frames()}  # noqa: SLF001 - documented
        try:
            for thread in list(frames):
                while frames[thread] is not None:
                    self._add_frame(frames[thread], 0 if thread == own else thread)
                    frames[thread] = getattr(frames[thread], "f_back", None)
        finally:
            frames.clear()

    def _add_frame(self, frame: FrameType | None, thread: int) -> None:
        if frame is None or _is_own(frame):
            return
        code = frame.f_code
        self.running[code] = thread
        owner = f"{code.co_qualname}()"
        if not code.co_flags & CO_OPTIMIZED:
            values = frame.f_locals
            if values is not frame.f_globals and type(values) is dict:
                self._add(Names("frame", values, owner=owner, thread=thread))
            return
        values = local_variables(frame)
        in_cells = {*code.co_cellvars, *code.co_freevars}
        of_cells = {name: values.pop(name) for name in in_cells & values.keys()}
        self._add(Names("frame", values, is_copy=True, owner=owner, thread=thread))
        if of_cells:
            self._add(Names("frame", of_cells, owner=owner, thread=thread))
            for name, value in of_cells.items():
                self.cells[id(value)] = (name, owner, thread)

    def _add_modules(self) -> None:
        for name, module in list(sys.modules.items()):
            if not issubclass(type(module), ModuleType):
                continue
            self.skipped.append(module)
            self._add(Names("module", _fields(module), 1, owner=str(name)))
        self._add(Names("modules", sys.modules, 1))


def _is_own(frame: FrameType) -> bool:
    module = dict.get(frame.f_globals, "__name__")
    return type(module) is str and module.split(".")[0] == "gpuviz"


def running_shell() -> Any:
    """Return the IPython shell of this process; None without one."""
    module = sys.modules.get("IPython")
    return None if module is None else module.get_ipython()


def field_of(value: Any, name: str) -> Any:
    """Return an attribute or trait of one of IPython's objects; None without it."""
    fields = _core.fields_of(value) or {}
    return fields.get(name, fields.get(_TRAITS, {}).get(name))


def thread_name(thread: Any) -> str:
    """Return the name of a thread."""
    name = (_core.fields_of(thread) or {}).get("_name")
    return name if type(name) is str else "?"


def local_variables(frame: FrameType) -> dict[str, Any]:
    """Return a copy of a function's local variables, and leave none behind in the frame."""
    snapshot = frame.f_locals
    values = dict(snapshot)
    # Up to Python 3.12 the frame keeps the snapshot, and with it the values.
    if type(snapshot) is dict and sys.getrefcount(snapshot) <= _SNAPSHOT_REFERENCES:
        code = frame.f_code
        if values.keys() <= {*code.co_varnames, *code.co_cellvars, *code.co_freevars}:
            snapshot.clear()
    return values


def _fields(module: Any) -> dict[str, Any]:
    fields = _core.fields_of(module)
    return {} if fields is None else fields
