"""Tab completion of ``%gpuviz`` and ``%%gpuviz``."""

from contextlib import suppress
from typing import Any

from IPython.core.error import TryNext

from gpuviz.notebook.arguments import words_after

_HOOK = "complete_command"
_MAGICS = ("%gpuviz", "%%gpuviz")


def register(shell: Any) -> None:
    """Offer commands and options on Tab."""
    for magic in _MAGICS:
        shell.set_hook(_HOOK, complete, str_key=magic)


def unregister(shell: Any) -> None:
    """Remove the hooks."""
    for magic in _MAGICS:
        with suppress(KeyError):
            del shell.strdispatchers[_HOOK].strs[magic]


def complete(shell: Any, event: Any) -> list[str]:
    """Return the completions of the word at the cursor.

    Raises:
        TryNext: The word may be a file name, which IPython completes itself.
    """
    magic, *words = event.text_until_cursor.removesuffix(event.symbol).split()
    if words[-1:] == ["--simulated"]:
        from gpuviz.simulation.gpu import SimulatedGPU

        names = shell.user_ns.items()
        offered = [name for name, value in names if isinstance(value, SimulatedGPU)]
    else:
        offered = words_after(magic, words)
    found = [word for word in offered if word.startswith(event.symbol)]
    if not found:
        raise TryNext
    return found
