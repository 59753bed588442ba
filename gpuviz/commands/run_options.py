"""Options that ``gpuviz run`` passes to the program's process."""

import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from gpuviz.formats.output_path import part_of

if TYPE_CHECKING:
    from gpuviz.recorder.prevention import RecordStream
    from gpuviz.recorder.record import AllocatorMode


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How to record a program.

    Attributes:
        output: The file to record to.
        numbered: Whether to add a number to the name if the file exists.
        force: Whether to replace existing files.
        report: The HTML file to write at the end; empty for none.
        live: Whether to show headline numbers while the program runs.
        quiet: Whether to print only warnings.
        verdict: The file to write the exit code of the verdict to; empty for none.
        shared_pool: Whether to install the allocator in torch.

    The others are those of `gpuviz.record`.
    """

    output: str
    numbered: bool
    max_events: int
    force: bool = False
    report: str = ""
    live: bool = False
    quiet: bool = False
    allocator: "AllocatorMode" = "caching"
    streams: bool = True
    stacks: bool = True
    launch_sites: bool = True
    launch_blocks: bool = True
    api_calls: bool = False
    graph_nodes: bool = True
    hazards: bool = False
    forbid_default_stream: bool = False
    record_stream: "RecordStream" = "off"
    poison: bool = False
    quarantine: int = 0
    verdict: str = ""
    shared_pool: bool = False

    def to_json(self) -> str:
        """Return the options as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the options in ``text``."""
        return cls(**json.loads(text))

    def free_path(self) -> Path:
        """Return a free path to record to; with ``force``, remove an existing file."""
        path = Path(self.output)
        if self.force:
            remove(path)
        number = 2
        while self.numbered and any(map(os.path.lexists, (path, part_of(path)))):
            path = Path(self.output).with_stem(f"{Path(self.output).stem}-{number}")
            number += 1
        return path


def remove(path: Path) -> None:
    """Remove a recording and its part folder."""
    path.unlink(missing_ok=True)
    if part_of(path).exists():
        shutil.rmtree(part_of(path))
