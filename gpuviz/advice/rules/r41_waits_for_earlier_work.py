"""R41: a copy or synchronization in which the host waits for earlier work of the GPU."""

from typing import TYPE_CHECKING

from gpuviz.advice.finding import Finding
from gpuviz.advice.host_lines import text_of
from gpuviz.advice.rules.r22_needless_synchronization import is_needless
from gpuviz.advice.waits import Waits, longest_waits, without_waits
from gpuviz.quantities import format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuviz.advice.schedule import Schedule


def find(schedule: "Schedule") -> "Iterator[Finding]":
    """Find lines whose calls wait for work that was launched before.

    Trigger: see `gpuviz.advice.waits.longest_waits`; synchronizations that nothing needs are R22.

    Saving: the recording's `Schedule`, replayed without any wait of the line. It is the time for
    which the GPU idles after the waits because the host launches the next work too late. A GPU that
    is always busy saves nothing. Whether the program needs the value at once is not recorded:
    ``possible``.
    """
    for waits in longest_waits(schedule):
        if is_needless(schedule, waits):
            continue
        removed = without_waits(schedule, waits)
        waited = format_duration(removed.waited_ns)
        yield Finding(
            rule="R41",
            title=f"{text_of(removed.lines[0])} waits {waited} for earlier work of the GPU.",
            reason=removed.reason,
            change=_change(waits),
            certainty="possible",
            device=removed.device,
            saved_ns=removed.saved_ns,
            lines=removed.lines,
            evidence=removed.evidence,
            schedule=removed.change,
        )


def _change(waits: Waits) -> str:
    if waits.is_copy:
        return (
            "Keep the value on the GPU and read it when the program needs it: after the loop, or "
            "every few iterations. Until then the host can launch the next work."
        )
    return (
        "Wait only where the host needs the result, so that it can launch the next work "
        "meanwhile. Work on one stream runs in order without synchronization."
    )
