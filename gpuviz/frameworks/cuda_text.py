"""The kernels in the text of a CUDA C++ source, with their parameters and bodies."""

import re
from collections.abc import Iterator

_KERNEL = re.compile(r"__global__\s+void\s+(?:__launch_bounds__\s*\([^()]*\)\s*)?(\w+)\s*(\()")
_COMMENTS_AND_TEXTS = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'", re.DOTALL
)
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define\b(?:[^\n\\]|\\.)*", re.MULTILINE | re.DOTALL)
# Reading a longer source would be noticed.
LONGEST_SOURCE = 200_000


def kernel_names(source: str) -> list[str]:
    """Return the names of the kernels in a source, each once; none of a source that is too long."""
    if len(source) > LONGEST_SOURCE:
        return []
    text = without_comments_and_texts(source)
    return list(dict.fromkeys(found[1] for found in _KERNEL.finditer(text)))


def without_comments_and_texts(source: str) -> str:
    """Return a source with a space for each comment and text."""
    return _COMMENTS_AND_TEXTS.sub(" ", source)


def without_comments(source: str) -> tuple[str, list[str]]:
    """Return a source without comments, texts and macros, and the definitions of the macros."""
    text = without_comments_and_texts(source)
    return _DEFINE.sub(" ", text), _DEFINE.findall(text)


def kernels(text: str) -> Iterator[tuple[str, list[str], str]]:
    """Yield name, parameters and body of each kernel."""
    for match in _KERNEL.finditer(text):
        parameters, after = enclosed(text, match.start(2))
        begin = text.find("{", after)
        if begin >= 0 and not text[after:begin].strip():
            yield match[1], split(parameters), enclosed(text, begin)[0]


def enclosed(text: str, begin: int) -> tuple[str, int]:
    """Return what is between a bracket and its partner, and the place after it."""
    opening = text[begin]
    closing = {"(": ")", "[": "]", "{": "}"}[opening]
    depth = 0
    for place in range(begin, len(text)):
        if text[place] == opening:
            depth += 1
        elif text[place] == closing:
            depth -= 1
            if depth == 0:
                return text[begin + 1 : place], place + 1
    return text[begin + 1 :], len(text)


def split(parameters: str) -> list[str]:
    """Return the parameters of a list, which may have commas inside brackets."""
    found, depth = [""], 0
    for letter in parameters:
        depth += (letter in "<([") - (letter in ">)]")
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return found if parameters.strip() else []
