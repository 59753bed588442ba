"""A page that shows the recordings that are dropped on it."""

from typing import TYPE_CHECKING

from gpuviz.formats.output_path import check_free
from gpuviz.formats.whole_file import write_whole
from gpuviz.present.markup import page
from gpuviz.report.page import policy, static

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO


def write_viewer(path: "Path", *, overwrite: bool = False) -> "Path":
    """Write the page, which contains no recording; return its path.

    Raises:
        RecordingExistsError: ``path`` exists and ``overwrite`` is False.
        OSError: The page cannot be written.
    """
    check_free(path, overwrite=overwrite)
    script, style = static("report.js"), static("report.css")
    text = "".join(
        page(
            "viewer.html",
            policy=policy(style, script),
            title="gpuviz viewer",
            style=style,
            script=script,
        )
    ).encode()

    def copy(file: "BinaryIO") -> None:
        file.write(text)

    return write_whole(path, copy, overwrite=overwrite)
