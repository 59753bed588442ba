"""The comm of the panel, and ipykernel settings for answering it while a cell runs."""

from typing import Any

# The comm target of the panel.
TARGET = "gpuviz.notebook"


def answer_while_a_cell_runs(comm: Any) -> None:
    """Handle messages on the subshell to which they were sent.

    ipykernel 7.4 routes them to the thread from which the comm last sent, which may run a cell.
    Other versions are unaffected; without subshells messages wait for the cell.
    """
    if hasattr(comm, "_reply_subshell_for"):
        comm._reply_subshell_for = lambda _data, own: own  # noqa: SLF001 - there is no public way
