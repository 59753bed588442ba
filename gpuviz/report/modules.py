"""The modules of a neural network as HTML: their memory at the peak, and their time on the GPU."""

from typing import TYPE_CHECKING, Any

from gpuviz.present.markup import html, panel, table
from gpuviz.quantities import format_bytes, format_count, format_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpuviz.recording import Recording

_MOST_ROWS = 200
_COLUMNS: "tuple[tuple[str, str, Callable[[int], str]], ...]" = (
    ("At the peak", "peak_bytes", format_bytes),
    ("Activations", "activation_bytes", format_bytes),
    ("Forward", "forward_ns", format_duration),
    ("Backward", "backward_ns", format_duration),
    ("Other", "other_ns", format_duration),
    ("Launches", "launches", format_count),
    ("Allocated", "total_bytes", format_bytes),
)
_HINT = (
    "Each row has what the module does itself, without the modules that it calls. Times are those "
    "of its kernels on the GPU. Work of a backward pass belongs to the module whose gradients it "
    "computes, and activations are what a forward pass keeps for it at the peak."
)
_NO_MODULE = "no module, or unknown"


def modules_panel(recording: "Recording", device: int) -> str:
    """Return the section on the modules of `gpuviz.Recording.modules`; empty without any."""
    rows = recording.modules(device).to_pylist()
    count = sum(row["module"] != "" for row in rows)
    if not count:
        return ""
    titles = ("Module", *(title for title, _, _ in _COLUMNS))
    shown = table("Modules", titles, map(_row, rows[:_MOST_ROWS]))
    if len(rows) > _MOST_ROWS:
        shown += html(
            "<p>{} of {}; all: <code>recording.modules()</code></p>",
            format_count(_MOST_ROWS),
            format_count(len(rows)),
        )
    body = html('{}\n<p class="gpuviz-section__hint">{}</p>', shown, _HINT)
    return panel("Modules", body, slug="modules", count=count)


def _row(row: dict[str, Any]) -> "Iterator[str]":
    yield html("<code>{}</code>", row["module"]) if row["module"] else _NO_MODULE
    for _, column, form in _COLUMNS:
        yield form(row[column]) if row[column] else ""
