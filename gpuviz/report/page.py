"""The HTML report."""

import base64
import hashlib
import os
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa

from gpuviz.analysis.derived_tables import derived_for_file
from gpuviz.analysis.device_summary import summarize
from gpuviz.conclusions.store import for_report
from gpuviz.data.conclusions import marked
from gpuviz.formats.arrow_stream import TABLE_SUFFIX
from gpuviz.formats.gpuviz import append_conclusions, write_archive
from gpuviz.formats.output_path import check_free, check_report_name
from gpuviz.formats.parallel_deflate import Threads
from gpuviz.formats.whole_file import write_whole
from gpuviz.present.markup import page, section_html, trusted
from gpuviz.present.section import Section
from gpuviz.present.section_table import section_table
from gpuviz.report.facts import label, name, notes, overview, title
from gpuviz.report.redaction import redact as redacted
from gpuviz.report.reduction import Shown, cut, reduce
from gpuviz.report.sections import sections

if TYPE_CHECKING:
    from markupsafe import Markup

    from gpuviz.recording import Recording

# A multiple of 3, so that the base64 pieces can be concatenated.
_PIECE_BYTES = 3 << 18


def write_report(  # noqa: PLR0913 - the options are independent
    recording: "Recording",
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    redact: bool = False,
    window: tuple[int, int] | None = None,
    max_size: int | None = None,
) -> Path:
    """Write a recording as one HTML page that opens offline; return the page's path.

    The page is written completely or not at all.

    Args:
        recording: The recording to show and to embed.
        path: Path of the page.
        overwrite: Whether to replace an existing file.
        redact: Whether to remove names, paths and source lines of the program; the page states it.
        window: The time to show, in ns; all of it if None.
        max_size: Maximum size of the page in bytes; the page states what was left out.

    Raises:
        RecordingError: ``path`` has the suffix of a recording.
        RecordingExistsError: ``path`` exists and ``overwrite`` is False.
        OSError: The page cannot be written.
        ValueError: The window is not in the recording, or ``max_size`` is too small for it.
    """
    path = Path(path)
    check_report_name(path)
    check_free(path, overwrite=overwrite)
    if redact:
        recording = redacted(recording)
    shown = cut(recording, *window) if window is not None else Shown(recording)
    with closing(Page(shown) if max_size is None else reduce(shown, Page, max_size)) as page:

        def copy(file: BinaryIO) -> None:
            file.writelines(page.pieces())

        return write_whole(path, copy, overwrite=overwrite)


def build_page(shown: "Shown | Recording") -> str:
    """Return the page's text."""
    with closing(Page(shown if isinstance(shown, Shown) else Shown(shown))) as page:
        return b"".join(page.pieces()).decode()


