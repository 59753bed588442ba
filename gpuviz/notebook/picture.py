"""Small picture of part of a recording: memory over time, and a lane per stream."""

from base64 import b64encode
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gpuviz.analysis.stream_names import stream_names
from gpuviz.data.columns import codes, plain
from gpuviz.data.tables import DICTIONARIES
from gpuviz.figures.palette import ALLOCATED, COPIES, KERNEL, MEMSET
from gpuviz.present.markup import html
from gpuviz.quantities import format_bytes, format_duration

if TYPE_CHECKING:
    from gpuviz.recording import Recording

_COLUMNS = 560
_GUTTER = 150
_WIDTH = _GUTTER + _COLUMNS + 10
_LEVELS_HEIGHT = 72
_LANE_HEIGHT = 12
_LANE_GAP = 4
_MOST_LANES = 8
_LONGEST_NAME = 22

_LINE = "#8a8f98"
_TEXT = "#26292e"

# Shapes in a lane: class, top, height and colour. They differ not only by colour.
_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
_KINDS = DICTIONARIES["activities", "kind"]
_SHAPES = {
    "kernel": (0, _LANE_HEIGHT, KERNEL),
    "copy": (0, _LANE_HEIGHT // 2, COPIES["host_to_device"]),
    "copy out": (_LANE_HEIGHT // 2, _LANE_HEIGHT // 2, COPIES["device_to_host"]),
    "memset": (_LANE_HEIGHT // 2 - 1, 3, MEMSET),
}


def picture(recording: "Recording", start: int, end: int) -> str:
    """Return an image element of the time from ``start`` to ``end`` in ns; empty if there is none.

    An image with embedded source is shown even where styles and inline SVG are removed, as in
    JupyterLab for untrusted notebooks.
    """
    drawn = svg(recording, start, end)
    if not drawn:
        return ""
    source = b64encode(drawn.encode()).decode()
    return html(
        '<img class="gpuviz-picture" alt="{}" style="max-width:100%" '
        'src="data:image/svg+xml;base64,{}">',
        _description(start, end),
        source,
    )


def svg(recording: "Recording", start: int, end: int) -> str:
    """Return an SVG element of the time from ``start`` to ``end`` in ns; empty if there is none.

    Each column of pixels shows the maximum of its time, so that short peaks are visible.
    """
    if end <= start:
        return ""
    parts: list[str] = []
    top = 14
    for device in recording.devices[:2]:
        parts += _levels(recording, device, start, end, top)
        top += _LEVELS_HEIGHT + 18
    lanes = _lanes(recording, start, end)
    for name, columns_of in lanes[:_MOST_LANES]:
        parts += _lane(name, columns_of, top)
        top += _LANE_HEIGHT + _LANE_GAP
    if lanes:
        rest = len(lanes) - _MOST_LANES
        more = f"; {rest} more streams not shown" if rest > 0 else ""
        legend = f"full height: kernels; upper half: copies; lower half: copies to the host{more}"
        parts.append(_text(_GUTTER, top + 10, legend))
        top += 16
    if not parts:
        return ""
    parts.append(_text(_GUTTER, top + 10, "0"))
    parts.append(_text(_GUTTER + _COLUMNS, top + 10, format_duration(end - start), anchor="end"))
    height = top + 16
    return (
        f'<svg width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'xmlns="http://www.w3.org/2000/svg" font-family="system-ui,sans-serif" font-size="11" '
        f'fill="{_TEXT}" aria-label="{_description(start, end)}">'
        f'<rect width="{_WIDTH}" height="{height}" rx="4" fill="#fff"/>{"".join(parts)}</svg>'
    )


def _description(start: int, end: int) -> str:
    return f"Memory and streams over {format_duration(end - start)}"


def _levels(
    recording: "Recording",
    device: int,
    start: int,
    end: int,
    top: int,
) -> Iterator[str]:
    levels = recording.memory_levels
    levels = levels.filter(plain(levels["device"]) == device)
    if not levels.num_rows:
        return
    times = plain(levels["time"])
    allocated, reserved = (
        _column_maxima(times, plain(levels[name]), start, end) for name in ("allocated", "reserved")
    )
    highest = max(int(allocated.max()), int(reserved.max()), 1)
    bottom = top + _LEVELS_HEIGHT
    heights = [(column * (_LEVELS_HEIGHT / highest)).round(1) for column in (allocated, reserved)]
    area = _steps(heights[0], bottom)
    yield (f'<path class="allocated" fill="{ALLOCATED}" d="M{_GUTTER} {bottom}{area}V{bottom}Z"/>')
    if reserved.max() > 0:
        line = _steps(heights[1], bottom)
        yield (
            f'<path class="reserved" fill="none" stroke="{_TEXT}" stroke-dasharray="4 3" '
            f'd="M{_GUTTER} {bottom - heights[1][0]:g}{line}"/>'
        )
    yield (
        f'<rect fill="none" stroke="{_LINE}" x="{_GUTTER}" '
        f'y="{top}" width="{_COLUMNS}" height="{_LEVELS_HEIGHT}"/>'
    )
    name = f"device {device}, " if len(recording.devices) > 1 else ""
    yield _text(_GUTTER - 8, top + 10, f"{name}{format_bytes(highest)}", anchor="end")
    yield _text(_GUTTER - 8, top + 26, "allocated (filled)", anchor="end")
    yield _text(_GUTTER - 8, top + 40, "reserved (dashed)", anchor="end")
    yield _text(_GUTTER - 8, bottom, "0 B", anchor="end")


def _column_maxima(
    times: np.ndarray,
    values: np.ndarray,
    start: int,
    end: int,
) -> np.ndarray:
    """Return the maximum value in each column of pixels."""
    edges = start + (end - start) * np.arange(_COLUMNS) // _COLUMNS
    before = np.searchsorted(times, edges, side="right") - 1
    highest = np.where(before >= 0, values[np.maximum(before, 0)], 0)
    inside = (times > start) & (times <= end)
    np.maximum.at(highest, _columns(times[inside], start, end), values[inside])
    return highest


def _columns(times: np.ndarray, start: int, end: int) -> np.ndarray:
    places = (np.clip(times, start, end) - start) * _COLUMNS // (end - start)
    columns: np.ndarray = np.minimum(places, _COLUMNS - 1)
    return columns


def _steps(heights: np.ndarray, bottom: int) -> str:
    changes = np.flatnonzero(np.diff(heights, prepend=heights[0] + 1))
    steps = [f"H{_GUTTER + column}V{bottom - heights[column]:g}" for column in changes.tolist()]
    return f"{''.join(steps)}H{_GUTTER + _COLUMNS}"


def _lanes(
    recording: "Recording",
    start: int,
    end: int,
) -> list[tuple[str, dict[str, np.ndarray]]]:
    """Return the name of each active stream, and its busy columns by shape."""
    table = recording.tables["activities"]
    kinds = codes(table["kind"], _KINDS)
    times, ends = plain(table["time"]), plain(table["end"])
    drawn = (kinds != _KINDS.index("range")) & (times <= end) & (ends >= start)
    table, kinds, times, ends = (
        table.filter(drawn),
        kinds[drawn],
        times[drawn],
        ends[drawn],
    )
    streams = plain(table["stream"])
    shapes = _shapes(kinds, codes(table["copy_kind"], _COPY_KINDS))
    names = stream_names(recording)
    first, last = _columns(times, start, end), _columns(ends, start, end)
    return [
        (
            names.get(stream, f"stream {stream}"),
            {
                shape: _covered(first[rows], last[rows])
                for number, shape in enumerate(_SHAPES)
                if (rows := (streams == stream) & (shapes == number)).any()
            },
        )
        for stream in np.unique(streams).tolist()
    ]


def _shapes(kinds: np.ndarray, copy_kinds: np.ndarray) -> np.ndarray:
    """Return the position in ``_SHAPES`` of each activity."""
    shapes = np.zeros(len(kinds), np.int8)
    copies = kinds == _KINDS.index("memcpy")
    to_host = copy_kinds == _COPY_KINDS.index("device_to_host")
    names = list(_SHAPES)
    shapes[copies] = names.index("copy")
    shapes[copies & to_host] = names.index("copy out")
    shapes[kinds == _KINDS.index("memset")] = names.index("memset")
    return shapes


def _covered(first: NDArray[np.int64], last: NDArray[np.int64]) -> np.ndarray:
    """Return begin and length of each run of columns that an interval overlaps."""
    changes = np.zeros(_COLUMNS + 1, np.int64)
    np.add.at(changes, first, 1)
    np.add.at(changes, last + 1, -1)
    runs = np.diff((np.cumsum(changes)[:-1] > 0).astype(np.int8), prepend=0, append=0)
    begins, ends = np.flatnonzero(runs > 0), np.flatnonzero(runs < 0)
    return np.stack([begins, ends - begins], axis=1)


def _lane(name: str, columns_of: dict[str, np.ndarray], top: int) -> Iterator[str]:
    # Names of streams differ at their ends, as in `workers #2`.
    half = _LONGEST_NAME // 2
    short = name if len(name) <= _LONGEST_NAME else f"{name[: half - 1]}…{name[-half:]}"
    yield _text(_GUTTER - 8, top + 10, short, anchor="end")
    yield (
        f'<line stroke="{_LINE}" x1="{_GUTTER}" '
        f'x2="{_GUTTER + _COLUMNS}" y1="{top + _LANE_HEIGHT}" y2="{top + _LANE_HEIGHT}"/>'
    )
    for shape, runs in columns_of.items():
        offset, height, colour = _SHAPES[shape]
        path = "".join(
            f"M{_GUTTER + begin} {top + offset}h{length}v{height}h-{length}z"
            for begin, length in runs.tolist()
        )
        part = shape.split()[0]
        yield f'<path class="{part}" fill="{colour}" d="{path}"/>'


def _text(x: int, y: int, text: str, *, anchor: str = "start") -> str:
    return html('<text x="{}" y="{}" text-anchor="{}">{}</text>', x, y, anchor, text)
