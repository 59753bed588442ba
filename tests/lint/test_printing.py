"""Text reaches a terminal only through the functions that escape what could control it."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "gpuviz"
OUTPUT = PACKAGE / "commands" / "output.py"
# The second prints constants where nothing can be imported.
EDGES = {OUTPUT, PACKAGE / "commands" / "startup" / "sitecustomize.py"}
STREAMS = ("sys.stdout", "sys.stderr", "sys.__stdout__", "sys.__stderr__")
PRINTING = {"print", "click.echo", "click.secho", "Console", "rich.print"} | {
    f"{stream}.{method}" for stream in STREAMS for method in ("write", "writelines")
}


def printing_calls(path):
    calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    return PRINTING & {ast.unparse(call.func) for call in calls}


def test_nothing_is_printed_without_escapes():
    files = sorted(PACKAGE.rglob("*.py"))

    assert [path for path in files if path not in EDGES and printing_calls(path)] == []
    assert printing_calls(OUTPUT) == {"click.echo"}
