"""What tests found, as text in the output of a test run and in ``$OUT``."""

import os
from pathlib import Path

import pytest

from gpuviz.conclusions.ranking import all_conclusions
from gpuviz.present.text import conclusions_text
from gpuviz.recording import Recording


def show(config: pytest.Config, name: str, recordings: dict[str, Recording]) -> None:
    """Write all findings of some programs, with their peaks and durations."""
    text = "\n".join(
        f"== {program}: peak {recording.peak().bytes:,} bytes, {recording.duration_ns / 1e6:.1f} ms"
        f"\n{conclusions_text(recording, all_conclusions(recording), None)}"
        for program, recording in recordings.items()
    )
    tell(config, name, text)


def tell(config: pytest.Config, name: str, text: str) -> None:
    """Write a text to the output, and to a file of that name."""
    config.pluginmanager.get_plugin("terminalreporter").write_line("\n" + text)
    if out := os.environ.get("OUT"):
        Path(out, f"{name}.txt").write_text(text, encoding="utf-8")
