"""What a kernel does with its pointers, read from its CUDA C++ source."""

import re
from collections.abc import Iterator, Mapping

from gpuviz.frameworks.cuda_text import (
    enclosed,
    kernels,
    without_comments,
    without_comments_and_texts,
)

Modes = tuple[str, ...]

UNKNOWN, READ, WRITE, READ_WRITE = "unknown", "read", "write", "read_write"

_DEFINED = re.compile(r"\s*#\s*define\s+\w+(\([^)]*\))?")
_POINTER = re.compile(r"\*|\[|\bC(?:Indexer)?Array\b")
_NAME = re.compile(r"(\w+)\s*(?:\[[^\]]*\]\s*)*$")
_REFERENCE = re.compile(r"&\s*(\w+)\s*=$")
_ASSIGNMENT = re.compile(r"=(?!=)")
_COMPOUND = re.compile(r"(?:[-+*/%&|^]|<<|>>)=|\+\+|--")
_OPERAND = re.compile(r"[\w)\]]$")
_OPENED = re.compile(r"(?<!&)&[\s(]*$")
_ADDRESS = re.compile(r"(?<!&)&$")
# A reference to an expression in which the element is one of several.
_BOUND = re.compile(r"(?<!&)&\s*\w+\s*(?:=(?!=)|[{(])")
# More would take long to follow.
_MOST_REFERENCES = 100
_LAST_NAME = re.compile(r"(\w+)\s*$")
_CAST = r"\(\s*(?!const\b)[\w\s:<>,]+\*\s*\)\s*"
# The output of a reduction by CUB in CuPy, of any type.
_CUB_OUTPUT = re.compile(r"\s*void\s*\*\s*_raw_out\d+\s*$")
# What stands before a parenthesis that changes nothing in it.
_KEEPS = frozenset(
    (
        "if",
        "while",
        "for",
        "switch",
        "return",
        "sizeof",
        "max",
        "min",
        "abs",
        "fabs",
        "fabsf",
        "fmax",
        "fmaxf",
        "fmin",
        "fminf",
        "sqrt",
        "sqrtf",
        "exp",
        "expf",
        "log",
        "logf",
        "sin",
        "sinf",
        "cos",
        "cosf",
        "tanh",
        "tanhf",
        "pow",
        "powf",
        "isnan",
        "isinf",
        "__ldg",
        "float",
        "double",
        "int",
        "long",
        "bool",
        "char",
        "short",
        "unsigned",
        "size_t",
        "ptrdiff_t",
    )
)
_ATOMIC = "atomic"
_ARRAY = re.compile(
    r"\s*(?:const\s+)?CArray\s*<(.*),\s*\d+\s*,\s*[01]\s*,\s*[01]\s*>\s*(_raw_\w+)\s*$"
)
# What may leave elements out.
_CHOICE = re.compile(
    r"\b(?:if|else|for|while|do|switch|case|goto|return|continue|break)\b|\?|&&|\|\|"
)
_POST_MAP = re.compile(r"#\s*define\s+POST_MAP\b")
_DEFINED_NAME = re.compile(r"\s*#\s*define\s+(\w+)")
_BYTES = {
    "bool": 1,
    "char": 1,
    "signed char": 1,
    "unsigned char": 1,
    "short": 2,
    "unsigned short": 2,
    "float16": 2,
    "bfloat16": 2,
    "int": 4,
    "unsigned int": 4,
    "float": 4,
    "long long": 8,
    "unsigned long long": 8,
    "double": 8,
    "complex<float>": 8,
    "complex<double>": 16,
}


