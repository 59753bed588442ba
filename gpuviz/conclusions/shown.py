"""Conclusions as a page shows them: with their sentences, and the places that they lead to."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import pyarrow as pa

from gpuviz.advice.finding import Finding
from gpuviz.conclusions.hazards import arrows, hazard_conclusions
from gpuviz.conclusions.item import AT_ONCE, FIRST, Item
from gpuviz.conclusions.links import evidence_rows, rows_of
from gpuviz.conclusions.ranking import conclusions
from gpuviz.data.call_stacks import short_site
from gpuviz.data.conclusions import schemas
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData

_NOWHERE = (-1, -1)
# A rank that comes last keeps the devices of all others waiting.
_OF_ALL = {"R48"}


def items_of(
    recording: RecordingData,
    found: Sequence[Finding],
    arrows: Sequence[tuple[int, int] | None] = (),
) -> list[Item]:
    """Return conclusions for a page, with the places that they lead to."""
    shown = []
    for number, (each, arrow) in enumerate(zip_longest(found, arrows), 1):
        tab, rows = ("hazards", ()) if arrow else rows_of(recording, each)
        shown.append(Item(number, each, tab if rows or arrow else "", rows, arrow))
    return shown


def shown_conclusions(recording: RecordingData) -> pa.Table:
    """Return the lists of each device as the table ``shown``, from which a browser renders them."""
    rows = [
        _row(recording, device, name, item)
        for device in recording.devices
        for name, items in (
            ("findings", findings_of(recording, device)),
            ("hazards", hazards_of(recording, device)),
        )
        for item in items
    ]
    return pa.Table.from_pylist(rows, schemas()["shown"])


def findings_of(recording: RecordingData, device: int) -> list[Item]:
    """Return the conclusions about a device, and what holds up all devices."""
    return items_of(recording, _by_device(recording)[device])


@Once
def _by_device(recording: RecordingData) -> dict[int, list[Finding]]:
    found: dict[int, list[Finding]] = {device: [] for device in recording.devices}
    for each in conclusions(recording):
        for device in recording.devices if each.rule in _OF_ALL else (each.device,):
            found.setdefault(device, []).append(each)
    return found


def hazards_of(recording: RecordingData, device: int) -> list[Item]:
    """Return the hazards of a device."""
    return items_of(recording, hazard_conclusions(recording, device), arrows(recording, device))


def _row(recording: RecordingData, device: int, name: str, item: Item) -> dict[str, Any]:
    said = item.said
    begin, end = said.evidence.window if said.evidence else _NOWHERE
    first, second = item.arrow or _NOWHERE
    evidence_of, evidence = evidence_rows(recording, device, said.evidence)
    return {
        "device": device,
        "list": name,
        "number": item.number,
        "is_alarm": int(said.is_alarm),
        "is_first": int(name == "findings" and item.number <= FIRST),
        "is_folded": int(item.number > AT_ONCE),
        "title": said.title,
        "saving": item.saving,
        "sentences": item.sentences,
        "sources": [line.source.strip() for line in said.lines],
        "sites": [line.site for line in said.lines],
        "short_sites": [short_site(line.site) for line in said.lines],
        "amounts": [line.amount for line in said.lines],
        "begin": begin,
        "end": end,
        "tab": item.tab,
        "rows": item.rows,
        "first_activity": first,
        "second_activity": second,
        "evidence_of": evidence_of,
        "evidence": evidence,
    }
