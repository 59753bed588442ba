"""R89: kernels use elements that are apart, as of one of several interleaved fields."""

from collections.abc import Iterator

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.finding import Finding
from gpuviz.advice.host_lines import longest_lines, text_of
from gpuviz.advice.kernels.strided_access import StridedAccess, strided_accesses
from gpuviz.advice.replay.schedule import ScheduleChange
from gpuviz.advice.rule import Rule
from gpuviz.analysis.launches import stacks_of
from gpuviz.quantities import format_bytes, format_count, format_counted, format_duration

RULES = (
    Rule(
        "R89",
        "interleaved fields",
        "at least 8 of CuPy's elementwise kernels read or write elements of an array of 8 MiB or "
        "more that are two elements or more apart, each time as far, and take twice as long as all "
        "other work with it, such as kernels that use all elements, products of matrices and "
        "copies; none uses wider elements, as of complex numbers; the saving is their time without "
        "what their bytes and their elements take, at most that of the bytes between, without the "
        "time to store the array otherwise if it is not computed so",
        "store the array with the axis first that the kernels do not go along, such as "
        "(field, y, x) instead of (y, x, field)",
    ),
)


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find arrays of which kernels use elements that have gaps between them.

    Trigger: see `gpuviz.advice.kernels.strided_access.strided_accesses`. Parts of rows are
    contiguous, and so are transposed arrays: kernels use all bytes that memory moves.

    Saving: the recording's `Schedule`, replayed with kernels that take the time for the bytes that
    they need at the highest rate of a kernel, and at least CuPy's for their elements, but at least
    as much more as the bytes in vain take at that rate. What is uploaded, or made by other kernels,
    has to be stored otherwise, which is subtracted. Whether other parts of the program need the
    layout is its decision: ``possible``.
    """
    for found in strided_accesses(device):
        shorter = device.schedule.duration.copy()
        shorter[found.work] -= found.saved_ns
        change = ScheduleChange(duration=shorter)
        saved_ns = device.schedule.saved_alone(change)
        if saved_ns >= device.schedule.relevant_ns:
            yield _finding(device, found, change, saved_ns)


def _finding(
    device: DeviceBlocks, found: StridedAccess, change: ScheduleChange, saved_ns: int
) -> Finding:
    schedule = device.schedule
    spent = schedule.duration[found.work]
    made = device.lines.line_of(found.blocks)
    stacks = stacks_of(schedule.recording.tables, schedule.call[found.work])
    kernels = longest_lines(schedule.recording, stacks, spent)
    apart = found.stride // found.element
    return Finding(
        rule="R89",
        title=f"{format_counted(len(found.work), 'kernel')} use every {_ordinal(apart)} element "
        f"of what {text_of(made)} makes, and take {format_duration(int(spent.sum()))}.",
        reason=f"They read or write elements of {format_bytes(found.element)} that are "
        f"{format_bytes(found.stride)} apart, so that memory moves what is between them in vain. "
        "Other work uses these arrays for less than half of that time.",
        change="Store them so that the elements which a kernel uses are next to each other: with "
        "the axis first that it does not go along, such as (field, y, x) instead of (y, x, field).",
        certainty="possible",
        device=device.device,
        lines=(made, *(each for each in kernels if each.site != made.site)),
        evidence=schedule.evidence(found.work),
        saved_ns=saved_ns,
        schedule=change,
    )


def _ordinal(number: int) -> str:
    """Return the ordinal of a number of at least 2 in words, such as ``second`` and ``6th``."""
    words = {2: "second", 3: "third"}
    is_teen = number // 10 % 10 == 1
    ending = "th" if is_teen else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return words.get(number, f"{format_count(number)}{ending}")
