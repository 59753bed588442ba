"""Tab completion of ``%gpuviz`` and ``%%gpuviz``."""

import re
from contextlib import suppress
from typing import Any

from IPython.core.completer import (
    CompletionContext,
    SimpleCompletion,
    SimpleMatcherResult,
    context_matcher,
)

from gpuviz.notebook.arguments import words_after

_ATTRIBUTE = "_gpuviz_matcher"
# A magic at the start of a line or after an assignment, finished words, and the one at the cursor.
_LINE = re.compile(r"(?:^|=)\s*(?P<magic>%%?gpuviz)\s+(?P<words>(?:\S+\s+)*)(?P<last>\S*)$")


class Matcher:
    """Offers the commands and options that may follow, instead of Python's names.

    Args:
        shell: The shell, for the names of simulated GPUs.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    @context_matcher()  # type: ignore[untyped-decorator] # IPython's
    def complete(self, context: CompletionContext) -> SimpleMatcherResult:
        """Return what may follow at the cursor; nothing where IPython offers files or names."""
        found = _LINE.search(context.text_until_cursor)
        if found is None:
            return {"completions": []}
        words = self._words(found["magic"], found["words"].split())
        offered = [SimpleCompletion(word) for word in words if word.startswith(found["last"])]
        return {
            "completions": offered,
            "matched_fragment": found["last"],
            "suppress": True,
            "ordered": True,
        }

    def _words(self, magic: str, before: list[str]) -> list[str]:
        if before[-1:] != ["--simulated"]:
            return words_after(magic, before)
        from gpuviz.simulation.gpu import SimulatedGPU

        names = self._shell.user_ns.items()
        return [name for name, value in names if isinstance(value, SimulatedGPU)]


def register(shell: Any) -> None:
    """Offer commands and options on Tab."""
    matcher = Matcher(shell).complete
    setattr(shell, _ATTRIBUTE, matcher)
    shell.Completer.custom_matchers.append(matcher)


def unregister(shell: Any) -> None:
    """Offer them no longer."""
    matcher = shell.__dict__.pop(_ATTRIBUTE, None)
    with suppress(ValueError):
        shell.Completer.custom_matchers.remove(matcher)
