"""Options that ``gpuviz run`` passes to the program's process."""

import json
import os
import re
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from gpuviz.formats.output_path import part_of
from gpuviz.recorder.launch import launch_fields
from gpuviz.recorder.prevention import RecordStream

if TYPE_CHECKING:
    from gpuviz.recorder.record import AllocatorMode


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How to record a program.

    Attributes:
        output: The file to record to; for several processes, the folder of their files.
        children: Whether to record the processes that the program starts, too.
        numbered: Whether to add a number to the name if the file exists.
        force: Whether to replace existing files.
        report: The HTML file to write at the end; empty for none.
        live: Whether to show headline numbers while the program runs.
        quiet: Whether to print only warnings.
        verdict: The file to write the exit code of the verdict to; empty for none.
        shared_pool: Whether to install the allocator in torch.
        pin_arrays: Whether NumPy allocates its arrays in CuPy's pinned memory.
        peer_access: Whether devices access each other's memory directly.

    The others are those of `gpuviz.record`.
    """

    output: str
    max_events: int
    children: bool = False
    numbered: bool = False
    force: bool = False
    report: str = ""
    live: bool = False
    quiet: bool = False
    allocator: "AllocatorMode" = "caching"
    streams: bool = True
    stacks: bool = True
    launch_sites: bool = True
    launch_blocks: bool = True
    host_samples: bool = True
    budget: str | None = None
    api_calls: bool = False
    graph_nodes: bool = True
    hazards: bool = False
    forbid_default_stream: bool = False
    record_stream: RecordStream = "off"
    poison: bool = False
    quarantine: int = 0
    verdict: str = ""
    shared_pool: bool = False
    pin_arrays: bool = False
    peer_access: bool = False

    def to_json(self) -> str:
        """Return the options as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str, folder: str = "") -> Self:
        """Return the options in ``text``, to record each process to a file in ``folder`` if any."""
        options = json.loads(text)
        if folder:
            from gpuviz.recorder.options import DEFAULT_MAX_EVENTS

            own = {"output": folder, "children": True}
            options = {"max_events": DEFAULT_MAX_EVENTS} | options | own
        return cls(**options)

    @property
    def is_numbered(self) -> bool:
        """Whether a number is added to a name that is taken; process ids are reused."""
        return self.numbered or self.children

    def free_path(self) -> Path:
        """Return a free path to record this process to; with ``force``, remove an existing file."""
        wanted = path = Path(self.output)
        if self.children:
            path.mkdir(parents=True, exist_ok=True)
            wanted = path = path / f"{_process_name()}.gpuviz"
        elif self.force:
            remove(path)
        number = 2
        while self.is_numbered and any(map(os.path.lexists, (path, part_of(path)))):
            path = wanted.with_name(f"{wanted.stem}-{number}{wanted.suffix}")
            number += 1
        return path


def _process_name() -> str:
    """Return host, process id and rank of this process, such as ``node1-4711-rank3``."""
    host = re.sub(r"[^\w.-]", "_", os.uname().nodename)
    rank = launch_fields().get("rank")
    return f"{host}-{os.getpid()}" + ("" if rank is None else f"-rank{rank}")


def remove(path: Path) -> None:
    """Remove a recording and its part folder."""
    path.unlink(missing_ok=True)
    if part_of(path).exists():
        shutil.rmtree(part_of(path))
