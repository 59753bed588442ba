"""Execute notebooks here: ``python tests/gpu/run_notebooks.py FOLDER [NAME ...]``.

Writes the executed notebooks to FOLDER, with a live dashboard while they run, and prints a table:
sizes, errors, the largest output, and the text of each saved picture. The names are those of
``notebooks/`` without a suffix, by default the tour and k-means. Needs IPython, ipykernel, nbclient
and ipywidgets, but neither a browser nor a network. The exit status is 1 if anything is wrong.
"""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
DEFAULT = ("tour", "kmeans")
LARGEST_OUTPUT = 100_000
TIMEOUT_S = 600
ROW = "{:<20}{:>9}{:>10}{:>8}{:>13}{:>11}  {}"
WITHOUT_GPU = "no GPU"


class WatchingClient(NotebookClient):
    """Executes a notebook as if its timelines were visible, so that batches are sent to them."""

    def process_message(self, msg: dict[str, Any], cell: Any, cell_index: int) -> Any:
        state = msg["content"].get("data", {}).get("state", {})
        if msg["msg_type"] == "comm_open" and "gpuviz" in state.get("_anywidget_id", ""):
            show = {"kind": "show", "viewer": "nobody", "since": -1}
            data = {"method": "custom", "content": show}
            content = {"comm_id": msg["content"]["comm_id"], "data": data}
            self.kc.shell_channel.send(self.kc.session.msg("comm_msg", content))
        return super().process_message(msg, cell, cell_index)


def execute(name: str, folder: Path) -> tuple[nbformat.NotebookNode, float]:
    """Return an executed notebook, which is also written to the folder, and the seconds it took."""
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    resources = {"metadata": {"path": str(folder)}}
    client = WatchingClient(
        notebook,
        timeout=TIMEOUT_S,
        kernel_name="python3",
        resources=resources,
        allow_errors=True,
        store_widget_state=False,
    )
    began = time.monotonic()
    client.execute()
    seconds = time.monotonic() - began
    nbformat.write(notebook, folder / f"{name}.ipynb")
    return notebook, seconds


def outputs(notebook: nbformat.NotebookNode) -> Iterator[Any]:
    for cell in notebook.cells:
        yield from cell.get("outputs", [])


def complaints(notebook: nbformat.NotebookNode) -> list[str]:
    """Return the problems of a notebook, one line each."""
    found = []
    for output in outputs(notebook):
        if output.output_type == "error":
            found.append(f"{output.ename}: {output.evalue}")
        elif output.get("name") == "stderr":
            found.append(f"stderr: {output.text.strip()}")
        elif len(json.dumps(output).encode()) > LARGEST_OUTPUT:
            found.append(f"an output of {len(json.dumps(output).encode()):,} bytes")
    return found


def row(name: str, folder: Path) -> tuple[str, list[str]]:
    """Execute a notebook, and return its row of the table and its problems."""
    notebook, seconds = execute(name, folder)
    wrong = complaints(notebook)
    pictures = [one.data for one in outputs(notebook) if "text/html" in one.get("data", {})]
    if not pictures:
        wrong.append("no picture is left where the notebook is only read")
    largest = max((len(json.dumps(one).encode()) for one in outputs(notebook)), default=0)
    kind = WITHOUT_GPU if any(_says_no_gpu(one) for one in outputs(notebook)) else "on a GPU"
    size = (folder / f"{name}.ipynb").stat().st_size
    picture = max((len(one["text/html"].encode()) for one in pictures), default=0)
    line = ROW.format(
        name, f"{seconds:.1f}", f"{size:,}", len(wrong), f"{largest:,}", picture, kind
    )
    said = [f"    {one['text/plain'].splitlines()[0]}" for one in pictures]
    return "\n".join([line, *said]), wrong


def _says_no_gpu(output: Any) -> bool:
    return output.get("text", "").startswith(("There is no GPU", "No GPU here"))


def main(folder: str, *names: str) -> int:
    """Print the table; return the number of notebooks with problems."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    print(ROW.format("notebook", "seconds", "bytes", "wrong", "largest", "picture", ""))
    failed = 0
    for name in names or DEFAULT:
        line, wrong = row(name, path)
        print("\n".join([line, *(f"  ! {one}" for one in wrong)]), flush=True)
        failed += bool(wrong)
    return failed


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(min(1, main(*sys.argv[1:])))
