"""ipykernel settings for answering a page while a cell runs."""

from typing import Any


def answer_while_a_cell_runs(comm: Any) -> None:
    """Let messages be handled on the subshell that they are for.

    ipykernel 7.4 routes them to where the comm last sent from, a busy cell: JupyterLab asks for a
    subshell, and this lets it have one. Elsewhere messages wait for the cell, as they always did.
    """
    if hasattr(comm, "_reply_subshell_for"):
        comm._reply_subshell_for = lambda _data, own: own  # noqa: SLF001 - there is no public way
