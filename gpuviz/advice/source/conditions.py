"""Lines of the program whose values decide what it does next."""

import ast
import re
from bisect import bisect
from collections.abc import Container, Iterable, Iterator
from itertools import chain, pairwise, starmap, takewhile
from typing import Any

from gpuviz.advice.source.close_statements import CloseStatements, Statement, close_statements
from gpuviz.advice.source.named_values import (
    any_of,
    assigned,
    assigned_in,
    called_with,
    computed_from,
    looped,
    names_from,
    objects_with,
    uses,
)
from gpuviz.advice.source.parsed_text import parsed
from gpuviz.analysis.launches import calls_of, stacks_of
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.implied_columns import OWN
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import DICTIONARIES

_RETURN = re.compile(r"(?:return|(?:\w+\s*=\s*)?yield)\b(?P<value>.*)")
_INDEX = re.compile(r"[^#]*?[\w)\]]\[(?P<value>.*)\]")
_ATTRIBUTE = re.compile(r"(?:\w+\.)+(?P<name>\w+)(?:\[[^\]]*\]|\.\w+\(|\s*[-+*/]?=(?!=))")
_OBJECT = re.compile(r"\b([\w.]+)\.\w+\(")
# Calls that need a number of elements, of rounds or of parts on the host.
_SIZES = re.compile(
    r"\b(?:empty|zeros|ones|arange|linspace|eye|rand|randn|randint|randperm|tile|repeat|reshape|"
    r"view|expand|resize|broadcast_to|pad|narrow|topk|split|array_split|range|islice)\w*"
    r"\((?P<value>(?:[^()]|\([^()]*\))*)"
)
# Grids of kernels: `kernel((blocks,), (threads,), (x, y))` and `kernel[blocks, threads](x, y)`.
_TUPLE = r"\((?:[^()]|\([^()]*\))*\)"
_GRIDS = re.compile(rf"\b\w+\(\s*(?P<value>{_TUPLE}|\w+)\s*,\s*(?:{_TUPLE}|\w+)\s*,\s*[\[(]")
_GRIDS_OF_NUMBA = re.compile(r"\b\w+\[(?P<value>[^\[\]]*,[^\[\]]*)\]\(")
_SLICES = re.compile(r"[\w)\]]\[(?P<value>[^\[\]]*:[^\[\]]*)\]")
# Functions that decide by a value what the program does, as `ReduceLROnPlateau.step`.
_ORDER = re.compile(
    r".*\b(?:heappush|heapreplace|heappushpop|insort\w*|\w*(?:scheduler|plateau)\w*\.step)"
    r"\((?P<value>.*)\)"
)
_CONTAINER = re.compile(r"[\[{(]|(?:dict|list|tuple)\(")
# Calls that certainly read a number.
READS = re.compile(r"\b(?:float|int|bool|complex|asnumpy)\(|\.(?:item|get|tolist|numpy|cpu)\(")
_COMPREHENSION = re.compile(r"[\[{(].*\bfor\b.+\bin\b.*[\]})]")
_COUNTER = re.compile(r"(?P<names>\w+)\s*(?:,.*)?\bin\s+(?:\w+\.)*(?:range|trange|enumerate)\(")
_LITERAL = re.compile(r"(?:None|True|False|[\d.e+-]+|\"[^\"]*\"|'[^']*')\s*(?:#.*)?$")
# What conditions of the host consist of; calls are not among it.
_PLAIN = (ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.boolop, ast.unaryop, ast.operator, ast.cmpop)
_VALUES = (ast.Name, ast.Attribute, ast.Constant, ast.expr_context)


def indexes(recording: RecordingData, stack: int) -> bool:
    """Return whether the program chooses elements by what the line of a call stack computes.

    The line or a close one has its result, or the name that gets it, within brackets.
    """
    return any(
        uses(_INDEX, each.of_round, computed_from(assigned(each.line), each.of_round))
        for each in _of_value(_close(recording, stack))
    )


def statement_text(recording: RecordingData, stack: int) -> str:
    """Return the text of the statement that the line of a call stack belongs to."""
    lines = (each.line for each in _close(recording, stack)[:1])
    return " ".join(chain.from_iterable((each.head, each.text) for each in lines))


def is_comprehension(recording: RecordingData, stack: int) -> bool:
    """Return whether the line of a call stack loops in brackets, such as ``[f(x) for x in y]``."""
    return _COMPREHENSION.search(statement_text(recording, stack)) is not None


def statements_of_value(recording: RecordingData, stack: int) -> CloseStatements | None:
    """Return the statements around the line that gets what the line of a call stack computes.

    That is the line itself, or the one to which functions return the value; None if unknown.
    """
    of_value = _of_value(_close(recording, stack))
    return of_value[-1] if of_value else None


