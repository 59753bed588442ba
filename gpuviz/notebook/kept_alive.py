"""What keeps GPU memory alive, in a dashboard, with buttons that let go of it."""

from collections.abc import Callable
from functools import partial

from gpuviz.notebook.cells import between_cells, is_on_main_thread
from gpuviz.ownership.held_memory import Release, held_memory_html
from gpuviz.ownership.holders import holders, release
from gpuviz.present.markup import html
from gpuviz.quantities import format_bytes

MOST_BUTTONS = 8


class KeptAlive:
    """The blocks of memory in use with their holders, and what can be let go.

    Nothing is searched before `search`.

    Args:
        show: Takes the blocks as HTML.
        offer: Takes the label and the code of each button.
    """

    def __init__(
        self, show: Callable[[str], None], offer: Callable[[list[tuple[str, str]]], None]
    ) -> None:
        self._show, self._offer = show, offer
        self._offered: tuple[Release, ...] = ()

    def search(self) -> None:
        """Show what keeps memory alive now, or when the cell has ended."""
        self._between_cells(self._search)

    def let_go(self, number: int) -> None:
        """Let go of what a button offers, now or when the cell has ended.

        Raises:
            IndexError: There is no such button.
        """
        self._between_cells(partial(self._let_go, self._offered[number]))

    def _between_cells(self, action: Callable[[], None]) -> None:
        # Objects are not looked at, and not let go, on another thread than the program's.
        if not is_on_main_thread():
            self._show("Available when the cell has ended.")
        between_cells(action)

    def _search(self, before: str = "") -> None:
        """Search, and show the result after a sentence."""
        held = holders()
        said = html("<p>{}</p>", before) if before else ""
        self._offered = held.releases[:MOST_BUTTONS]
        self._show(said + held_memory_html(held, releases=False))
        self._offer(
            [(f"{each.title}: {format_bytes(each.nbytes)}", each.code) for each in self._offered]
        )

    def _let_go(self, offered: Release) -> None:
        try:
            freed = release(offered)
        except ValueError as error:
            # It has changed since the search.
            self._search(f"{error}.")
        else:
            self._search(f"Freed {format_bytes(freed)}.")
