"""Rules that are tried one by one, so that one that fails does not take the others along."""

import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from gpuviz.advice.finding import Finding

T = TypeVar("T")


def judged(rule: "Callable[[T], Iterable[Finding]]", subject: T) -> "tuple[Finding, ...]":
    """Return what a rule finds; nothing, with a warning that names it, if the rule fails.

    Recordings are of programs that nobody here has seen: a fault in one rule must not withhold what
    the others have found.
    """
    try:
        return tuple(rule(subject))
    except Exception as error:  # noqa: BLE001 - the others are still asked
        name = rule.__module__.rpartition(".")[2].partition("_")[0].upper()
        warnings.warn(
            f"{name} failed on this recording ({type(error).__name__}: {error}); all other "
            "findings are here. This is a fault of gpuviz: please report it.",
            RuntimeWarning,
            stacklevel=2,
        )
        return ()
