"""Startup hook of each process in whose environment ``GPUVIZ_RECORD`` names a folder.

Python runs it through ``gpuviz_record`` in site-packages before the program. The processes that
this one starts inherit the variables, so that each records to a file of its own.
"""

import os

FOLDER = "GPUVIZ_RECORD"
OPTIONS = "GPUVIZ_RECORD_OPTIONS"


def _begin() -> None:
    from gpuviz.commands.startup import sitecustomize

    # A process may start others in another folder.
    folder = os.path.abspath(os.environ[FOLDER])  # noqa: PTH100 - pathlib is not imported yet
    os.environ[FOLDER] = folder
    sitecustomize.begin(os.environ.get(OPTIONS, "{}"), folder=folder)


# `gpuviz run` without --children records the program to a file of its own.
if os.environ.get(FOLDER) and "GPUVIZ_RUN" not in os.environ:
    _begin()
