"""The iterations of a program: what one costs, the first against the rest, and a table."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gpuviz.analysis.iterations import median_iteration
from gpuviz.present.section import (
    Cell,
    Part,
    Row,
    Section,
    hint,
    of_bytes,
    of_count,
    of_time,
    table,
    text,
)
from gpuviz.quantities import (
    format_bytes,
    format_count,
    format_counted,
    format_duration,
    format_share,
)

if TYPE_CHECKING:
    from gpuviz.recording import Recording


# Title, column and the cells of its values.
_Column = tuple[str, str, Callable[[int | None], Cell]]

_MOST_ROWS = 50
_UNRECORDED = ("If not recorded", "unrecorded_ns", of_time)
_COLUMNS: tuple[_Column, ...] = (
    ("Time", "duration_ns", of_time),
    ("Peak", "peak_bytes", of_bytes),
    ("GPU busy", "busy_ns", of_time),
    ("Host blocked", "wait_ns", of_time),
    ("Kernel time", "kernel_ns", of_time),
    ("Launches", "kernel_count", of_count),
    ("Copies", "copy_ns", of_time),
    ("Copied", "copy_bytes", of_bytes),
)
_PHASES: tuple[_Column, ...] = (
    ("Forward", "forward_ns", of_time),
    ("Backward", "backward_ns", of_time),
    ("Optimizer", "optimizer_ns", of_time),
)
_HINT = (
    "Time, peak, GPU busy and host blocked are those from its start to its end. Kernels and copies "
    "are those that the host launched in it, even if they ran later."
)


def iterations_text(iterations: pa.Table) -> list[str]:
    """Return sentences on iterations: how many, what the median one costs, the first one's time.

    Args:
        iterations: `gpuviz.Recording.iterations`, with at least one row.
    """
    first, middle = iterations.slice(0, 1).to_pylist()[0], median_iteration(iterations)
    durations = iterations["duration_ns"].to_pylist()
    busy = format_share(middle["busy_ns"] / max(middle["duration_ns"], 1))
    and_busy = f" and the GPU busy for {busy} of it" if _has_work(iterations) else ""
    shortest, longest = map(format_duration, (min(durations), max(durations)))
    median = (
        f"The median one, number {middle['number']}, takes {format_duration(middle['duration_ns'])}"
        f" ({shortest} to {longest} in all), with a peak of "
        f"{format_bytes(middle['peak_bytes'])}{and_busy}."
    )
    counted = format_counted(iterations.num_rows, "iteration")
    sentences = [f"{counted}: {_origin(middle, has_work=_has_work(iterations))}.", median]
    if phases := _phases([middle]):
        parts = [f"{title.lower()} {cell(middle[name]).text}" for title, name, cell in phases]
        sentences.append(f"Of its kernel time, {', '.join(parts)}.")
    rest = iterations.slice(1)
    if rest.num_rows:
        sentences.append(_first_against(first, median_iteration(rest)))
    return sentences


def iterations_section(recording: "Recording", device: int) -> Section | None:
    """Return the section on the iterations of `gpuviz.Recording.iterations`; None without any."""
    found = recording.iterations(device)
    if not found.num_rows:
        return None
    found = _with_unrecorded(recording, found, device)
    middle = median_iteration(found)
    parts = (
        text(" ".join(iterations_text(found))),
        text("Show one iteration", _window(middle)),
        *_table(found, middle),
        *([hint(_HINT)] if _has_work(found) else []),
    )
    return Section("iterations", "Iterations", parts, found.num_rows)


def _with_unrecorded(recording: "Recording", found: pa.Table, device: int) -> pa.Table:
    """Return iterations with the time that each takes if it is not recorded, where it is known."""
    unrecorded = recording.compensated()
    if unrecorded.tables is recording.tables:
        return found
    others = unrecorded.iterations(device)
    if others.num_rows != found.num_rows:
        return found
    return found.append_column(_UNRECORDED[1], others["duration_ns"])


def _has_work(iterations: pa.Table) -> bool:
    """Return whether anything but memory is known of iterations."""
    names = ("busy_ns", "kernel_count", "copy_bytes", "wait_ns")
    return any(any(iterations[name].to_pylist()) for name in names)


def _origin(row: dict[str, Any], *, has_work: bool) -> str:
    if row["name"]:
        return f"the ranges `{row['name']}`"
    if row["optimizer_ns"] or not has_work:
        return "each ends with a step of an optimizer"
    return "the same lines launch work again and again"


def _phases(rows: list[dict[str, Any]]) -> list[_Column]:
    """Return the columns of the parts of a training step that some of these iterations have."""
    return [each for each in _PHASES if any(row[each[1]] for row in rows)]


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


def _table(iterations: pa.Table, middle: dict[str, Any]) -> list[Part]:
    """Return the first iteration, the median one, and the others, slowest first."""
    rows = iterations.to_pylist()
    slowest = sorted(rows, key=lambda row: -row["duration_ns"])
    ordered = {row["number"]: row for row in [rows[0], middle, *slowest]}
    chosen = (_UNRECORDED, *_COLUMNS, *_phases(rows))
    of_memory = ("duration_ns", "peak_bytes")
    known = iterations.schema.names if _has_work(iterations) else of_memory
    columns = [each for each in chosen if each[1] in known]
    titles = ("Iteration", *(title for title, _, _ in columns))
    body = (_row(row, middle, columns) for row in [*ordered.values()][:_MOST_ROWS])
    shown = [table("Iterations", titles, body)]
    if len(rows) > _MOST_ROWS:
        count = format_count(len(rows))
        chosen_rows = f"The first, the median and the slowest of {count}"
        shown.append(text(f"{chosen_rows}; all: `recording.iterations()`"))
    return shown


def _row(row: dict[str, Any], middle: dict[str, Any], columns: Iterable[_Column]) -> Row:
    number = row["number"]
    mark = "first" if number == 1 else "median" if number == middle["number"] else ""
    cells = (cell(row[column] or None) for _, column, cell in columns)
    return Row((Cell(format_count(number), number, place=mark), *cells), _window(row))


def _window(row: dict[str, Any]) -> tuple[int, int]:
    return row["start"], row["end"]
