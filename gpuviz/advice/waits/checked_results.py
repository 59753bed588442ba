"""Functions of PyTorch's linear algebra that wait for the GPU to check whether they have failed."""

import re

# Those with a variant that returns the outcome instead. Inverses of models have an argument.
_CHECKED = re.compile(
    r"\blinalg\.(inv|ldl_factor|lu_factor|solve)\s*\(|\b(cholesky)\s*\("
    r"|\btorch\.(inverse)\s*\(|\.(inverse)\s*\(\s*\)"
)
_OLDER = {"inverse": "inv"}
# Those without one.
_ALWAYS = re.compile(
    r"\blinalg\.(cond|eig|eigvals)\s*\("
    r"|\b(cholesky_inverse|eigh|eigvalsh|lstsq|matrix_rank|pinv|pinverse|svd|svdvals|tensorinv"
    r"|tensorsolve)\s*\("
)
_OF_OTHERS = re.compile(r"\b(cp|cupy|np|numpy|scipy|jnp)\.linalg\b")
# What reads a value itself, unlike `x.float()`.
_READ = re.compile(r"\.(?:cpu|item|numpy|tolist)\(|(?<![.\w])(?:bool|float|int)\(")


def reads_value(source: str) -> bool:
    """Return whether a line reads a value itself, as its text shows."""
    return _READ.search(source) is not None


def is_of_others(source: str) -> bool:
    """Return whether a line calls the linear algebra of another library."""
    return _OF_OTHERS.search(source) is not None


def always_checks(source: str) -> bool:
    """Return whether a line calls a function that checks its result whatever its arguments."""
    return _ALWAYS.search(source) is not None


def unchecked(source: str) -> str:
    """Return the function to call instead of one that checks its result; empty without one."""
    found = _CHECKED.search(source)
    if found is None:
        return ""
    name = next(filter(None, found.groups()))
    return f"torch.linalg.{_OLDER.get(name, name)}_ex"
