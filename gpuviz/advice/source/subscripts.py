"""Subscripts of ``einsum``, and orders of its products."""

import re
from itertools import combinations

_CALL = re.compile(r"""\beinsum\(\s*(["'])(?P<text>[A-Za-z,\s]+(->[A-Za-z\s]*)?)\1\s*,""")
_NAME = re.compile(r"\beinsum\(")
# More have too many orders, and are rare.
_MOST_OPERANDS = 5


def subscripts_in(source: str) -> tuple[list[frozenset[str]], frozenset[str]] | None:
    """Return the indices of each operand of the one ``einsum`` in a line, and those of its result.

    None without subscripts that the line spells out, and if it chooses an order (``optimize``).
    """
    found = _CALL.search(source)
    if found is None or len(_NAME.findall(source)) > 1 or "optimize" in source:
        return None
    inputs, arrow, output = re.sub(r"\s", "", found["text"]).partition("->")
    letters = inputs.replace(",", "")
    if not arrow:
        output = "".join(each for each in letters if letters.count(each) == 1)
    return [frozenset(each) for each in inputs.split(",")], frozenset(output)


def has_small_order(operands: list[frozenset[str]], result: frozenset[str]) -> bool:
    """Return whether products of two operands at a time need no array with other indices.

    Each array in between then has at most the indices of one operand, or of the result.
    """
    return len(operands) <= _MOST_OPERANDS and _has_order(operands, [*operands, result], result)


def _has_order(
    left: list[frozenset[str]], known: list[frozenset[str]], result: frozenset[str]
) -> bool:
    if len(left) <= 2:  # noqa: PLR2004 - of the last two, the product is the result
        return True
    for first, second in combinations(range(len(left)), 2):
        others = [each for number, each in enumerate(left) if number not in (first, second)]
        product = (left[first] | left[second]) & result.union(*others)
        if any(product <= each for each in known) and _has_order([*others, product], known, result):
            return True
    return False
