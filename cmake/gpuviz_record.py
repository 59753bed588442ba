"""Records each process in whose environment ``GPUVIZ_RECORD`` names a folder.

Python calls `begin` when it starts: since 3.15 as ``gpuviz_record.start`` says, and before because
of ``gpuviz_record.pth`` (PEP 829). Without the variable it imports nothing of gpuviz.

PYTEST_DONT_REWRITE: pytest would warn that this is imported before it can rewrite its assertions.
"""

import os


def begin() -> None:
    """Begin to record this process if the environment says so."""
    if "GPUVIZ_RECORD" in os.environ:
        __import__("gpuviz.commands.startup.each_process")
