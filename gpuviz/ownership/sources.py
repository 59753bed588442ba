"""Beginnings of paths that keep objects alive: names, and references that no object shows."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import CellType, FunctionType, MethodType
from typing import Any

from gpuviz import _core
from gpuviz.ownership.held_memory import HolderKind
from gpuviz.ownership.names import LAST_EXCEPTION, LAST_RESULTS, Names, ProcessNames, thread_name
from gpuviz.ownership.paths import class_name, is_class, key_text

PLAN_CACHE = "cupy.fft._cache"
# The cache, and its list of plans with its entries, which a finalizer keeps too.
PLAN_CACHES = ("PlanCache", "_LinkedList", "_Node")
PLANS_NAME = "CuPy's cache of FFT plans"


@dataclass(frozen=True, slots=True)
class Source:
    """A name, or another beginning of a path, that keeps objects alive.

    Sources with the same key let go together.
    """

    key: tuple[Any, ...]
    kind: HolderKind
    name: str
    text: str


class Sources:
    """Describes the beginnings of paths of one search.

    Attributes:
        results: The names of displayed results, by id.
    """

    def __init__(self, process: ProcessNames, labels: list[Any]) -> None:
        self._process = process
        self.results: dict[int, str] = {}
        for label in labels:
            if label[0] == "name" and process.names[label[1]].kind == "out":
                self.results[id(label[3])] = f"Out[{key_text(label[2])}]"
        self.all = [self._source(label) for label in labels]

    def _source(self, label: tuple[Any, ...]) -> Source:
        if label[0] == "name":
            _, number, key, value = label
            return self._of_name(self._process.names[number], key, value)
        if label[0] == "class":
            return _of_class(label[1], label[2])
        if label[0] == "cycle":
            return _simple(("cycle",), "cycle", "a reference cycle")
        return self._of_unseen(label[1])

    def _of_name(self, names: Names, key: Any, value: Any) -> Source:
        text = key if type(key) is str else key_text(key)
        if self._is_result(names.kind, text, value):
            return self._of_result(value, _result_text(names.kind, text))
        place = _exception_place(names.kind, text)
        if place:
            return Source(("exception",), "exception", "the last exception", place)
        if names.kind == "thread":
            return _of_thread(key, thread_name(value))
        if names.kind == "variable" and type(key) is str:
            return Source(("variable", text, id(value)), "variable", text, text)
        if names.kind == "hidden" and self._process.user_value(text) is value:
            return Source(("variable", text, id(value)), "variable", text, text)
        return _BY_KIND.get(names.kind, _of_ipython)(names, text)

    def _is_result(self, kind: str, name: str, value: Any) -> bool:
        if kind in ("variable", "hidden"):
            # A user may give another object the name of an output.
            return name in LAST_RESULTS or self._process.output_named(name) is value
        if kind == "last_result":
            return name == "result"
        return kind == "out" or (kind == "hook" and name in LAST_RESULTS)

    def _of_result(self, value: Any, text: str) -> Source:
        name = self.results.setdefault(id(value), text)
        return _simple(("result", id(value)), "output", name)

    def _of_unseen(self, entry: Any) -> Source:
        """Return the source of references to ``entry`` that no object shows."""
        running = self._of_running(entry)
        if running is not None:
            return running
        if is_class(type(entry), PLAN_CACHE, *PLAN_CACHES):
            return _simple(("plans",), "plan cache", PLANS_NAME)
        name = f"an unseen reference to a {class_name(type(entry))}"
        return _simple(("unseen", id(entry)), "unknown", name)

    def _of_running(self, entry: Any) -> Source | None:
        """Return the source of references that belong to running functions."""
        process = self._process
        if id(entry) in process.of_threads:
            # The running Thread.run() passes them on.
            name, identity = process.of_threads[id(entry)]
            return _of_thread(identity, name)
        if type(entry) is MethodType and issubclass(type(entry.__self__), threading.Thread):
            thread = entry.__self__
            return _of_thread((_core.fields_of(thread) or {}).get("_ident"), thread_name(thread))
        if type(entry) is CellType and id(_content(entry)) in process.cells:
            name, owner, identity = process.cells[id(_content(entry))]
            return _of_frame(Names("frame", {}, owner=owner, thread=identity), name)
        if type(entry) is FunctionType and entry.__code__ in process.running:
            identity = process.running[entry.__code__]
            if identity:
                return _of_frame(Names("frame", {}, thread=identity), "")
            name = f"the running {entry.__qualname__}()"
            return _simple(("running", name), "running function", name)
        return None


def _simple(key: tuple[Any, ...], kind: HolderKind, name: str) -> Source:
    return Source(key, kind, name, name)


def _result_text(kind: str, name: str) -> str:
    if kind == "last_result":
        return "the last result"
    return name if kind == "variable" else f"IPython's {name}"


def _of_variable(_: Names, name: str) -> Source:
    return _simple(("unusual variable", name), "variable", name)


def _of_handled(_names: Names, _name: str) -> Source:
    return _simple(("handled",), "exception", "the exception being handled")


def _of_script(names: Names, name: str) -> Source:
    return _simple(("script", names.owner, name), "script", f"{name} of {names.owner}")


def _of_module(names: Names, name: str) -> Source:
    text = f"{names.owner}.{name}" if names.owner else f"module {name}"
    return _simple(("module", text), "module", text)


def _of_ipython(names: Names, name: str) -> Source:
    return _simple(("ipython", names.kind, name), "IPython", f"IPython's {name}")


def _of_thread(identity: Any, name: str) -> Source:
    return _simple(("thread", identity), "thread", f"thread {name}")


def _of_class(owner: type, key: Any) -> Source:
    name = class_name(owner)
    if key is None:
        return Source(("class", id(owner), None), "class", f"class {name}", f"class {name}")
    text = f"{name}.{key if type(key) is str else key_text(key)}"
    return Source(("class", id(owner), text), "class", text, text)


def _of_frame(names: Names, variable: str) -> Source:
    text = f"local `{variable}` of the running {names.owner}"
    if names.thread:
        # Names of other threads are of one key, because they go with their thread.
        thread = getattr(threading, "_active", {}).get(names.thread)
        name = f"thread {names.thread if thread is None else thread_name(thread)}"
        return Source(("thread", names.thread), "thread", name, f"{name} → {text}")
    return Source(("running", names.owner, variable), "running function", text, text)


def _exception_place(kind: str, name: str) -> str:
    if kind == "sys" and name in LAST_EXCEPTION:
        return f"sys.{name}"
    if kind == "traceback" and name in ("tb", "pdb"):
        return "the debugger" if name == "pdb" else "IPython's traceback"
    if kind == "last_result" and name.startswith("error_"):
        return "the last execution's error"
    return ""


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


_BY_KIND: dict[str, Callable[[Names, str], Source]] = {
    "variable": _of_variable,
    "frame": _of_frame,
    "handled": _of_handled,
    "script": _of_script,
    "module": _of_module,
    "modules": _of_module,
    "sys": _of_module,
}