def decides(recording: RecordingData, stack: int) -> bool:
    """Return whether what the line of a call stack computes decides what the program does next.

    The line itself branches by it, or it assigns to a name by which a line of the same loop does,
    or to one from which that line's name is computed, or it gives the value to an object that such
    a line asks. Or the value is the size of an array, of a part or of a loop. What a function
    returns or yields is the value of the line that calls it; a library that gets the function
    itself, as a solver does, needs what it returns. A caller may also branch by an attribute that
    it sets, or by a method of the same object.
    """
    frames = list(_frames(recording, stack))
    close = [close_statements(frame) for frame in frames]
    of_value = len(_of_value(close))
    of_value += any(each["name"].endswith("<lambda>") for each in frames[of_value - 1 : of_value])
    return (
        any(
            _branches(each, _reading(recording, frame, each)) or _is_size(each)
            for frame, each in zip(frames, close[:of_value], strict=False)
        )
        or any(starmap(_is_given_to_a_library, pairwise(frames[:of_value])))
        or any(_is_attribute_tested(each, close[n:]) for n, each in enumerate(close[:of_value], 1))
    )


def feeds(recording: RecordingData, stack: int, sources: Container[str]) -> bool:
    """Return whether certain lines of the same loop use what the line of a call stack reads.

    They use the value or what the program computes from it, as where the host selects by the value
    what it copies to the GPU next.

    Args:
        recording: The recording.
        stack: The call stack.
        sources: The texts of these lines.
    """
    for close in _of_value(_close(recording, stack)):
        names = computed_from(assigned(close.line), close.of_round)
        used = re.compile(any_of(names)) if names else None
        others = (each.text for each in close.of_round if each is not close.line)
        if used is not None and any(used.search(text) and text in sources for text in others):
            return True
    return False


def _close(recording: RecordingData, stack: int) -> list[CloseStatements]:
    """Return the statements around each line of a call stack, innermost first."""
    return [close_statements(frame) for frame in _frames(recording, stack)]


def _of_value(close: list[CloseStatements]) -> list[CloseStatements]:
    """Return the lines that have the value of the first: each function returns it to the next."""
    return close[: len(list(takewhile(_returns, close[:-1]))) + 1]


def _is_given_to_a_library(frame: dict[str, Any], caller: dict[str, Any]) -> bool:
    """Return whether a caller passes the function of a frame on, and a library calls it.

    The caller may know a lambda, or an object that can be called, by any name.
    """
    is_nameless = frame["name"].endswith(("<lambda>", "__call__"))
    return caller["is_behind"] and (is_nameless or _passes(caller["source"], frame["name"]))


def _is_attribute_tested(close: CloseStatements, callers: list[CloseStatements]) -> bool:
    """Return whether a caller branches by an attribute that gets the value.

    Or by a method of the object of which it calls a method.
    """
    found = next(filter(None, map(_ATTRIBUTE.match, close.line.parts)), None)
    if found is None:
        return False
    for outer in callers:
        methods = (rf"\b{re.escape(each)}\.\w+\(" for each in _OBJECT.findall(outer.line.text))
        tested = re.compile("|".join([rf"\.{found['name']}\b", *methods]))
        if any(map(tested.search, _conditions(outer.of_round))):
            return True
    return False


