"""The iterations of a program as HTML: what one costs, the first against the rest, and a table."""

from typing import TYPE_CHECKING, Any

from gpuviz.analysis.iterations import median_iteration
from gpuviz.present.markup import html, panel, part, table, with_code
from gpuviz.quantities import (
    format_bytes,
    format_count,
    format_counted,
    format_duration,
    format_share,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa
    from markupsafe import Markup

    from gpuviz.recording import Recording

    # Title, column and form of its values.
    _Column = tuple[str, str, Callable[[int], str]]

_MOST_ROWS = 50
_UNRECORDED = ("If not recorded", "unrecorded_ns", format_duration)
_COLUMNS: "tuple[_Column, ...]" = (
    ("Time", "duration_ns", format_duration),
    ("Peak", "peak_bytes", format_bytes),
    ("GPU busy", "busy_ns", format_duration),
    ("Host blocked", "wait_ns", format_duration),
    ("Kernel time", "kernel_ns", format_duration),
    ("Launches", "kernel_count", format_count),
    ("Copies", "copy_ns", format_duration),
    ("Copied", "copy_bytes", format_bytes),
)
_PHASES: "tuple[_Column, ...]" = (
    ("Forward", "forward_ns", format_duration),
    ("Backward", "backward_ns", format_duration),
    ("Optimizer", "optimizer_ns", format_duration),
)
_HINT = (
    "Time, peak, GPU busy and host blocked are those from its start to its end. Kernels and copies "
    "are those that the host launched in it, even if they ran later."
)


def iterations_text(iterations: "pa.Table") -> list[str]:
    """Return sentences on iterations: how many, what the median one costs, the first one's time.

    Args:
        iterations: `gpuviz.Recording.iterations`, with at least one row.
    """
    first, middle = iterations.slice(0, 1).to_pylist()[0], median_iteration(iterations)
    durations = iterations["duration_ns"].to_pylist()
    busy = format_share(middle["busy_ns"] / max(middle["duration_ns"], 1))
    shortest, longest = map(format_duration, (min(durations), max(durations)))
    median = (
        f"The median one, number {middle['number']}, takes {format_duration(middle['duration_ns'])}"
        f" ({shortest} to {longest} in all), with a peak of {format_bytes(middle['peak_bytes'])} "
        f"and the GPU busy for {busy} of it."
    )
    counted = format_counted(iterations.num_rows, "iteration")
    sentences = [f"{counted}: {_origin(middle)}.", median]
    if _has_phases(middle):
        parts = [f"{title.lower()} {form(middle[name])}" for title, name, form in _PHASES]
        sentences.append(f"Of its kernel time, {', '.join(parts)}.")
    rest = iterations.slice(1)
    if rest.num_rows:
        sentences.append(_first_against(first, median_iteration(rest)))
    return sentences


def iterations_panel(recording: "Recording", device: int) -> str:
    """Return the section on the iterations of `gpuviz.Recording.iterations`; empty without any."""
    found = recording.iterations(device)
    if not found.num_rows:
        return ""
    found = _with_unrecorded(recording, found, device)
    middle = median_iteration(found)
    text = " ".join(iterations_text(found))
    body = html(
        '<p>{} {}</p>\n{}\n<p class="gpuviz-section__hint">{}</p>',
        with_code(text),
        _link(middle, "Show one iteration"),
        _table(found, middle),
        _HINT,
    )
    return panel("Iterations", body, slug="iterations", count=found.num_rows)


def _with_unrecorded(recording: "Recording", found: "pa.Table", device: int) -> "pa.Table":
    """Return iterations with the time that each takes if it is not recorded, where it is known."""
    unrecorded = recording.compensated()
    if unrecorded.tables is recording.tables:
        return found
    others = unrecorded.iterations(device)
    if others.num_rows != found.num_rows:
        return found
    return found.append_column(_UNRECORDED[1], others["duration_ns"])


def _origin(row: dict[str, Any]) -> str:
    if row["name"]:
        return f"the ranges `{row['name']}`"
    if row["optimizer_ns"]:
        return "each ends with a step of an optimizer"
    return "the same lines launch work again and again"


def _has_phases(row: dict[str, Any]) -> bool:
    return any(row[name] for _, name, _ in _PHASES)


def _first_against(first: dict[str, Any], usual: dict[str, Any]) -> str:
    """Compare the first iteration with the median one of the others."""
    took, others = first["duration_ns"], usual["duration_ns"]
    ratio = took / max(others, 1)
    if 1 / _ALIKE <= ratio <= _ALIKE:
        return "The first one takes as long as the others."
    compared = f"{ratio:.1f} times as long as" if ratio > 1 else f"{format_share(ratio)} of"
    return (
        f"The first one takes {format_duration(took)}, {compared} the median of the others "
        f"({format_duration(others)})."
    )


# Durations whose ratio is at most this are alike.
_ALIKE = 1.1


def _table(iterations: "pa.Table", middle: dict[str, Any]) -> "Markup":
    """Return the first iteration, the median one, and the others, slowest first."""
    rows = iterations.to_pylist()
    slowest = sorted(rows, key=lambda row: -row["duration_ns"])
    ordered = {row["number"]: row for row in [rows[0], middle, *slowest]}
    chosen = (_UNRECORDED, *_COLUMNS, *(_PHASES if _has_phases(middle) else ()))
    columns = [each for each in chosen if each[1] in iterations.schema.names]
    titles = ("Iteration", *(title for title, _, _ in columns))
    body = (_row(row, middle, columns) for row in [*ordered.values()][:_MOST_ROWS])
    shown = table("Iterations", titles, body)
    if len(rows) <= _MOST_ROWS:
        return shown
    return shown + html(
        "<p>The first, the median and the slowest of {}; all: "
        "<code>recording.iterations()</code></p>",
        format_count(len(rows)),
    )


def _row(
    row: dict[str, Any], middle: dict[str, Any], columns: "Iterable[_Column]"
) -> "Iterator[str]":
    number = row["number"]
    mark = "first" if number == 1 else "median" if number == middle["number"] else ""
    detail = html(' <span class="gpuviz-place">{}</span>', mark) if mark else ""
    yield _link(row, format_count(number)) + detail
    for _, column, form in columns:
        yield form(row[column]) if row[column] else ""


def _link(row: dict[str, Any], text: str) -> "Markup":
    return part("link", text, (row["start"], row["end"]))
