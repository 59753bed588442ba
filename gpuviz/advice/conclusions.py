"""The conclusions of a recording, read from its file or computed on first use."""

from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from gpuviz._core import DeviceError
from gpuviz.advice.finding import Evidence, Finding, Line
from gpuviz.advice.findings import findings
from gpuviz.analysis.columns import plain
from gpuviz.analysis.iterations import iterations
from gpuviz.analysis.processes import part_of_device
from gpuviz.analysis.what_if import what_if
from gpuviz.hazards.hazards import judge
from gpuviz.recording.conclusions import fitting, marked, schemas

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from gpuviz.advice.peak_chain import Maxima
    from gpuviz.recording.recording import Recording

# Rows of memory events and activities whose conclusions take about a tenth of a second.
_MOST_CHEAP_ROWS = 10_000
# Memory events; replays of more would take a noticeable part of writing a report.
_MOST_REPLAYED = 200_000
# Activities and CUDA calls; judging more would take a noticeable part of writing a report.
_MOST_JUDGED = 1_000_000
_TOO_LONG = "The recording is very long; `gpuviz hazards` judges it."
# What a damaged recording leads to may be larger.
_MOST = 2**63 - 1


class Conclusions:
    """The findings of a recording, its hazards, its memory under other settings, its iterations.

    Each is computed at most once. The recording is an argument of every method, since it keeps
    these conclusions itself.

    Args:
        stored: Tables of the recording's file by name, in the form of
            `gpuviz.recording.conclusions.marked`; those that do not fit are ignored.

    Attributes:
        uses: The levels of the peak that follow from the uses of blocks, by device; None until the
            findings or `gpuviz.advice.peak_chain` have computed them.
    """

    def __init__(self, stored: "Mapping[str, pa.Table]") -> None:
        self._stored = dict(stored)
        self._findings: tuple[Finding, ...] | None = None
        self._what_if: dict[int, pa.Table] = {}
        self._iterations: dict[int, pa.Table] = {}
        self._hazards: pa.Table | str | None = None
        self.uses: dict[int, Maxima] | None = None

    def findings(self, recording: "Recording") -> tuple[Finding, ...]:
        """Return the findings that are worth showing, most saving first."""
        self._read(recording)
        if self._findings is None:
            self._findings = findings(recording)
        return self._findings

    def what_if(self, recording: "Recording", device: int) -> "pa.Table":
        """Return what a device would need under the settings that matter.

        Raises:
            ValueError: The recording lacks the description of the device or of a stream.
        """
        self._read(recording)
        if device not in self._what_if:
            self._what_if[device] = what_if(recording, device=device)
        return self._what_if[device]

    def iterations(self, recording: "Recording", device: int) -> "pa.Table":
        """Return the iterations of the program's main loop, and their costs on a device."""
        self._read(recording)
        if device not in self._iterations:
            self._iterations[device] = iterations(part_of_device(recording, device), device)
        return self._iterations[device]

    def hazards(self, recording: "Recording") -> "pa.Table | str":
        """Return the table of the hazards, or why they are unknown."""
        self._read(recording)
        if self._hazards is None:
            self._hazards = judge(recording)
        return self._hazards

    def affordable_hazards(self, recording: "Recording") -> "pa.Table | str":
        """Return the table of the hazards, or why they are unknown; none if it would take long."""
        self._read(recording)
        tables = recording.tables
        rows = tables["activities"].num_rows + tables["api_calls"].num_rows
        is_long = rows > _MOST_JUDGED and not recording.manifest.hazards
        return _TOO_LONG if is_long and self._hazards is None else self.hazards(recording)

    def take_hazards(self, known: "pa.Table | str") -> None:
        """Take the hazards of a recording with the same rows and more to judge by."""
        self._hazards = known

    def table(self, recording: "Recording", name: str) -> "pa.Table":
        """Return a table of `gpuviz.recording.conclusions.schemas` by name.

        Raises:
            ValueError: As `what_if`.
        """
        if name == "findings":
            return _findings_table(self.findings(recording))
        if name == "hazards":
            found = self.hazards(recording)
            return schemas()[name].empty_table() if isinstance(found, str) else found
        of_device = self.iterations if name == "iterations" else self.what_if
        return _joined(name, {each: of_device(recording, each) for each in recording.devices})

    def for_file(self, recording: "Recording") -> "dict[str, pa.Table]":
        """Return the marked tables of a file: what is known, or cheap to compute."""
        self._read(recording)
        rows = sum(recording.tables[name].num_rows for name in ("memory_events", "activities"))
        if rows <= _MOST_CHEAP_ROWS:
            # Whatever a rule makes of unusual rows, a recording must be saved.
            with suppress(Exception):
                self.findings(recording)
                self.table(recording, "iterations")
        return self.for_recorder(recording)

    def for_recorder(self, recording: "Recording") -> "dict[str, pa.Table]":
        """Return the marked tables of the file that a recorder writes: what it was asked for."""
        if recording.manifest.hazards:
            with suppress(Exception):
                self.hazards(recording)
        return self._known(recording)

    def for_report(self, recording: "Recording") -> "dict[str, pa.Table]":
        """Return the marked tables of a report; those of other settings only if affordable."""
        self.findings(recording)
        self.table(recording, "iterations")
        for device in recording.devices:
            with suppress(ValueError, DeviceError):
                self.affordable_what_if(recording, device)
        return self._known(recording)

    def affordable_what_if(self, recording: "Recording", device: int) -> "pa.Table | None":
        """Return what a device would need under other settings; None if that would take long.

        Raises:
            ValueError: As `what_if`.
        """
        self._read(recording)
        is_long = recording.tables["memory_events"].num_rows > _MOST_REPLAYED
        return self._what_if.get(device) if is_long else self.what_if(recording, device)

    def _known(self, recording: "Recording") -> "dict[str, pa.Table]":
        found = {} if self._findings is None else {"findings": _findings_table(self._findings)}
        by_device = {"what_if": self._what_if, "iterations": self._iterations}
        joined = {name: _joined(name, tables) for name, tables in by_device.items() if tables}
        if self._hazards is not None and not isinstance(self._hazards, str):
            found["hazards"] = self._hazards
        return marked({**found, **joined}, recording)

    def _read(self, recording: "Recording") -> None:
        stored, self._stored = self._stored, {}
        known = fitting(stored, recording)
        if "findings" in known:
            self._findings = tuple(map(_finding, known["findings"].to_pylist()))
        if self._hazards is None:
            self._hazards = known.get("hazards")
        if "what_if" in known:
            self._what_if |= _by_device(known["what_if"])
        if "iterations" in known:
            none = schemas()["iterations"].empty_table().drop_columns(["device"])
            self._iterations |= dict.fromkeys(recording.devices, none)
            self._iterations |= _by_device(known["iterations"])