def modes_by_kernel(source: str) -> dict[str, Modes]:
    """Return how each kernel of a source uses its parameters, in their order, by kernel name.

    A mode is ``read``, ``write``, ``read_write`` or ``unknown``. A pointer to const, and CuPy's
    const arrays, are read. Another pointer is judged by each use of its name in the kernel: an
    element that is assigned is written, also if only under a condition; one that is changed or
    passed to an atomic function is read and written; any other element is read. The pointer is
    unknown if one use is anything else, such as a call that may change its argument, or a macro
    that stands for the element.
    """
    text, definitions = without_comments(source)
    macros = "".join(_DEFINED.sub(";", each) for each in definitions)
    found: dict[str, Modes] = {}
    for name, parameters, body in kernels(text):
        modes = tuple(_mode(each, body, macros) for each in parameters)
        found[name] = agreed(found[name], modes) if name in found else modes
    return found


def elements_by_kernel(source: str) -> dict[str, tuple[int, ...]]:
    """Return of which arrays each kernel that CuPy generated accesses all elements, by its name.

    For each parameter, the bytes of its elements, or 0: if it is no array, if the kernel chooses
    which elements it accesses, or if it may leave some out because of a condition.
    """
    text, definitions = without_comments(source)
    found: dict[str, tuple[int, ...]] = {}
    for name, parameters, body in kernels(text):
        results = _post_map(definitions)
        if "_in_ind.set(_j)" in body:
            is_plain = not _CHOICE.search(results)
        else:
            is_plain = "_ind.set(i)" in body and not _CHOICE.search(body)
            is_plain &= not _uses_any(definitions, body)
        found[name] = tuple(
            _bytes_of_elements(each, body + results) if is_plain and name not in found else 0
            for each in parameters
        )
    return found


def _post_map(definitions: list[str]) -> str:
    """Return what a reduction does with each result."""
    return " ".join(each for each in definitions if _POST_MAP.search(each))


def _uses_any(definitions: list[str], body: str) -> bool:
    """Return whether a body uses one of the macros."""
    names = [match[1] for each in definitions if (match := _DEFINED_NAME.match(each))]
    return any(re.search(rf"\b{name}\b", body) for name in names)


def _bytes_of_elements(parameter: str, used: str) -> int:
    """Return the bytes of the elements of an array if each element is accessed, else 0."""
    match = _ARRAY.match(parameter)
    if match is None:
        return 0
    name = match[2]
    places = re.findall(rf"\b{name}\b(\[_(?:in_|out_)?ind\.get\(\)\])?", used)
    if not places or not all(places):
        return 0
    reference = re.search(rf"(\w+)\s*=\s*{name}\[", used)
    if reference and len(re.findall(rf"\b{reference[1]}\b", used)) == 1:
        return 0
    return _BYTES.get(" ".join(match[1].split()), 0)


def agreed(one: Modes, other: Modes) -> Modes:
    """Return what two kernels of one name have in common; of different lengths, nothing."""
    if len(one) != len(other):
        return ()
    return tuple(
        mine if mine == theirs else UNKNOWN for mine, theirs in zip(one, other, strict=True)
    )


def modes_of_operation(outputs: Mapping[str, bool], operation: str) -> dict[str, str]:
    """Return how an element-wise operation of CuPy uses its outputs, by their names.

    One of which only reads are seen is unknown: why else would it be an output?

    Args:
        outputs: Whether each is raw, and so an array instead of an element of one.
        operation: The text of the operation.
    """
    body = without_comments_and_texts(operation)
    found = {
        name: _judged(_uses(name, body) if is_raw else _uses_of_references({name: 0}, body))
        for name, is_raw in outputs.items()
    }
    return {name: UNKNOWN if mode == READ else mode for name, mode in found.items()}


def _mode(parameter: str, body: str, macros: str) -> str:
    """Return how a body uses a parameter; unknown for one that is no pointer."""
    name = _NAME.search(parameter)
    if name is None or not _POINTER.search(parameter):
        return UNKNOWN
    if _CUB_OUTPUT.match(parameter):
        return WRITE
    kind = parameter[: name.start()]
    # In `T* const`, what is pointed to may change.
    if re.match(r"\s*const\b", kind) or re.search(r"\bconst\s*\*", kind):
        is_cast = "const_cast" in body or re.search(_CAST + name[1] + r"\b", body)
        return UNKNOWN if is_cast else READ
    return _judged(_uses(name[1], body, macros))


