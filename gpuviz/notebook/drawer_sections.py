"""What a dashboard's drawer says about a finished recording, as a report does."""

from typing import TYPE_CHECKING

from gpuviz.conclusions.shown import findings_of
from gpuviz.conclusions.wording import nothing_found, unknown
from gpuviz.present.markup import html, joined, part, parts_html
from gpuviz.report.sections import sections

if TYPE_CHECKING:
    from markupsafe import Markup

    from gpuviz.recording import Recording

# Of more, the sections take seconds, in which the program waits.
MOST_ROWS = 1_000_000


def is_short(recording: "Recording") -> bool:
    """Return whether the sections of a recording are found without keeping the program waiting."""
    tables = (recording.tables[name] for name in ("memory_events", "activities"))
    return sum(map(len, tables)) <= MOST_ROWS


def drawer_sections(recording: "Recording") -> list[tuple[int, str, str, str]]:
    """Return the device, the name, the title of the tab and the HTML of each section.

    The device is -1 for sections about the recording as a whole. The HTML has no text unescaped.
    """
    return [
        (
            device,
            section.name,
            section.tab,
            str(
                _findings(recording, device)
                if section.name == "findings"
                else parts_html(section.parts, "h4")
            ),
        )
        for device, found in sections(recording)
        for section in found
        if section.title
    ]


def _findings(recording: "Recording", device: int) -> "Markup":
    """Return the findings with buttons that lead to them."""
    shown = findings_of(recording, device)
    notes = [nothing_found(each.said for each in shown), *unknown(recording)]
    return joined(
        [
            *(part("folded", each, has_charts=True) for each in shown),
            *(html("<p>{}</p>", each) for each in notes if each),
        ]
    )
