"""Text of a program as a syntax tree; it may come from a file of a stranger."""

import ast


def parsed(text: str) -> ast.Module | None:
    """Return the syntax tree of statements; None if they cannot be understood.

    Such are statements that go on in further lines, and those that are nested more deeply than
    Python's parser can follow.
    """
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