def _judged(uses: Iterator[str]) -> str:
    found = set(uses)
    if not found or UNKNOWN in found:
        return UNKNOWN
    return found.pop() if len(found) == 1 else READ_WRITE


def _uses(name: str, body: str, macros: str = "") -> Iterator[str]:
    """Yield the mode of each use of a pointer's elements, or of references to them."""
    references: dict[str, int] = {}
    for match in re.finditer(rf"(?<![\w.])(?<!->)(?<!::){name}\b", body):
        before, at = body[: match.start()].rstrip(), match.end()
        if not body[at:].lstrip().startswith("["):
            yield UNKNOWN
            continue
        while body[at:].lstrip().startswith("["):
            _, at = enclosed(body, body.index("[", at))
        if reference := _REFERENCE.search(before):
            references.setdefault(reference[1], at)
        else:
            yield _use(before, body[at:].lstrip())
    yield from _uses_of_references(references, body)
    for each in references:
        yield from map(_of_macro, _uses_of_references({each: 0}, macros))
    if macros:
        yield from map(_of_macro, _uses(name, macros))


def _of_macro(mode: str) -> str:
    """Return what a use in a macro says: an element may be assigned where the macro stands."""
    return UNKNOWN if mode == READ else mode


def _uses_of_references(references: Mapping[str, int], body: str) -> Iterator[str]:
    """Yield the mode of each use of variables that refer to elements, and of references to these.

    Args:
        references: From which place on in the body each is one.
        body: The text.
    """
    names: list[tuple[str, int]] = list(references.items())
    known = set(references)
    for name, begin in names:
        for match in re.compile(rf"(?<![\w.])(?<!->)(?<!::){name}\b").finditer(body, begin):
            before, after = body[: match.start()].rstrip(), body[match.end() :].lstrip()
            reference = _REFERENCE.search(before)
            if reference is None:
                yield _use(before, after)
            elif reference[1] not in known:
                known.add(reference[1])
                names.append((reference[1], match.end()))
        if len(names) > _MOST_REFERENCES:
            yield UNKNOWN
            return


def _use(before: str, after: str) -> str:
    """Return the mode of a use of an element, from the text around it."""
    if _BOUND.search(before.rpartition(";")[2]):
        return UNKNOWN
    if _ASSIGNMENT.match(after):
        return UNKNOWN if _is_declared(before) else WRITE
    if _COMPOUND.match(after) or before.endswith(("++", "--")):
        return READ_WRITE
    if after.startswith((".", "->", "(", "[")):
        return UNKNOWN
    before = _OPENED.sub("&", before)
    callee = _callee(before)
    if (
        before.endswith("&")
        and not before.endswith("&&")
        and not _OPERAND.search(before[:-1].rstrip())
    ):
        return READ_WRITE if callee.startswith(_ATOMIC) else UNKNOWN
    is_kept = not callee or callee in _KEEPS or callee.startswith(_ATOMIC)
    return READ if is_kept else UNKNOWN


def _is_declared(before: str) -> bool:
    """Return whether a name with this text before it is declared here, as another variable."""
    last = _LAST_NAME.search(before)
    return last is not None and last[1] not in ("else", "do")


def _callee(before: str) -> str:
    """Return the name before the innermost open parenthesis; empty without one."""
    depth = 0
    for place in range(len(before) - 1, -1, -1):
        letter = before[place]
        if letter in ")]":
            depth += 1
        elif letter in "([":
            if depth == 0:
                name = _LAST_NAME.search(before[:place]) if letter == "(" else None
                return name[1] if name else ""
            depth -= 1
        elif letter in ";{}" and depth == 0:
            return ""
    return ""
