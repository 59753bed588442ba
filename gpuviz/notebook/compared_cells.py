"""``%%gpuviz --compare``: a cell against its previous run."""

from gpuviz.comparison.text import diff_text
from gpuviz.present.markup import html
from gpuviz.recording import Recording
from gpuviz.recording_diff import Diff
from gpuviz.report.diff import diff_html

FIRST_RUN = "This is the first compared run of this cell. Run it again to see what changed."
# Cells whose last recordings are kept.
MOST_CELLS = 8


class ComparedCells:
    """The last recording of each compared cell, of the most recent ones only.

    A cell is recognized by the id that the front end sends, also after an edit. IPython in a
    terminal sends none: there, the previous compared cell is the previous run.
    """

    def __init__(self) -> None:
        self._last: dict[str, Recording] = {}

    def compared(self, cell: str, recording: Recording) -> tuple[str, str]:
        """Return what changed since the cell's previous run, as text and as HTML.

        Args:
            cell: The id of the cell; empty if unknown.
            recording: The recording of this run, which the next one is compared with.
        """
        before = self._last.pop(cell, None)
        self._last[cell] = recording
        for oldest in list(self._last)[:-MOST_CELLS]:
            del self._last[oldest]
        if before is None:
            return FIRST_RUN, html("<p>{}</p>", FIRST_RUN)
        found = Diff(before, recording)
        return diff_text(found), diff_html(found)
