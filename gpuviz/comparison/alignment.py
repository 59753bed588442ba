"""Which line of one program is which line of another version of it."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import PurePath

from gpuviz.data.call_stacks import NO_STACK
from gpuviz.data.recording_data import RecordingData

# Two texts of a function's line are an edit of one line if they have this much in common.
_LEAST_SIMILARITY = 0.6
# More pairs of unmatched lines of a function are not compared.
_MOST_PAIRS = 10_000


@dataclass(frozen=True, slots=True, order=True)
class CodeLine:
    """A line of the program, as the innermost line of the user in a call stack."""

    filename: str = ""
    line: int = 0
    function: str = NO_STACK
    source: str = ""

    @property
    def site(self) -> str:
        """The text ``function (file:line)``; the function alone if there is no file."""
        place = f" ({self.filename}:{max(self.line, 0)})" if self.filename else ""
        return f"{self.function}{place}"


@dataclass(frozen=True, slots=True)
class Pair:
    """A line in both programs, or in one of them.

    Attributes:
        before: The line before; None if it is new.
        after: The line after; None if it is gone.
    """

    before: CodeLine | None
    after: CodeLine | None

    @property
    def is_edited(self) -> bool:
        """Whether both exist with different texts."""
        is_both = self.before is not None and self.after is not None
        return is_both and self.before.source != self.after.source  # type: ignore[union-attr]


def line_of(recording: RecordingData, stack: int) -> CodeLine:
    """Return the user's line of a call stack; that of no call stack if it is unknown."""
    frame = recording.call_stacks.user_frame(stack)
    if frame is None:
        return CodeLine()
    return CodeLine(frame.filename, frame.line, frame.name, frame.source.strip())


def align(before: Iterable[CodeLine], after: Iterable[CodeLine]) -> list[Pair]:
    """Return each line once, with the same line of the other program if there is one.

    Lines are the same if file name, function and text are, or else function and text; among several
    such lines, the first of one program is the first of the other. Where no text is known, lines
    are the same if file name, function and line number are. Of the rest, the most similar lines of
    a function are edits of each other.
    """
    left, right = sorted(set(before)), sorted(set(after))
    pairs: list[Pair] = []
    for key in (_file_and_text, _text):
        found = list(_same(left, right, key))
        pairs += found
        left, right = _rest(left, right, found)
    found = list(_edited(left, right))
    left, right = _rest(left, right, found)
    return [
        *(pairs + found),
        *(Pair(line, None) for line in left),
        *(Pair(None, line) for line in right),
    ]


def _file_and_text(line: CodeLine) -> tuple[str, ...]:
    return PurePath(line.filename).name, *_text(line)


def _text(line: CodeLine) -> tuple[str, ...]:
    place = line.source or f"{PurePath(line.filename).name}:{line.line}"
    return line.function, place


def _same(
    left: list[CodeLine], right: list[CodeLine], key: Callable[[CodeLine], tuple[str, ...]]
) -> Iterator[Pair]:
    """Yield the lines with equal keys, the first with the first."""
    known = defaultdict(list)
    for line in right:
        known[key(line)].append(line)
    waiting = {each: iter(lines) for each, lines in known.items()}
    for line in left:
        other = next(waiting.get(key(line), iter(())), None)
        if other is not None:
            yield Pair(line, other)


def _edited(left: list[CodeLine], right: list[CodeLine]) -> Iterator[Pair]:
    """Yield the most similar lines of each function, most similar first."""
    functions: dict[str, tuple[list[CodeLine], list[CodeLine]]] = defaultdict(lambda: ([], []))
    for side, lines in enumerate((left, right)):
        for line in lines:
            if line.source:
                functions[line.function][side].append(line)
    for ours, theirs in functions.values():
        if len(ours) * len(theirs) > _MOST_PAIRS:
            continue
        rated = [(_similarity(one, other), one, other) for one in ours for other in theirs]
        taken: set[tuple[int, CodeLine]] = set()
        for similarity, one, other in sorted(rated, key=lambda each: -each[0]):
            if similarity < _LEAST_SIMILARITY:
                break
            if not taken & {(0, one), (1, other)}:
                taken |= {(0, one), (1, other)}
                yield Pair(one, other)


def _similarity(one: CodeLine, other: CodeLine) -> float:
    return SequenceMatcher(None, one.source, other.source, autojunk=False).ratio()


def _rest(
    left: list[CodeLine], right: list[CodeLine], pairs: list[Pair]
) -> tuple[list[CodeLine], list[CodeLine]]:
    seen_left, seen_right = {pair.before for pair in pairs}, {pair.after for pair in pairs}
    return (
        [line for line in left if line not in seen_left],
        [line for line in right if line not in seen_right],
    )
