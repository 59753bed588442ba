"""One HTML page that shows a recording and holds it."""

import base64
import hashlib
import os
import re
import tempfile
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from gpuviz.formats.whole_file import check_free, write_whole
from gpuviz.quantities import format_bytes, format_count, format_duration, format_share
from gpuviz.report.sites import find_sites, sites_table
from gpuviz.report.summary import DeviceSummary, findings, headline, summarize

if TYPE_CHECKING:
    from gpuviz.recording import Recording

_PLACE = re.compile(r"\{\{(\w+)\}\}")


def write_report(
    recording: "Recording",
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
) -> Path:
    """Write a recording as one HTML page that opens offline; return the page's path.

    The page appears whole or not at all.

    Raises:
        RecordingExistsError: Something is at ``path`` and ``overwrite`` is False.
        OSError: The page cannot be written.
    """
    path = Path(path)
    check_free(path, overwrite=overwrite)
    page = build_page(recording).encode()

    def copy(file: BinaryIO) -> None:
        file.write(page)

    return write_whole(path, copy, overwrite=overwrite)


def build_page(recording: "Recording") -> str:
    """Return the page's text. Nothing from the recording can run in it or leave its element."""
    script = _static("report.js")
    style = _static("report.css")
    if "</script" in script.lower() or "</style" in style.lower():
        raise RuntimeError(
            "the front end's bundle would end its own element; rebuild the extension"
        )
    summaries = [summarize(recording, device) for device in recording.devices]
    parts = {
        "policy": _policy(script, style),
        "title": escape(_title(recording)),
        "style": style,
        "notes": _notes(recording),
        "facts": _facts(recording, summaries),
        "device_choice": _device_choice(summaries),
        "devices": "\n".join(_device(recording, summary) for summary in summaries)
        or "<p>Nothing was recorded: there is no device in this recording.</p>",
        "recording": base64.b64encode(_saved(recording)).decode(),
        "script": script,
    }
    template = files("gpuviz.report").joinpath("template.html").read_text(encoding="utf-8")
    return _PLACE.sub(lambda place: parts[place[1]], template)


def _static(name: str) -> str:
    source = files("gpuviz").joinpath("static", name)
    if not source.is_file():
        raise FileNotFoundError(
            f"{source} is missing: gpuviz was installed without its front end; reinstall it",
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


def _program(recording: "Recording") -> str:
    return " ".join(recording.manifest.program)


def _title(recording: "Recording") -> str:
    program = recording.manifest.program
    name = Path(program[0]).name if program else ""
    return f"GPU memory of {name}" if name else "GPU memory"


def _notes(recording: "Recording") -> str:
    manifest = recording.manifest
    label = manifest.label or ("Recorded on a simulated device." if manifest.simulated else "")
    labels = [f'<p class="gpuviz-label">{escape(label)}</p>'] if label else []
    warnings = [
        f'<p class="gpuviz-warning" role="note">{escape(note)}</p>'
        for note in recording.notes
        if note != label
    ]
    return "\n".join(labels + warnings)


def _facts(recording: "Recording", summaries: list[DeviceSummary]) -> str:
    manifest = recording.manifest
    versions = (
        ("gpuviz", manifest.gpuviz_version),
        ("CuPy", manifest.cupy),
        ("CUDA runtime", manifest.runtime),
        ("driver", manifest.driver),
        ("Python", manifest.python),
    )
    facts = {
        "Program": _program(recording),
        "Devices": "; ".join(summary.title for summary in summaries),
        "Versions": ", ".join(f"{name} {version}" for name, version in versions if version),
        "Device memory": _device_memory(recording),
        "Allocator": _allocator(recording),
        "Settings": manifest.settings or "defaults",
        "Recorded": _recorded(recording),
        "Events": _events(recording),
        "Own cost": _own_cost(recording),
    }
    return "\n".join(
        f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in facts.items() if text
    )


def _allocator(recording: "Recording") -> str:
    name = recording.manifest.allocator_name
    if recording.manifest.allocator == "observe":
        return f"the program's own, observed: {name}" if name else "the program's own, observed"
    return name or "gpuviz caching allocator"


def _device_memory(recording: "Recording") -> str:
    """Return what was in use on each device, by whoever; empty where it was not sampled."""
    import pyarrow.compute as pc

    samples = recording.table("device_memory")
    parts = []
    for device in recording.devices:
        used = samples.filter(pc.equal(samples["device"], device))["used"]
        if len(used):
            bounds = [format_bytes(pc.min(used).as_py()), format_bytes(pc.max(used).as_py())]
            parts.append(f"{' to '.join(dict.fromkeys(bounds))} in use on device {device}")
    return "; ".join(parts) + (", other allocators and processes included" if parts else "")


def _events(recording: "Recording") -> str:
    count = recording.table("memory_events").num_rows - recording.manifest.initial_events
    dropped = f"; {format_count(recording.dropped)} dropped" if recording.dropped else ""
    return f"{format_count(count)}{dropped}"


def _own_cost(recording: "Recording") -> str:
    cost = recording.manifest.own_cost_ns
    share = cost / max(recording.duration_ns, 1)
    return (
        f"recording took {format_duration(cost)}, {format_share(share)} of the time" if cost else ""
    )


def _recorded(recording: "Recording") -> str:
    created = recording.manifest.created
    try:
        began = datetime.fromisoformat(created).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except ValueError:
        began = created
    return ", ".join(
        part for part in (began, f"for {format_duration(recording.duration_ns)}") if part
    )


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
        for number in headline(summary)
    )
    found = "".join(f"<li>{escape(finding)}</li>" for finding in findings(summary))
    found = f'<ul class="gpuviz-findings">{found}</ul>' if found else ""
    return f"""<article data-device="{summary.device}">
<h2>{escape(summary.title)}</h2>
<dl class="gpuviz-numbers">
{numbers}
</dl>
{found}
<div data-charts="{summary.device}"></div>
<section class="gpuviz-sites">
<h3>Lines that allocated</h3>
{sites_table(recording, find_sites(recording, summary.device))}
</section>
</article>"""
