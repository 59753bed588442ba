"""Tab completion of ``%gpuviz`` and ``%%gpuviz``."""

from contextlib import suppress
from typing import Any

from IPython.core.error import TryNext

from gpuviz.notebook.arguments import words_after

_HOOK = "complete_command"
_MAGICS = ("%gpuviz", "%%gpuviz")


def register(shell: Any) -> None:
    """Let Tab offer commands and options from now on."""
    for magic in _MAGICS:
        shell.set_hook(_HOOK, complete, str_key=magic)


def unregister(shell: Any) -> None:
    """Leave nothing behind."""
    for magic in _MAGICS:
        with suppress(KeyError):
            del shell.strdispatchers[_HOOK].strs[magic]


def complete(shell: Any, event: Any) -> list[str]:
    """Return what the word at the cursor may become.

    Raises:
        TryNext: A file may stand there, which IPython offers itself.
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