def _frames(recording: RecordingData, stack: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of the program's own frames from the user's frame on, innermost first.

    ``is_behind`` says whether a library calls what the one before is in.
    """
    user = recording.call_stacks.user_frame_number(stack)
    frames, stacks = recording.tables["frames"], recording.tables["stacks"]
    place = stacks["id"].index(stack).as_py()
    numbers = stacks["frames"][place].as_py() if place >= 0 else []
    numbers = numbers[numbers.index(user) :] if user in numbers else [user]
    is_behind = False
    for number in filter(None, numbers):
        row = frames["id"].index(number).as_py()
        if row < 0:
            return
        frame = {name: frames[name][row].as_py() for name in frames.column_names}
        if frame["installed"] == OWN or number == user:
            yield frame | {"is_behind": is_behind}
        is_behind = frame["installed"] != OWN


def _reading(
    recording: RecordingData, frame: dict[str, Any], close: CloseStatements
) -> list[Statement]:
    """Return the other close statements that copy something to the host themselves."""
    numbers = [each.number for each in close.statements]
    lines = [line for file, line in _lines_that_read(recording) if file == frame["filename"]]
    places = {bisect(numbers, line) - 1 for line in lines if numbers[0] <= line}
    return [close.statements[place] for place in places - {close.own}]


@Once
def _lines_that_read(recording: RecordingData) -> frozenset[tuple[str, int]]:
    """Return the files and numbers of the program's lines that copy something to the host."""
    activities = recording.tables["activities"]
    kinds = DICTIONARIES["activities", "copy_kind"]
    to_host = codes(activities["copy_kind"], kinds) == kinds.index("device_to_host")
    calls = calls_of(recording.tables, plain(activities["correlation"])[to_host])
    stacks = distinct(stacks_of(recording.tables, calls[calls >= 0])).tolist()
    frames = [recording.call_stacks.user_frames(stack)[:1] for stack in stacks]
    return frozenset((each.filename, each.line) for each in chain.from_iterable(frames))


def _branches(close: CloseStatements, reading: Container[Statement]) -> bool:
    own, others = close.line, close.of_round
    if _decides_itself(own, close):
        return True
    names = [*assigned(own), *looped(own)]
    names = computed_from(names, (each for each in others if each not in reading))
    if any(map(_ORDER.match, own.parts)) or uses(_ORDER, others, names):
        return True
    for name in objects_with(names, own, others):
        element = _element_of(name)
        names += [derived for each in others for derived in names_from(each, element)]
        if any(map(element.search, _conditions(others))):
            return True
    for name in called_with(names, own, others):
        if any(map(re.compile(rf"\b{re.escape(name)}\.\w").search, _conditions(others))):
            return True
    return bool(names) and any(map(re.compile(any_of(names)).search, _conditions(others)))


def _decides_itself(own: Statement, close: CloseStatements) -> bool:
    """Return whether a statement branches by what it reads, rather than by values of the host."""
    if own.keyword == "for" and READS.search(own.head):
        return True
    # Without a call, the rest of the line reads nothing: the condition does.
    if own.branches and "(" not in own.text:
        return True
    return not all(_is_of_host(each, close) for each in own.conditions)


def _is_of_host(condition: str, close: CloseStatements) -> bool:
    """Return whether a condition certainly reads nothing from the GPU.

    Such are ``verbose``, ``args.verbose``, and ``step % 10 == 0``. Names that a close statement
    computes may be arrays, and so may what is compared, but for the counters of loops. Attributes
    of what is made before the loop are options.
    """
    tree = parsed(condition.strip())
    if tree is None or len(tree.body) != 1 or not isinstance(tree.body[0], ast.Expr):
        return False
    value = tree.body[0].value
    counters, computed = _of_host(close.statements)
    compared = [each for each in ast.walk(value) if isinstance(each, ast.Compare)]
    _, of_round = _of_host(close.of_round)
    objects = {each.value for each in ast.walk(value) if isinstance(each, ast.Attribute)}
    for each in ast.walk(value):
        if isinstance(each, ast.Name) and each.id in (of_round if each in objects else computed):
            return False
        if not isinstance(each, (*_PLAIN, *_VALUES, ast.Compare)):
            return False
    return all(_compares_on_host(each, counters) for each in compared)


def _compares_on_host(compared: ast.Compare, counters: set[str]) -> bool:
    """Return whether a comparison is one of identities, remainders or counters."""
    if all(isinstance(each, ast.Is | ast.IsNot) for each in compared.ops):
        return True
    left = compared.left
    if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod):
        return True
    names = {each.id for each in ast.walk(left) if isinstance(each, ast.Name)}
    return bool(names) and names <= counters


def _of_host(statements: Iterable[Statement]) -> tuple[set[str], set[str]]:
    """Return the names that certainly are numbers of the host, and those that are computed."""
    counters, computed = set[str](), set[str]()
    for each in statements:
        counted = _COUNTER.match(each.head) if each.keyword == "for" else None
        if counted is not None:
            counters.add(counted["names"])
        for part in each.parts:
            is_literal = _LITERAL.match(part.partition("=")[2].strip()) is not None
            (counters if is_literal else computed).update(assigned_in(part))
    return counters - computed, computed


def _is_size(close: CloseStatements) -> bool:
    """Return whether arrays, parts or loops have a size that a line computes.

    Or it is the place of an item in a container of the host.
    """
    names = computed_from(assigned(close.line), close.of_round)
    used = re.compile(any_of(names)) if names else READS
    patterns = [_SIZES, _SLICES, _GRIDS, _GRIDS_OF_NUMBA]
    containers = [
        name
        for each in close.statements
        for part in each.parts
        if _CONTAINER.match(part.partition("=")[2].strip())
        for name in assigned_in(part)
    ]
    if containers:
        patterns.append(re.compile(rf"{any_of(containers)}\[(?P<value>[^\]]*)\](?!\s*[-+*/]?=)"))
    for each in close.of_round if names else [close.line]:
        text = f"{each.head} {each.text}"
        values = chain.from_iterable(pattern.finditer(text) for pattern in patterns)
        if any(used.search(found["value"]) for found in values):
            return True
    return False


def _returns(close: CloseStatements) -> bool:
    """Return whether a function returns or yields what a line of it computes.

    What it returns after a loop is that of the last round only.
    """
    if any(map(_RETURN.match, close.line.parts)):
        return True
    names = computed_from(assigned(close.line), close.of_round)
    names += objects_with(names, close.line, close.of_round)
    return uses(_RETURN, close.of_round, names)


def _conditions(statements: Iterable[Statement]) -> Iterator[str]:
    return chain.from_iterable(each.conditions for each in statements)


def _element_of(name: str) -> re.Pattern[str]:
    """Return the pattern of what an object has, also by functions other than its length."""
    word = re.escape(name)
    return re.compile(rf"\b{word}(?:\[|\.\w)|(?<!\blen)[(,]\s*\*?(?:\w+\.)*{word}\b")


def _passes(source: str, name: str) -> bool:
    """Return whether a line names a function, such as ``Solver.residual``, and does not call it."""
    word = re.escape(name.rpartition(".")[2])
    return re.search(rf"\b{word}\b(?!\s*\()", source) is not None
