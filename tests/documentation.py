"""Runs the code blocks of a page of the documentation, one after the other.

Usage: python -m tests.documentation PAGE [what this machine has, such as gpu or torch ...]
"""

import doctest
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Collection
from contextlib import chdir, redirect_stdout
from io import StringIO
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import click
from IPython.core.interactiveshell import InteractiveShell

import gpuviz
from gpuviz.commands.cli import commands
from tests.documents import ROOT, Block, blocks_of, name_of
from tests.leftovers import empty_simulated_gpus
from tests.unit.ipython_shells import new_shell

RECORDINGS = ROOT / "gpuviz" / "commands" / "recordings"
# Recordings that pages load, and those that are shipped.
_FILES = {
    "run.gpuviz": "monte_carlo",
    "before.gpuviz": "monte_carlo",
    "after.gpuviz": "fft_filter",
    "ranks/0.gpuviz": "monte_carlo",
    "ranks/1.gpuviz": "fft_filter",
}
# What a page of a notebook has run before.
_CELLS = ("kept = gpu.empty(100 << 20)", "1", "2", "gpu.empty(64 << 20)")
# Commands that end by themselves, and only read and write files in the current folder.
_RUN_HERE = frozenset(
    ("findings", "hazards", "leaks", "peak", "info", "stats", "report", "diff", "convert", "merge")
) | {"what-if"}
_SAME = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def run(page: Path, has: Collection[str] = ()) -> list[str]:
    """Run the blocks of a page that need no more than ``has``, in a new folder.

    Returns:
        The languages of the blocks that ran.

    Raises:
        AssertionError: A block does not print what the page shows, or the command line has not
            what the page uses.
    """
    empty_simulated_gpus()  # of other pages and tests
    with TemporaryDirectory() as folder, chdir(folder), new_shell() as shell:
        is_tutorial = "tutorials" in name_of(page)
        if not is_tutorial:
            _copy_files()
        names = {} if is_tutorial else _names(has)
        module = ModuleType(page.stem)
        module.__dict__.update(names)
        sys.path.insert(0, folder)
        try:
            return _run_blocks(page, set(has), module, shell)
        finally:
            sys.path.remove(folder)


def _run_blocks(
    page: Path, has: set[str], module: ModuleType, shell: InteractiveShell
) -> list[str]:
    script = _Script(module)
    is_new_shell = True
    ran = []
    for block in blocks_of(page):
        if set(block.needs.split()) - has:
            continue
        if block.language == "ipython" and is_new_shell:
            shell.user_ns.update(module.__dict__)
            for cell in _CELLS * ("gpu" in module.__dict__):
                _cell(shell, cell)
            is_new_shell = False
        ways: dict[str, Callable[[Block], str]] = {
            "python": script.run,
            "ipython": lambda block: _cell(shell, block.text),
            "sh": lambda block: _commands(block.text),
        }
        if block.language in ways:
            _compare(page, block, ways[block.language](block))
            ran.append(block.language)
    return ran


class _Script:
    """The Python blocks of a page, in files, so that call stacks have their lines."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._texts: dict[str, str] = {}

    def run(self, block: Block) -> str:
        name = block.file or "example.py"
        before = self._texts.get(name, "")
        self._texts[name] = f"{before}{block.text}\n"
        path = Path(name).absolute()
        path.write_text(self._texts[name], encoding="utf-8")
        code = compile("\n" * before.count("\n") + block.text, str(path), "exec")
        with redirect_stdout(StringIO()) as printed:
            exec(code, self._module.__dict__)  # noqa: S102 - it is the documentation's
        return printed.getvalue()


def _compare(page: Path, block: Block, printed: str) -> None:
    shown = block.output
    if shown and not doctest.OutputChecker().check_output(shown, printed, _SAME):
        raise AssertionError(f"{name_of(page)}:{block.line} prints\n{printed}\nand not\n{shown}")


def _copy_files() -> None:
    Path("ranks").mkdir()
    for name, recording in _FILES.items():
        shutil.copy(RECORDINGS / f"{recording}.gpuviz", name)


def _names(has: Collection[str]) -> dict[str, Any]:
    """Return the names that pages use without defining them."""
    names = {
        "gpuviz": gpuviz,
        "recording": gpuviz.load("run.gpuviz"),
        "merged": gpuviz.merge("ranks"),
        "gpu": gpuviz.SimulatedGPU(memory=2 << 30, real_time=False),
        "batches": range(3),
    }
    if "gpu" not in has:
        return names
    if "cluster" in has:
        import dask

        # A client without a cluster starts one.
        names |= {"cluster": None, "graph": dask.delayed(sum)([1, 2]), "display": print}
    Path("run.gpuviz").unlink()  # pages with a GPU record it
    import cupy
    import cupyx

    stream, *streams = (cupy.cuda.Stream(non_blocking=True) for _ in range(4))
    program = {
        name: lambda: cupy.ones(1 << 20).sum() for name in ("my_cupy_program", "main", "train")
    }
    return {
        **names,
        **program,
        **dict(zip(("other_stream", "copies", "compute"), streams, strict=True)),
        "cupy": cupy,
        "cupyx": cupyx,
        "stream": stream,
        "shape": 1 << 20,
        "x": cupy.ones(1 << 20),
        "consume": lambda array: array * 2,
        "load": lambda: cupy.ones(1 << 20),
        "filter": lambda images: images * 2,
    }


def _cell(shell: InteractiveShell, text: str) -> str:
    with redirect_stdout(StringIO()) as printed:
        shell.run_cell(text, store_history=True).raise_error()
    return printed.getvalue()


def _commands(text: str) -> str:
    """Run the lines that call gpuviz if their files are there; check the others' options."""
    with redirect_stdout(StringIO()) as printed:
        for line in re.sub(r"\\\n", " ", text).splitlines():
            name, *words = shlex.split(line, comments=True) or [""]
            if name == "gpuviz" and words:
                _command(*words)
    return printed.getvalue()


def _command(name: str, *arguments: str) -> None:
    if name.startswith("-"):
        return
    outputs = [each for option, each in pairwise(arguments) if option in {"-o", "--output"}]
    outputs += arguments[1:] * (name == "convert")
    files = [each for each in arguments if re.search(r"[.](gpuviz|pickle)$|^ranks$", each)]
    read = [each for each in files if each not in outputs]
    try:
        if name in _RUN_HERE and read and all(map(os.path.exists, read)):
            for path in outputs:
                Path(path).unlink(missing_ok=True)
            commands.main([name, *arguments], prog_name="gpuviz", standalone_mode=False)
        else:
            commands.commands[name].make_context(f"gpuviz {name}", list(arguments))
    except click.UsageError as error:
        raise AssertionError(f"gpuviz {name} {' '.join(arguments)}: {error.message}") from None
    except SystemExit as end:
        # A regression is what that option is there for.
        if end.code != 1 or "--fail-on" not in arguments:
            raise AssertionError(f"gpuviz {name} exits with {end.code}") from end


if __name__ == "__main__":
    print(*run(Path(sys.argv[1]).absolute(), sys.argv[2:]))  # noqa: T201 - its result
