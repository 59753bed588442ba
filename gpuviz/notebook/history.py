"""The recorded runs of a notebook's cells, each compared with earlier runs of the same cell."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpuviz.analysis.cell_runs import CellRun, cell_runs
from gpuviz.present.markup import columns, html, inline_table
from gpuviz.quantities import format_bytes, format_duration, format_share
from gpuviz.terminal import printable

if TYPE_CHECKING:
    from gpuviz.recorder.recorder import Recorder

# Runs that a long session keeps; the oldest are forgotten first.
MOST_RUNS = 1000
NOTHING_RECORDED = "No cell that used the GPU has been recorded yet."
# A peak is worse if it is above all earlier ones by this share, and by this many bytes.
_WORSE_PEAK = 0.05
_LEAST_BYTES = 1 << 20
# A time is worse if it is longer than that of each earlier run but the first, by this share and by
# this much. Too few runs to separate noise.
_WORSE_TIME = 0.2
_LEAST_NS = 1_000_000
_FEWEST_TIMES = 3
_LONGEST_SOURCE = 60
_MAGIC = re.compile(r"%%gpuviz\b.*\n?")
_UNKNOWN = "unknown"
_COLUMNS = ("text-align:left;white-space:nowrap",) * 2 + columns("nnnt")
_BAR = (
    '<div style="width:80px;margin-left:auto"><div style="width:{share}%;height:4px;'
    'margin-left:auto;background:{color}"></div></div>'
)
_USUAL, _WORSE = "#4a90d9", "#d9534a"


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """A run of a cell among the other runs of it.

    Attributes:
        run: Its costs.
        source: The first line of the cell's text, without ``%%gpuviz``; empty if unknown.
        worse: How it is worse than the earlier runs, in words; empty if it is not.
    """

    run: CellRun
    source: str
    worse: str


class History:
    """The recorded cells of a notebook; its text and HTML are a table with a row for each run.

    A cell that runs again is recognized by its text, ``%%gpuviz`` aside.

    Args:
        shell: The IPython shell.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._runs: dict[int, tuple[CellRun, str]] = {}

    def add(self, recorder: "Recorder") -> None:
        """Add the cells of a recorder; of a cell that is known already, the longer run counts."""
        for run in cell_runs(recorder.recording, streams=recorder.status().streams):
            known = self._runs.get(run.number)
            if known is None or known[0].duration_ns <= run.duration_ns:
                self._runs[run.number] = run, self._source(run.number)
        for number in sorted(self._runs)[:-MOST_RUNS]:
            del self._runs[number]

    def rows(self) -> list[HistoryRow]:
        """Return the runs in their order, each compared with the earlier runs of the same cell."""
        earlier: dict[str, list[CellRun]] = {}
        found = []
        for number in sorted(self._runs):
            run, source = self._runs[number]
            before = earlier.setdefault(source, []) if source else []
            lines = source.splitlines()
            found.append(HistoryRow(run, _cut(lines[0] if lines else ""), worse(run, before)))
            before.append(run)
        return found

    def _source(self, number: int) -> str:
        """Return the text of a cell; empty if the shell does not have it."""
        inputs = getattr(self._shell.history_manager, "input_hist_raw", [])
        return _MAGIC.sub("", inputs[number], count=1).strip() if number < len(inputs) else ""

    def __repr__(self) -> str:
        return printable("\n".join(map(_text, self.rows()))) or NOTHING_RECORDED

    def _repr_html_(self) -> str:
        rows = self.rows()
        if not rows:
            return str(html("<div>{}</div>", NOTHING_RECORDED))
        most = max(1, *(row.run.peak_bytes for row in rows))
        names = ("cell", "", "peak", "time", "GPU busy", "")
        return str(inline_table(names, (_cells(row, most) for row in rows), _COLUMNS))


def worse(run: CellRun, earlier: Sequence[CellRun]) -> str:
    """Return how a run is worse than the earlier runs of the same cell; empty if it is not.

    A peak is worse if it is at least 5 % and 1 MiB above all earlier ones. A time is worse if it is
    at least 20 % and 1 ms longer than that of every earlier run, of at least three; the first does
    not count, since it may have compiled or loaded something. The increase is that over the run
    before.
    """
    said = []
    if earlier:
        last = earlier[-1]
        peak = max(each.peak_bytes for each in earlier)
        if run.peak_bytes >= peak + max(_WORSE_PEAK * peak, _LEAST_BYTES):
            said.append(f"peak +{format_bytes(run.peak_bytes - last.peak_bytes)}")
        if len(earlier) >= _FEWEST_TIMES:
            time = max(each.duration_ns for each in earlier[1:])
            if run.duration_ns >= time + max(_WORSE_TIME * time, _LEAST_NS):
                said.append(f"time +{format_duration(run.duration_ns - last.duration_ns)}")
    return f"since In [{earlier[-1].number}]: {', '.join(said)}" if said else ""


def _busy(run: CellRun) -> str:
    if run.busy_ns is None:
        return _UNKNOWN
    return format_share(run.busy_ns / max(run.duration_ns, 1))


def _text(row: HistoryRow) -> str:
    run = row.run
    costs = f"{format_bytes(run.peak_bytes):>10}  {format_duration(run.duration_ns):>8}"
    cell = f"In [{run.number}]"
    line = f"{cell:<9} {costs}  {_busy(run):>7}  {row.source}"
    return f"{line}  <- {row.worse}" if row.worse else line


def _cells(row: HistoryRow, most: int) -> tuple[str, ...]:
    run = row.run
    color = _WORSE if "peak" in row.worse else _USUAL
    share = f"{100 * run.peak_bytes / most:.0f}"
    return (
        f"In [{run.number}]",
        html("<code>{}</code>", row.source),
        html("{}{}", format_bytes(run.peak_bytes), html(_BAR, share=share, color=color)),
        format_duration(run.duration_ns),
        _busy(run),
        f"▲ {row.worse}" if row.worse else "",
    )


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_SOURCE else f"{text[: _LONGEST_SOURCE - 1]}…"
