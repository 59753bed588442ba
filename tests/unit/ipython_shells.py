"""IPython shells that leave nothing behind in the process of the tests."""

import atexit
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config


@contextmanager
def new_shell() -> Iterator[InteractiveShell]:
    """Make a shell the current one of the process; without a history file."""
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    main = sys.modules["__main__"]
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(config=config)
    yield shell
    InteractiveShell.clear_instance()
    sys.modules["__main__"] = main
    # IPython's completer keeps the module of the last shell.
    shell.reset(new_session=False)
    shell.user_ns.clear()
    # At exit, each shell would collect the garbage of the whole process.
    atexit.unregister(shell.atexit_operations)
