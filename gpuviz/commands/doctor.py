"""``gpuviz doctor``: whether this machine can record, and what limits it."""

from dataclasses import asdict

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from gpuviz.commands.output import console, say, say_json
from gpuviz.doctor.examination import examine
from gpuviz.doctor.finding import Finding
from gpuviz.doctor.machine import Machine

_MARKS = {"ok": "[green]ok[/]", "warning": "[yellow]warning[/]", "problem": "[red]problem[/]"}


def run(*, as_json: bool, attempt: bool, calibrate: bool = False) -> bool:
    """Print the findings, and return whether recording is possible.

    Args:
        as_json: Print JSON.
        attempt: Whether to use the GPU.
        calibrate: Whether to use it, and to print what recording costs a call.
    """
    found = list(examine(Machine(), use_gpu=attempt, calibrate=calibrate))
    can_record = all(finding.level != "problem" for finding in found)
    if as_json:
        findings = [asdict(finding) for finding in found]
        say_json({"can_record": can_record, "findings": findings})
    else:
        _print(found)
        say(verdict(found))
    return can_record


def verdict(found: list[Finding]) -> str:
    """Return a sentence on whether recording is possible."""
    problems = [finding for finding in found if finding.level == "problem"]
    warnings = [finding for finding in found if finding.level == "warning"]
    if problems:
        topics = dict.fromkeys(each.topic for each in problems)
        return f"This machine cannot record; the problem is with: {', '.join(topics)}."
    if warnings:
        topics = dict.fromkeys(each.topic for each in warnings)
        return f"This machine can record, with limits: {', '.join(topics)}."
    return "This machine can record."


def _print(found: list[Finding]) -> None:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for heading in ("", "topic", "finding, meaning, solution"):
        table.add_column(heading, vertical="top", overflow="fold")
    for finding in found:
        lines = [Text(finding.found, "bold" if finding.level != "ok" else "")]
        if finding.meaning:
            lines.append(Text(finding.meaning, "dim" if finding.level == "ok" else ""))
        if finding.remedy:
            lines.append(Text(f"→ {finding.remedy}", "cyan"))
        table.add_row(_MARKS[finding.level], Text(finding.topic), Group(*lines))
    console(highlight=False).print(table)
