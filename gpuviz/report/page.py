"""The HTML report."""

import base64
import hashlib
import os
import re
import tempfile
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from gpuviz.formats.whole_file import check_free, write_whole
from gpuviz.recording.escaping import as_unicode
from gpuviz.report.facts import environment, facts, notes, title
from gpuviz.report.findings import findings, findings_list
from gpuviz.report.markup import facts_list, section
from gpuviz.report.redaction import redact as redacted
from gpuviz.report.reduction import Page, Shown, cut, reduce
from gpuviz.report.size_model import page_bytes
from gpuviz.report.summary import DeviceSummary, headline, summarize

if TYPE_CHECKING:
    from gpuviz.recording.recording import Recording

_PLACE = re.compile(r"\{\{(\w+)\}\}")


def write_report(  # noqa: PLR0913 - each is a switch of its own
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
        RecordingExistsError: ``path`` exists and ``overwrite`` is False.
        OSError: The page cannot be written.
        ValueError: The window is not in the recording, or ``max_size`` is too small for it.
    """
    path = Path(path)
    check_free(path, overwrite=overwrite)
    if redact:
        recording = redacted(recording)
    shown = cut(recording, *window) if window is not None else Shown(recording)
    page = _page(shown) if max_size is None else reduce(shown, _page, max_size)

    def copy(file: BinaryIO) -> None:
        file.write(page.content)

    return write_whole(path, copy, overwrite=overwrite)


def build_page(shown: "Shown | Recording", archive: bytes | None = None) -> str:
    """Return the page's text; all texts from the recording are escaped.

    Args:
        shown: The recording, and the part of it to show.
        archive: The recording's ``.gpuviz`` file, if it was already written.
    """
    shown = shown if isinstance(shown, Shown) else Shown(shown)
    recording = shown.recording
    script = _static("report.js")
    style = _static("report.css")
    if "</script" in script.lower() or "</style" in style.lower():
        raise RuntimeError(
            "the front-end bundle contains a closing tag of its own element; rebuild the extension"
        )
    summaries = [summarize(recording, device) for device in recording.devices]
    parts = {
        "policy": _policy(script, style),
        "title": escape(title(recording)),
        "style": style,
        "notes": notes(recording),
        "facts": facts_list(facts(recording, summaries), "gpuviz-facts gpuviz-facts--head"),
        "device_choice": _device_choice(summaries),
        "devices": "\n".join(_device(recording, summary) for summary in summaries)
        or "<p>This recording is empty: it contains no device.</p>",
        "environment": section(
            "Environment", facts_list(environment(recording)), slug="environment"
        ),
        "window": "" if shown.window is None else f"{shown.window[0]}-{shown.window[1]}",
        "recording": base64.b64encode(archive or _saved(recording)).decode(),
        "script": script,
    }
    template = Path(__file__).with_name("template.html").read_text(encoding="utf-8")
    return as_unicode(_PLACE.sub(lambda place: parts[place[1]], template))


def _page(shown: Shown) -> Page:
    archive = _saved(shown.recording)
    content = build_page(shown, archive).encode()
    return Page(content, page_bytes(content, archive))


def _static(name: str) -> str:
    source = Path(__file__).parents[1] / "static" / name
    if not source.is_file():
        raise FileNotFoundError(
            f"{source} is missing: gpuviz was installed without its front end; reinstall gpuviz",
        )
    return source.read_text(encoding="utf-8").strip()


def _policy(script: str, style: str) -> str:
    hashes = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (script, style)
    ]
    return (
        f"default-src 'none'; script-src 'sha256-{hashes[0]}'; style-src 'sha256-{hashes[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _saved(recording: "Recording") -> bytes:
    with tempfile.TemporaryDirectory(prefix="gpuviz-") as folder:
        return recording.save(Path(folder) / "recording.gpuviz").read_bytes()


def _device_choice(summaries: list[DeviceSummary]) -> str:
    if len(summaries) <= 1:
        return ""
    options = "".join(
        f'<option value="{summary.device}">{escape(summary.title)}</option>'
        for summary in summaries
    )
    return (
        '<p><label>Show <select class="gpuviz-select" id="gpuviz-device">'
        f"{options}</select></label></p>"
    )


def _device(recording: "Recording", summary: DeviceSummary) -> str:
    numbers = "\n".join(
        f'<div class="gpuviz-number"><dt>{escape(number.name)}</dt>'
        f'<dd class="gpuviz-number__value">{escape(number.value)}</dd>'
        f'<dd class="gpuviz-number__detail">{escape(number.detail)}</dd></div>'
        for number in headline(recording, summary)
    )
    return f"""<article data-device="{summary.device}">
<h2>{escape(summary.title)}</h2>
<dl class="gpuviz-numbers">
{numbers}
</dl>
<h3>Findings</h3>
{findings_list(findings(recording, summary))}
<div data-charts="{summary.device}"></div>
</article>"""
