"""Record the program of a notebook: ``python -m tests.gpu.record_one_pool FOLDER``.

``notebooks/one_pool.ipynb`` shows these files where there is no GPU. They name neither the host
nor its folders.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import nbformat

import gpuviz
from gpuviz.quantities import format_bytes
from gpuviz.recording import Recording
from tests.gpu.without_host import without_host

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "one_pool.ipynb"
WAYS = {"separate": ["--observe"], "watched": [], "shared": ["--shared-pool"]}
TIMEOUT_S = 120


def write_program(folder: Path) -> Path:
    """Write the program of the notebook."""
    for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
        magic, _, program = cell.source.partition("\n")
        if magic.startswith("%%writefile"):
            path = folder / magic.split()[1]
            path.write_text(program)
            return path
    raise LookupError(f"{NOTEBOOK.name} writes no program")


def record(program: Path, options: list[str]) -> Recording:
    """Return a recording of the program in a process of its own."""
    output = program.with_suffix(".gpuviz")
    command = [sys.executable, "-m", "gpuviz", "run", "--force", *options, "-o", str(output)]
    subprocess.run(
        [*command, program.name], check=True, cwd=program.parent, timeout=TIMEOUT_S, env=os.environ
    )
    return gpuviz.load(output)


def rows(folder: Path) -> Iterator[str]:
    yield f"{'run':10}{'events':>8}{'peak':>12}{'used':>12}{'kB':>8}  notes"
    with tempfile.TemporaryDirectory() as temporary:
        program = write_program(Path(temporary))
        record(program, [])  # compiles the kernels, which would look like idle time
        for way, options in WAYS.items():
            recording = without_host(record(program, options))
            path = folder / f"one_pool_{way}.gpuviz"
            recording.save(path, overwrite=True)
            used = max(recording.other_memory(by="time")["used"].to_pylist(), default=0)
            events, peak = recording.table("memory_events").num_rows, recording.peak().bytes
            yield (
                f"{way:10}{events:8}{format_bytes(peak):>12}{format_bytes(used):>12}"
                f"{path.stat().st_size / 1000:8.1f}  {recording.manifest.notes}"
            )


if __name__ == "__main__":
    for row in rows(Path(sys.argv[1])):
        print(row, flush=True)
