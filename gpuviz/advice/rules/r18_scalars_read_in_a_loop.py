"""R18: the host reads a scalar in each round of a loop and waits for the GPU there."""

from collections.abc import Iterator

from gpuviz.advice.evidence import Line
from gpuviz.advice.finding import Finding
from gpuviz.advice.host_lines import text_of
from gpuviz.advice.replay.schedule import Schedule
from gpuviz.advice.rule import Rule
from gpuviz.advice.source.conditions import decides, indexes
from gpuviz.advice.source.convergence import ends_loop
from gpuviz.advice.source.libraries import conversion_to_host, is_of
from gpuviz.advice.waits.checked_results import always_checks, is_of_others, reads_value, unchecked
from gpuviz.advice.waits.chosen_places import chooses_places
from gpuviz.advice.waits.compared_elements import compared_one_by_one
from gpuviz.advice.waits.fetches import ASKED_EACH, Fetches, fetches
from gpuviz.data.once import Once
from gpuviz.quantities import format_count

RULES = (
    Rule(
        "R18",
        "scalars that are read in a loop",
        "a line of the program itself copies at most 16 bytes to the host and waits for them, at "
        "least three times, with launches after it, and the program does not branch on the value, "
        "or on what it computes from it on the host, as far as the text around the line shows, or "
        "that around the line that calls its function "
        "if the function returns or yields the value, nor takes it as the size of an array, of a "
        "part, of a grid or of a loop, nor chooses by it which array or part its next launches "
        "use, unless Python's `max` or `min` reads the elements of an array to compare them, or a "
        "loop of at least 100 rounds only decides by it whether to go on: then nine of ten reads "
        "count; the saving is without these calls and copies, without the kernels that compare "
        "elements, or those of the line that decides about a loop, and without the Python before "
        "them, which is taken for that of a launch",
        "leave the values on the GPU, or read them after the loop",
    ),
)

_CHANGE = (
    "Leave the value on the GPU where only further work uses it: an array of one element does as "
    "well as a number for CuPy's functions. Otherwise keep these arrays in a list and read all "
    "of them at once after the loop, such as `cupy.stack(values).get()`, or in batches every few "
    "iterations."
)
_OF_TORCH = (
    "Add up `loss.detach()` on the GPU and call `.item()` after the loop, or keep it in a list and "
    "read all at once (`torch.stack(losses).tolist()`), there or every few iterations."
)
_OF_CHECKS = (
    "Call `{function}(..., check_errors=False)` instead, which does not wait. It also returns "
    "`info`, which is not 0 where it has failed: keep that on the GPU, and check it after the "
    "loop, or every few iterations."
)
_OF_ELEMENTS = "Convert the whole array once ({whole}), and take the numbers from the result."
_OF_COMPARISONS = (
    "Python's `{0}` takes the elements one by one, with a launch and a copy for each. Let the GPU "
    "compare them: `{1}.{0}()`, or `{2}.stack({1}).{0}()` of a list."
)
_OF_LOOPS = (
    f"Check only every {ASKED_EACH}th round, as in `if k % {ASKED_EACH} == 0`, and compute what "
    f"decides only then: the loop runs at most {ASKED_EACH - 1} more rounds, which the saving does "
    "not count."
)
# Of a loop, so that a few rounds more cost little.
_LEAST_ROUNDS = 100
_MEANWHILE = "Until then the host can launch the next work."


def find(schedule: Schedule) -> Iterator[Finding]:
    """Find lines such as ``float(x)`` and ``x.item()`` that wait again and again.

    Trigger: see `gpuviz.advice.waits.fetches.fetches`; the line itself copies at most 16 bytes to
    the host, at least three times, and the program does not branch on the value, as far as the text
    around the line shows. A value that decides about the next step is needed at once, see
    `gpuviz.advice.source.conditions.decides`, and so is one by which the next work chooses an array
    or a part of it; see `gpuviz.advice.waits.chosen_places.chooses_places`. But a loop that only
    decides by it whether to go on can ask less often; see
    `gpuviz.advice.source.convergence.ends_loop`. What a function of torch.linalg reads to check its
    result counts if another function leaves that check to the program. A line with a function that
    always checks is no finding: that wait stays. Of reads that follow each other without other work
    of the GPU, as of an array's elements, one copy can do all.

    Saving: the recording's `Schedule`, replayed without these calls and copies, and without the
    Python before them, so that the host launches the next work meanwhile. It counts also where the
    GPU has little to do: each read costs a copy and a launch on an idle GPU. The program may need
    the value for something else: ``possible``.
    """
    for found in scalars(schedule):
        line = found.line(schedule)
        count = format_count(found.count(schedule))
        if found.comparing:
            library = "torch" if is_of(schedule.recording, "torch") else "cupy"
            does = f"compares {format_count(len(found.counting))} elements one by one"
            advice = _OF_COMPARISONS.format(*found.comparing, library)
        elif found.are_elements(schedule):
            whole = conversion_to_host(schedule.recording)
            does = f"reads {count} numbers one by one"
            advice = _OF_ELEMENTS.format(whole=whole)
        elif found.ends_loop:
            does, advice = f"asks {count} times too often whether to go on", _OF_LOOPS
        elif _is_torch(schedule, line):
            does, advice = _of_torch(line.source)
            does, advice = f"{does} {count} times", f"{advice} {_MEANWHILE}"
        else:
            does, advice = f"reads a scalar {count} times", f"{_CHANGE} {_MEANWHILE}"
        yield found.finding(
            schedule,
            "R18",
            title=f"{text_of(line)} {does} and waits {line.amount} for the GPU.",
            reason="",
            change=advice,
        )


@Once
def scalars(schedule: Schedule) -> tuple[Fetches, ...]:
    """Return the lines of R18; they are computed once for a schedule."""
    found = (_needless(schedule, each) for each in fetches(schedule))
    return tuple(each for each in found if each is not None)


def _needless(schedule: Schedule, found: Fetches) -> Fetches | None:
    """Return the reads that the program can leave out; None if it needs all of them."""
    if not found.is_scalar:
        return None
    compared = compared_one_by_one(schedule, found)
    if compared is not None:
        return compared
    if not decides(schedule.recording, found.stack):
        return found if _is_needless(schedule, found) else None
    is_asked = found.count(schedule) >= _LEAST_ROUNDS and ends_loop(schedule.recording, found.stack)
    return found.asked_less_often(schedule) if is_asked else None


def _is_needless(schedule: Schedule, found: Fetches) -> bool:
    calls = schedule.call[found.copies]
    if indexes(schedule.recording, found.stack) and chooses_places(schedule, calls):
        return False
    line = found.line(schedule)
    return not (_is_torch(schedule, line) and always_checks(line.source))


def _is_torch(schedule: Schedule, line: Line) -> bool:
    return is_of(schedule.recording, "torch") and not is_of_others(line.source)


def _of_torch(source: str) -> tuple[str, str]:
    """Return why a line that calls PyTorch waits, as its text shows, and what to change."""
    function = unchecked(source)
    if not function:
        return "reads a scalar", _OF_TORCH
    advice = _OF_CHECKS.format(function=function)
    if not reads_value(source):
        return "checks its result", advice
    return "checks its result or reads a scalar", f"{advice} {_OF_TORCH}"
