"""The iterations of a program as HTML: what one costs, the first against the rest, and a table."""

from html import escape
from typing import TYPE_CHECKING, Any

from gpuviz.quantities import (
    format_bytes,
    format_count,
    format_counted,
    format_duration,
    format_share,
)
from gpuviz.report.markup import cell_bar, panel, sortable_table, with_code

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from gpuviz.recording.recording import Recording

_MOST_ROWS = 50
# In the band above the tracks.
_MOST_DRAWN = 5000
_WITH_BARS = ("duration_ns", "peak_bytes")
_COLUMNS: "tuple[tuple[str, str, Callable[[int], str]], ...]" = (
    ("Time", "duration_ns", format_duration),
    ("Peak", "peak_bytes", format_bytes),
    ("GPU busy", "busy_ns", format_duration),
    ("Host blocked", "wait_ns", format_duration),
    ("Kernel time", "kernel_ns", format_duration),
    ("Launches", "kernel_count", format_count),
    ("Copies", "copy_ns", format_duration),
    ("Copied", "copy_bytes", format_bytes),
)
_HINT = (
    "Time, peak, GPU busy and host blocked are those from its begin to its end. Kernels and copies "
    "are those that the host launched in it, also if they ran later."
)


def median_iteration(table: "pa.Table") -> dict[str, Any]:
    """Return the iteration of the median duration, of an even number the shorter one.

    Args:
        table: `gpuviz.Recording.iterations`, with at least one row.
    """
    rows = sorted(table.to_pylist(), key=lambda row: (row["duration_ns"], row["number"]))
    middle: dict[str, Any] = rows[(len(rows) - 1) // 2]
    return middle


def iterations_text(table: "pa.Table") -> list[str]:
    """Return sentences on iterations: how many, what the median one costs, the first one's time.

    Args:
        table: `gpuviz.Recording.iterations`, with at least one row.
    """
    first, middle = table.slice(0, 1).to_pylist()[0], median_iteration(table)
    durations = table["duration_ns"].to_pylist()
    busy = format_share(middle["busy_ns"] / max(middle["duration_ns"], 1))
    shortest, longest = map(format_duration, (min(durations), max(durations)))
    median = (
        f"The median one, number {middle['number']}, takes {format_duration(middle['duration_ns'])}"
        f" ({shortest} to {longest} in all), with a peak of {format_bytes(middle['peak_bytes'])} "
        f"and the GPU busy for {busy} of it."
    )
    counted = format_counted(table.num_rows, "iteration")
    sentences = [f"{counted}: {_origin(first['name'])}.", median]
    rest = table.slice(1)
    if rest.num_rows:
        sentences.append(_first_against(first, median_iteration(rest)))
    return sentences


def iterations_panel(recording: "Recording", device: int) -> str:
    """Return the section on the iterations of `gpuviz.Recording.iterations`; empty without any."""
    table = recording.iterations(device)
    if not table.num_rows:
        return ""
    middle = median_iteration(table)
    text = " ".join(iterations_text(table))
    drawn = ";".join(
        f"{row['start']},{row['end']},{row['peak_bytes']}"
        for row in table.slice(0, _MOST_DRAWN).to_pylist()
    )
    body = (
        f'<p data-iterations="{drawn}">{with_code(text)} '
        f"{_link(middle, 'Show one iteration')}</p>\n"
        f"{_table(table, middle)}\n"
        f'<p class="gpuviz-section__hint">{_HINT}</p>'
    )
    return panel("Iterations", body, slug="iterations", count=table.num_rows)


def _origin(name: str) -> str:
    return f"the ranges `{name}`" if name else "the same lines launch work again and again"


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


def _table(table: "pa.Table", middle: dict[str, Any]) -> str:
    rows = table.to_pylist()
    largest = {name: max(row[name] for row in rows) for name in _WITH_BARS}
    most = _MOST_ROWS if len(rows) <= _MOST_ROWS else _MOST_ROWS - 2
    slowest = sorted(rows, key=lambda row: -row["duration_ns"])[:most]
    chosen = {row["number"] for row in [rows[0], middle, *slowest]}
    body = "\n".join(_row(row, middle, largest) for row in rows if row["number"] in chosen)
    shown = sortable_table("Iterations", ["Iteration", *(title for title, _, _ in _COLUMNS)], body)
    if len(chosen) == len(rows):
        return shown
    return (
        f"{shown}<p>The first, the median and the slowest of {format_count(len(rows))}; all: "
        "<code>recording.iterations()</code></p>"
    )


def _row(row: dict[str, Any], middle: dict[str, Any], largest: dict[str, int]) -> str:
    number = row["number"]
    mark = "first" if number == 1 else "median" if number == middle["number"] else ""
    detail = f' <span class="gpuviz-place">{mark}</span>' if mark else ""
    name = f'<td data-sort="{number}">{_link(row, format_count(number))}{detail}</td>'
    cells = "".join(
        f'<td data-sort="{row[column]}">{_bar(row, column, largest)}{form(row[column])}</td>'
        for _, column, form in _COLUMNS
    )
    return f"<tr>{name}{cells}</tr>"


def _link(row: dict[str, Any], text: str) -> str:
    return (
        f'<button type="button" class="gpuviz-link" data-show="{row["start"]}-{row["end"]}">'
        f"{escape(text)}</button>"
    )


def _bar(row: dict[str, Any], column: str, largest: dict[str, int]) -> str:
    is_drawn = column in _WITH_BARS and row[column]
    return cell_bar(row[column], largest[column]) if is_drawn else ""
