"""Functions of torch.linalg that wait for the GPU to check whether they have failed."""

import re

# Those with a variant that returns the outcome instead.
_CHECKED = re.compile(
    r"\b(?:linalg\.(cholesky|inv|ldl_factor|lu_factor|solve)|torch\.(cholesky|inverse))\s*\("
)
_OLDER = {"inverse": "inv"}
# Those without one.
_ALWAYS = re.compile(r"\blinalg\.(eigh?|eigvalsh?|lstsq|pinv|svd|svdvals)\s*\(")
# What reads a value itself.
_READ = re.compile(r"\.(?:cpu|item|numpy|tolist)\(|\b(?:bool|float|int)\(")


def is_check(source: str) -> bool:
    """Return whether a line that reads a number does so to check a result, as its text shows."""
    is_checked = _CHECKED.search(source) or _ALWAYS.search(source)
    return is_checked is not None and not _READ.search(source)


def unchecked(source: str) -> str:
    """Return the function to call instead of one that checks its result; empty without one."""
    found = _CHECKED.search(source)
    if found is None:
        return ""
    name = found[1] or found[2]
    return f"torch.linalg.{_OLDER.get(name, name)}_ex"
