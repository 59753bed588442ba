"""A page that shows the recordings that are dropped on it."""

import base64
import json
import zlib
from pathlib import Path
from typing import BinaryIO

from gpuviz.formats.output_path import check_free
from gpuviz.formats.whole_file import write_whole
from gpuviz.present.markup import page
from gpuviz.report.page import policy, static

_RAW_DEFLATE = -15
# gpuviz/native/viewer as WebAssembly; a build without its compiler has none.
_READER = Path(__file__).parents[1] / "static" / "snapshot_reader.wasm"
_LINKED = "generic"


def write_viewer(path: Path, *, overwrite: bool = False) -> Path:
    """Write the page, which contains no recording; return its path.

    It reads PyTorch's memory snapshots if this build of gpuviz has their reader for browsers.

    Raises:
        RecordingExistsError: ``path`` exists and ``overwrite`` is False.
        OSError: The page cannot be written.
    """
    check_free(path, overwrite=overwrite)
    script, style = static("report.js"), static("report.css")
    reader = _READER.read_bytes() if _READER.is_file() else b""
    text = "".join(
        page(
            "viewer.html",
            policy=policy(style, script, webassembly=reader != b""),
            title="gpuviz viewer",
            style=style,
            script=script,
            reader=_packed(reader) if reader else "",
            linked=_linked() if reader else (),
        )
    ).encode()

    def copy(file: BinaryIO) -> None:
        file.write(text)

    return write_whole(path, copy, overwrite=overwrite)


def _linked() -> list[dict[str, str]]:
    """Return the libraries in the reader, with their licences."""
    bundled: list[dict[str, str]] = json.loads(static("components.json"))
    return [each for each in bundled if each.get("ecosystem") == _LINKED]


def _packed(data: bytes) -> str:
    packed = zlib.compress(data, level=9, wbits=_RAW_DEFLATE)
    return base64.b64encode(packed).decode()