def _joined(name: str, by_device: "Mapping[int, pa.Table]") -> "pa.Table":
    import pyarrow as pa

    schema = schemas()[name]
    parts = [schema.empty_table()]
    for device, rows in sorted(by_device.items()):
        devices = pa.array([device] * rows.num_rows, pa.int16())
        parts.append(rows.add_column(0, schema.field("device"), devices))
    return pa.concat_tables(parts)


def _by_device(table: "pa.Table") -> "dict[int, pa.Table]":
    devices = plain(table["device"])
    rows = table.drop_columns(["device"])
    return {device: rows.filter(devices == device) for device in set(devices.tolist())}


def _findings_table(found: "Sequence[Finding]") -> "pa.Table":
    import pyarrow as pa

    return pa.Table.from_pylist(list(map(_row, found)), schemas()["findings"])


def _row(finding: Finding) -> dict[str, Any]:
    row = {name: getattr(finding, name) for name in schemas()["findings"].names}
    row |= {name: min(row[name], _MOST) for name in row if isinstance(row[name], int)}
    row["lines"] = list(map(asdict, finding.lines))
    row["evidence"] = [
        {
            "table": each.table,
            "rows": list(each.rows),
            "begin": each.window[0],
            "end": min(each.window[1], _MOST),
        }
        for each in (finding.evidence,)
        if each is not None
    ]
    return row


def _finding(row: dict[str, Any]) -> Finding:
    evidence = [
        Evidence(each["table"], tuple(each["rows"]), (each["begin"], each["end"]))
        for each in row["evidence"]
    ]
    changed = {
        "lines": tuple(Line(**line) for line in row["lines"]),
        "evidence": evidence[0] if evidence else None,
    }
    return Finding(**(row | changed))
