"""Programs that consist of one line of text in a file of their own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any


def function_with(folder: Path, line: str) -> Callable[..., Any]:
    """Return a function that returns what a line computes of its arguments.

    Args:
        folder: Where its file is written.
        line: An expression of names, which are the keyword arguments of the function.
    """
    path = folder / f"program_{len(list(folder.iterdir()))}.py"
    path.write_text(f"def run():\n    return {line}\n")
    code = compile(path.read_text(), str(path), "exec")

    def call(**names: object) -> object:
        exec(code, names)  # noqa: S102 - the text of a test
        run: Callable[[], object] = names["run"]  # type: ignore[assignment]
        return run()

    return call
