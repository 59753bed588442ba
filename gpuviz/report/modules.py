"""The modules of a neural network: their memory at the peak, and their time on the GPU."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from gpuviz.present.section import (
    Cell,
    Section,
    hint,
    of_bytes,
    of_count,
    of_time,
    table,
    text,
)
from gpuviz.quantities import format_count

if TYPE_CHECKING:
    from gpuviz.recording import Recording

_MOST_ROWS = 200
_COLUMNS: tuple[tuple[str, str, Callable[[int | None], Cell]], ...] = (
    ("At the peak", "peak_bytes", of_bytes),
    ("Activations", "activation_bytes", of_bytes),
    ("Forward", "forward_ns", of_time),
    ("Backward", "backward_ns", of_time),
    ("Other", "other_ns", of_time),
    ("Launches", "launches", of_count),
    ("Allocated", "total_bytes", of_bytes),
)
_HINT = (
    "Each row has what the module does itself, without the modules that it calls. Times are those "
    "of its kernels on the GPU. Work of a backward pass belongs to the module whose gradients it "
    "computes, and activations are what a forward pass keeps for it at the peak."
)
_NO_MODULE = "no module, or unknown"


def modules_section(recording: "Recording", device: int) -> Section | None:
    """Return the section on the modules of `gpuviz.Recording.modules`; None without any."""
    rows = recording.modules(device).to_pylist()
    count = sum(row["module"] != "" for row in rows)
    if not count:
        return None
    titles = ("Module", *(title for title, _, _ in _COLUMNS))
    parts = [table("Modules", titles, map(_row, rows[:_MOST_ROWS]))]
    if len(rows) > _MOST_ROWS:
        of_all = f"{format_count(_MOST_ROWS)} of {format_count(len(rows))}"
        parts.append(text(f"{of_all}; all: `recording.modules()`"))
    return Section("modules", "Modules", (*parts, hint(_HINT)), count)


def _row(row: dict[str, Any]) -> Iterator[Cell]:
    yield Cell(code=row["module"]) if row["module"] else Cell(_NO_MODULE)
    for _, column, cell in _COLUMNS:
        yield cell(row[column] or None)
