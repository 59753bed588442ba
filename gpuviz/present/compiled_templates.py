"""Templates that Jinja compiled once, kept where Python keeps its compiled modules."""

import os
import sys
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path

from jinja2 import BytecodeCache
from jinja2.bccache import Bucket


class CompiledTemplates(BytecodeCache):
    """Keeps templates in a folder `__pycache__`, unless Python may not write there.

    Jinja compiles a template anew if its text, Jinja's version or Python's differs.
    """

    def load_bytecode(self, bucket: Bucket) -> None:
        """Read a template, if it was kept."""
        with suppress(OSError), _path(bucket).open("rb") as file:
            bucket.load_bytecode(file)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a template."""
        if sys.dont_write_bytecode:
            return
        path = _path(bucket)
        # Other processes may read it meanwhile.
        written = path.with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with written.open("xb") as file:
                bucket.write_bytecode(file)
            written.replace(path)


def _path(bucket: Bucket) -> Path:
    return Path(cache_from_source(str(Path(__file__).with_name(f"template_{bucket.key}.py"))))
