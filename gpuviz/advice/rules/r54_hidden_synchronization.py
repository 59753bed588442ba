"""R54: an operation fetches the size of its result from the GPU, and waits for it."""

from collections.abc import Iterator

from gpuviz.advice.finding import Finding
from gpuviz.advice.host_lines import text_of
from gpuviz.advice.replay.schedule import Schedule
from gpuviz.advice.rule import Rule
from gpuviz.advice.source.libraries import by_library
from gpuviz.advice.waits.fetches import fetches
from gpuviz.quantities import format_counted

RULES = (
    Rule(
        "R54",
        "a hidden synchronization",
        "a line waits for a copy of at most 64 bytes and launches a kernel that places or moves "
        "what a mask or a condition selects: `x[mask]`, `nonzero`, `unique`; the saving is without"
        " the copy, and without the kernels that count what a mask selects",
        "a fixed size: multiply by the mask, `where(condition, x, y)`, `out=`",
    ),
)


def find(schedule: Schedule) -> Iterator[Finding]:
    """Find boolean masks, ``nonzero``, ``unique`` and ``where`` that wait for the GPU.

    Trigger: see `gpuviz.advice.waits.fetches.fetches`; the line launches a kernel that places or
    moves what a condition selects, and copies at most 64 bytes to the host: the size of its result.

    Saving: the recording's `Schedule`, replayed without these calls and copies, and without the
    kernels that count what a mask selects, which a result of a fixed size does not need. Later
    kernels may have more to do with such a result: ``possible``.
    """
    library = by_library(schedule.recording, {"torch": "torch"}, "cupy")
    for found in fetches(schedule):
        if not found.is_size:
            continue
        line = found.line(schedule)
        yield found.finding(
            schedule,
            "R54",
            title=(
                f"{text_of(line)} waits {line.amount} for the size of its result, in "
                f"{format_counted(found.count(schedule), 'call')}."
            ),
            reason=(
                "How many elements a mask or a condition selects is known on the GPU only, and the "
                "host needs it to allocate the result."
            ),
            change=(
                f"Keep a fixed size: multiply by the mask, or use `{library}.where(condition, x, y)"
                f"`, `out=` or `{library}.count_nonzero` and let later kernels skip what is not "
                "selected."
            ),
        )
