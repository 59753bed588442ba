"""What keeps GPU memory alive, in a dashboard, with buttons that let go of it."""

import threading
from functools import partial
from html import escape
from typing import TYPE_CHECKING

import ipywidgets

from gpuviz.notebook.closing import close_parts
from gpuviz.ownership.held_memory import held_memory_html
from gpuviz.ownership.holders import holders, release
from gpuviz.quantities import format_bytes

if TYPE_CHECKING:
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

    def search(self, before: str = "") -> None:
        """Show what keeps memory alive now.

        Args:
            before: A sentence to show first.
        """
        if threading.current_thread() is not threading.main_thread():
            self._text.value = "Available when the cell has ended."
            return
        held = holders()
        said = f"<p>{escape(before)}</p>" if before else ""
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
        button.on_click(partial(self._let_go, offered.name))
        return button

    def _let_go(self, name: str, _button: object) -> None:
        try:
            freed = release(name)
        except ValueError as error:
            # It has changed since the search.
            self.search(str(error))
        else:
            self.search(f"Freed {format_bytes(freed)}.")
