"""An output of a cell whose HTML is replaced as often as necessary, from any thread."""

import contextvars
import secrets
from collections.abc import Callable

from IPython.core.displaypub import DisplayPublisher
from IPython.core.getipython import get_ipython
from IPython.display import display, update_display


class LiveOutput:
    """Shows what two functions return.

    Args:
        html: Returns HTML; its texts must be escaped.
        text: Returns the text for applications that show no HTML.
    """

    def __init__(self, html: Callable[[], str], text: Callable[[], str]) -> None:
        self._html, self._text = html, text
        self._id = secrets.token_hex(6)
        # ipykernel 7 needs the context of a cell to send messages.
        self._context = contextvars.copy_context()
        self._is_shown = self._is_outdated = False

    def show(self) -> None:
        """Show it as the output of a cell."""
        display(  # type: ignore[no-untyped-call] # IPython's
            self._bundle(), raw=True, display_id=self._id
        )
        self._is_shown = True
        if self._is_outdated:
            self.update()

    def update(self) -> None:
        """Replace it wherever it is shown, except in a terminal; wait until it is shown."""
        self._is_outdated = True
        if self._is_shown:
            self._is_outdated = False
            self._context.copy().run(self._update)

    def _update(self) -> None:
        shell = get_ipython()
        # Only a terminal uses IPython's own publisher, which would print everything again.
        if shell is None or type(shell.display_pub) is DisplayPublisher:
            return
        update_display(  # type: ignore[no-untyped-call] # IPython's
            self._bundle(), raw=True, display_id=self._id
        )

    def _bundle(self) -> dict[str, str]:
        return {"text/html": self._html(), "text/plain": self._text()}
