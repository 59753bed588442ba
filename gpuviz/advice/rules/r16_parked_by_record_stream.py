"""R16: freed arrays wait for another stream while requests need new memory."""

from collections.abc import Iterator

from gpuviz.advice.finding import Finding, named
from gpuviz.advice.reserved.reserved_memory import LEAST_SHARE, ReservedMemory
from gpuviz.advice.rule import Rule
from gpuviz.quantities import format_bytes

RULES = (
    Rule(
        "R16",
        "freed arrays that wait for another stream",
        "at that time, 5 % of the reserved bytes are kept by `record_stream`; if frees did not "
        "wait, the peak is at least 5 % lower",
        "wait for the other stream before the array is deleted",
    ),
)


def find(memory: ReservedMemory) -> Iterator[Finding]:
    """Find memory that cannot be reused because ``record_stream`` keeps it for another stream.

    Trigger: when the peak of reserved bytes is reached, or a request fails, at least 5 % of the
    reserved bytes were freed but wait for another stream; and if frees did not wait, the peak would
    be at least 5 % lower, or no request would fail.
    """
    if not memory.is_crowded:
        return
    request, then = memory.request, memory.request.memory
    if then.pending_free < LEAST_SHARE * then.reserved or memory.own is None:
        return
    at_once = memory.replayed(memory.own, "no_stream_uses")
    if not then.pending_free or not memory.is_relevant(at_once, LEAST_SHARE):
        return
    line = request.line
    yield Finding(
        rule="R16",
        title=f"{format_bytes(then.pending_free)} of freed arrays wait for other streams while "
        f"{named(line.site, line.source)} needs new memory: without the wait, "
        f"{memory.effect(at_once)}.",
        reason=(
            f"{format_bytes(then.reserved)} were reserved when {format_bytes(request.bytes)} "
            "were requested. After `record_stream`, an array's memory is not reused until the "
            "other stream has finished the work queued before the free. The recorded allocations "
            "and frees were repeated without this."
        ),
        change=(
            "Instead of `record_stream`, let the stream that allocated an array wait for the other "
            "stream (`wait_event`) before you delete the array: then its memory is reused at once. "
            "The wait may cost time."
        ),
        certainty="possible",
        device=memory.device,
        saved_reserved_bytes=memory.saved(at_once),
        lines=(line,),
        evidence=request.evidence,
    )
