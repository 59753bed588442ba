"""What keeps GPU memory alive, in a dashboard, with buttons that let go of it."""

from functools import partial
from typing import TYPE_CHECKING

import ipywidgets

from gpuviz.notebook.cells import between_cells, is_on_main_thread
from gpuviz.notebook.closing import close_parts
from gpuviz.ownership.held_memory import held_memory_html
from gpuviz.ownership.holders import holders, release
from gpuviz.present.markup import html
from gpuviz.quantities import format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuviz.ownership.held_memory import HeldMemory, Release

MOST_BUTTONS = 8


class KeptAlive(ipywidgets.VBox):  # type: ignore[misc] # ipywidgets has no types
    """The blocks of memory in use with their holders, and a button for each that can be let go.

    Nothing is shown, and nothing is searched, before `search`.
    """

    def __init__(self) -> None:
        self._text = ipywidgets.HTML()
        self._buttons = ipywidgets.Box(layout={"flex_flow": "row wrap"})
        super().__init__([self._text, self._buttons])

    def search(self) -> None:
        """Show what keeps memory alive now, or when the cell has ended."""
        self._between_cells(self._show)

    def _between_cells(self, action: "Callable[[], None]") -> None:
        # Objects are not looked at, and not let go, on another thread than the program's.
        if not is_on_main_thread():
            self._text.value = "Available when the cell has ended."
        between_cells(action)

    def _show(self, before: str = "") -> None:
        """Search, and show the result after a sentence."""
        held = holders()
        said = html("<p>{}</p>", before) if before else ""
        self._text.value = said + held_memory_html(held, releases=False)
        self._offer(held)

    def _offer(self, held: "HeldMemory") -> None:
        before = self._buttons.children
        self._buttons.children = [self._button(each) for each in held.releases[:MOST_BUTTONS]]
        for button in before:
            close_parts(button)
            button.close()

    def _button(self, offered: "Release") -> ipywidgets.Button:
        button = ipywidgets.Button(
            description=f"{offered.title}: {format_bytes(offered.nbytes)}",
            tooltip=offered.code,
            layout={"width": "auto"},
        )
        button.on_click(partial(self._press, offered))
        return button

    def _press(self, offered: "Release", _button: object) -> None:
        self._between_cells(partial(self._let_go, offered))

    def _let_go(self, offered: "Release") -> None:
        try:
            freed = release(offered)
        except ValueError as error:
            # It has changed since the search.
            self._show(f"{error}.")
        else:
            self._show(f"Freed {format_bytes(freed)}.")
