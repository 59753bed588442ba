"""Redaction of call stacks."""

import re
from typing import TYPE_CHECKING

import pyarrow as pa

from gpuviz.data.implied_columns import GENERATED, INSTALLED, OWN
from gpuviz.data.tables import schemas

if TYPE_CHECKING:
    from gpuviz.recording import Recording


_FILES = {OWN: "file {}", INSTALLED: "/site-packages/file {}", GENERATED: "<file {}>"}
_LEFT_OUT = re.compile(r"\([0-9,]+ frames? left out\)")


def redacted_frames(recording: "Recording") -> dict[str, pa.Table]:
    """Return ``frames`` with numbered functions and files, line numbers, and no source.

    Files of Python and of installed packages, and code made while the program ran, remain
    distinguishable from the user's, so that user frames are unchanged.
    """
    rows = recording.tables["frames"].select(schemas()["frames"].names).to_pylist()
    functions: dict[tuple[str, str], int] = {}
    files: dict[str, int] = {}
    for row in rows:
        row["context"], row["context_line"] = "", 0
        if not row["filename"]:
            # The number of frames that were left out.
            row["name"] = row["name"] if _LEFT_OUT.fullmatch(row["name"]) else "unknown function"
            row["source"] = row["assigned"] = ""
            continue
        function = functions.setdefault((row["filename"], row["name"]), len(functions) + 1)
        file = files.setdefault(row["filename"], len(files) + 1)
        row["name"] = f"function {function}"
        row["filename"] = _FILES[row["installed"]].format(file)
        row["source"] = row["assigned"] = ""
    return {"frames": pa.Table.from_pylist(rows, schema=schemas()["frames"])}