class Archive:
    """The archive of a recording as a page embeds it; to be closed.

    A separate thread writes it to an unnamed temporary file.
    """

    least_around = 0

    def __init__(self, shown: Shown) -> None:
        self.shown = shown
        self._file = tempfile.TemporaryFile(prefix="gpuviz-")  # noqa: SIM115 - closed by close()
        self._thread = Threads(1, "gpuviz-archive")
        self._written = self._thread.submit(_write, self._file, shown.recording)

    def close(self) -> None:
        """Wait until the archive is written, and close the file."""
        self._thread.close()
        self._file.close()

    @property
    def archive_size(self) -> int:
        """Size of the archive without the conclusions, in bytes."""
        return self._written.result()

    @property
    def size(self) -> int:
        """Size of the archive in the page, in bytes."""
        self._written.result()
        return 4 * -(-self._file.seek(0, os.SEEK_END) // 3)

    @property
    def tables(self) -> dict[str, int]:
        """Size of each table in the archive, in bytes."""
        self._written.result()
        with zipfile.ZipFile(self._file) as archive:
            return {
                member.filename.removesuffix(TABLE_SUFFIX): member.compress_size
                for member in archive.infolist()
            }

    def pieces(self) -> Iterator[bytes]:
        """Yield the archive as base64, piece by piece."""
        self._written.result()
        return _pieces(self._file, self._file.seek(0, os.SEEK_END))


class End:
    """The end of an archive, which a page has before the rest.

    It has the directory, so that a browser can show what comes while it still reads the page.

    Args:
        file: The file of the archive.
        begin: Where its end begins, at the latest.

    Attributes:
        begin: Where it begins: at a multiple of 3, so that base64 can be cut there.
        text: The end as base64.
    """

    def __init__(self, file: BinaryIO, begin: int) -> None:
        self.begin = begin - begin % 3
        file.seek(self.begin)
        self.text = base64.b64encode(file.read()).decode()


class Page(Archive):
    """The page of a recording; to be closed.

    It is computed while the archive is written. The conclusions that this leads to are added to the
    archive at the end.
    """

    @cached_property
    def _around(self) -> tuple[bytes, int, bytes]:
        """The parts of the page before and after the archive, and how much is between them.

        The archive gets the conclusions, and its end is in the first part.
        """
        shown = self.shown
        by_device = sections(shown.recording)
        conclusions = for_report(shown.recording, section_table(by_device))
        self._written.result()
        end = End(self._file, append_conclusions(self._file, conclusions))
        before, after = _text(shown, by_device, end)
        return before.encode(), end.begin, after.encode()

    @property
    def least_around(self) -> int:  # type: ignore[override] # known when the page is asked
        """Size of the front end in bytes."""
        return len(static("report.js")) + len(static("report.css"))

    @property
    def size(self) -> int:
        """Size of the page in bytes."""
        before, between, after = self._around
        return len(before) + between // 3 * 4 + len(after)

    def pieces(self) -> Iterator[bytes]:
        """Yield the page piece by piece."""
        before, between, after = self._around
        yield before
        yield from _pieces(self._file, between)
        yield after


def _write(file: BinaryIO, recording: "Recording") -> int:
    """Write an archive without conclusions; return its size in bytes."""
    write_archive(file, recording, derived_for_file(recording))
    return file.tell()


def _pieces(file: BinaryIO, size: int) -> Iterator[bytes]:
    """Yield the first bytes of a file as base64, piece by piece."""
    file.seek(0)
    for begin in range(0, size, _PIECE_BYTES):
        yield base64.b64encode(file.read(min(_PIECE_BYTES, size - begin)))


def _text(shown: Shown, by_device: list[tuple[int, list[Section]]], end: End) -> tuple[str, str]:
    """Return the text of the page before and after the embedded recording without its end."""
    recording = shown.recording
    script = static("report.js")
    style = static("report.css")
    if "</script" in script.lower() or "</style" in style.lower():
        raise RuntimeError(
            "the front-end bundle contains a closing tag of its own element; rebuild the extension"
        )
    summaries = [summarize(recording, device) for device in recording.devices]
    return page(
        "report.html",
        policy=policy(style, script),
        title=title(recording),
        style=style,
        label=label(recording),
        notes=notes(recording),
        name=name(recording),
        overview=overview(recording, summaries),
        has_devices=bool(summaries),
        sections=[section_html(each, device) for device, found in by_device for each in found],
        window="" if shown.window is None else f"{shown.window[0]}-{shown.window[1]}",
        end=end,
        script=script,
    )


def static(name: str) -> "Markup":
    """Return the text of a file of the front end, which no template escapes."""
    source = Path(__file__).parents[1] / "static" / name
    if not source.is_file():
        raise FileNotFoundError(
            f"{source} is missing: gpuviz was installed without its front end; reinstall gpuviz",
        )
    return trusted(source.read_text(encoding="utf-8").strip())


def policy(style: str, *scripts: str, webassembly: bool = False) -> "Markup":
    """Return the content security policy that allows a style and scripts, and nothing else."""
    allowed = " ".join(_hash(script) for script in scripts)
    if webassembly:
        allowed += " 'wasm-unsafe-eval'"
    return trusted(
        f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def embedded(recording: "Recording", shown_sections: pa.Table) -> tuple[str, End]:
    """Return the recording's ``.gpuviz`` file with the sections of its page: start and end."""
    with tempfile.TemporaryFile(prefix="gpuviz-") as file:
        write_archive(file, recording, derived_for_file(recording))
        conclusions = marked({"sections": shown_sections}, recording)
        end = End(file, append_conclusions(file, conclusions))
        return b"".join(_pieces(file, end.begin)).decode(), end
