"""What a thread did when it was sampled, in words: its line, the library that it called, a wait."""

from dataclasses import dataclass, field, replace
from pathlib import PurePath

import numpy as np

from gpuviz.analysis.preparation import PREPARATIONS
from gpuviz.data.call_stacks import NO_STACK, CallStacks, Frame
from gpuviz.data.codes import HOST_STATES, OWN_THREADS
from gpuviz.data.columns import codes, plain
from gpuviz.data.tables import Tables

# The tables that say what a thread did when it was sampled.
TABLES = ("host_samples", "stacks", "frames", "threads")
_LOADER = "/torch/utils/data/dataloader.py"
_WITHIN = "<locals>"
_PACKAGES = ("site-packages", "dist-packages")
_LAUNCHING = frozenset(("cupy", "cupyx", "jax", "numba", "torch", "triton"))


@dataclass(frozen=True, slots=True)
class Work:
    """Something that the host does at one line.

    Attributes:
        kind: A word of `gpuviz.data.codes.HOST_STATES` or of
            `gpuviz.analysis.preparation.PREPARATIONS`.
        site: ``function (file:line)`` of the user's innermost line; empty if unknown.
        source: Its text; empty if unknown.
        function: The function that the line calls, if it belongs to a library and has a name there.
        library: The library's name.
        holder: The name of the thread that has the GIL.
        loads: Whether it gets a batch from torch's data loader; the line is that of the loop then.
        is_of_launches: Whether it is work in the Python code of a library that launches.
        is_native: Whether a thread without Python code does it, for which the line waits.
        stack: One of its call stacks; 0 if unknown.
    """

    kind: str
    site: str = ""
    source: str = ""
    function: str = ""
    library: str = ""
    holder: str = ""
    loads: bool = False
    is_of_launches: bool = False
    is_native: bool = False
    stack: int = field(default=0, compare=False)

    @property
    def is_wait(self) -> bool:
        """Whether the thread waits."""
        return self.kind in ("waiting", "gil")

    @property
    def is_of_gpuviz(self) -> bool:
        """Whether it waits for one of gpuviz's own threads, which the program has only here."""
        return self.holder.startswith(OWN_THREADS)

    @property
    def text(self) -> str:
        """The work in a few words."""
        line = f"`{self.source.strip()}`" if self.source.strip() else self.site
        function = f"{self.function} of" if self.function else "of"
        called = f" ({function} {self.library})" if self.library else ""
        at = f" in {line}{called}" if line else ""
        if self.loads:
            return f"getting a batch of the data loader{at}"
        if self.kind == "gil":
            holder = f" that thread {self.holder} holds" if self.holder else ""
            return f"waiting for the GIL{holder}{at}"
        if self.kind == "collection":
            return f"garbage collection{at}"
        if self.kind == "waiting":
            return f"waiting{at}"
        if self.kind in PREPARATIONS:
            return "first use of a library" if self.kind == PREPARATIONS[-1] else self.kind
        return f"{line}{called}" if line else "unknown code"


def works_of(
    tables: Tables,
    call_stacks: CallStacks,
    rows: np.ndarray,
    waiting: np.ndarray | None = None,
) -> list[Work]:
    """Return the work of some rows of ``host_samples``, one object for equal ones.

    Args:
        tables: The tables of a recording.
        call_stacks: Its call stacks.
        rows: The numbers of the rows.
        waiting: The call stack that waits for the work of each row, which it is done for; 0 for
            work of its own.
    """
    table = tables["host_samples"]
    states = codes(table["state"], HOST_STATES)[rows]
    stacks, holders = (plain(table[name])[rows] for name in ("stack", "holder"))
    waiting = np.zeros_like(stacks) if waiting is None else waiting
    names = {row["id"]: row["name"] or str(row["id"]) for row in tables["threads"].to_pylist()}
    columns = (states, stacks, holders, waiting)
    keys = list(zip(*(each.tolist() for each in columns), strict=True))
    known = {}
    for key in dict.fromkeys(keys):
        state, stack, holder, waits = key
        name = names.get(holder, "") if holder else ""
        found = _work(call_stacks, HOST_STATES[state], waits or stack, name)
        known[key] = replace(found, is_of_launches=False, is_native=True) if waits else found
    return [known[key] for key in keys]


def sampled_work(tables: Tables) -> dict[str, list[str]]:
    """Return the columns of ``sampled_work``; its texts have no marks around code."""
    rows = np.arange(tables["host_samples"].num_rows)
    works = works_of(tables, CallStacks(tables), rows) if len(rows) else []
    return {"text": [work.text.replace("`", "") for work in works]}


def called_function(frames: list[Frame]) -> tuple[str, str]:
    """Return the library function that the user's innermost line calls, and its library.

    A function within a function, as a decorator makes it, has no name that the program knows.
    """
    own = [place for place, frame in enumerate(frames) if not frame.is_installed]
    if not own or own[0] == 0:
        return "", ""
    called = frames[own[0] - 1]
    is_known = _WITHIN not in called.name
    library = _library(called.filename)
    return called.name if is_known and library else "", library


def _work(call_stacks: CallStacks, kind: str, stack: int, holder: str) -> Work:
    site, source = call_stacks.call_site(stack)
    frames = call_stacks.frames(stack)
    loop = _loop_of_loader(frames)
    function, library = called_function(frames)
    if loop is not None:
        site, source, function, library = loop.site, loop.source, "", ""
    return Work(
        kind=kind,
        site="" if site == NO_STACK else site,
        source=source,
        function=function,
        library=library,
        holder=holder,
        loads=loop is not None,
        is_of_launches=kind == "working" and loop is None and _is_of_launches(frames),
        stack=stack,
    )


def _loop_of_loader(frames: list[Frame]) -> Frame | None:
    """Return the program's line that asks torch's data loader for a batch; None if none does."""
    of_loader = [at for at, frame in enumerate(frames) if frame.filename.endswith(_LOADER)]
    if not of_loader:
        return None
    return next((frame for frame in frames[of_loader[-1] :] if not frame.is_installed), None)


def _is_of_launches(frames: list[Frame]) -> bool:
    """Return whether the innermost frame is of a library that launches work."""
    return bool(frames) and frames[0].is_installed and _library(frames[0].filename) in _LAUNCHING


def _library(filename: str) -> str:
    """Return the name of the package of an installed file, or of Python's module."""
    if not filename:
        return ""
    parts = PurePath(filename).with_suffix("").parts
    for place in range(len(parts) - 2, -1, -1):
        if parts[place] in _PACKAGES or parts[place].startswith("python3"):
            return parts[place + 1]
    return parts[-1]
