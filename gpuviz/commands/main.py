"""The command ``gpuviz``: runs a verb, and prints errors as one sentence."""

import gc
import signal
import sys
from typing import NoReturn

import click

from gpuviz.commands.cli import commands
from gpuviz.commands.output import say, show_error
from gpuviz.commands.signals import BY_SIGNAL, forget_signals, handle_signals, signalled
from gpuviz.errors import GpuvizError

_OBJECTS_BETWEEN_COLLECTIONS = 100_000


def main() -> NoReturn:
    """Run the command line; a failure is one sentence on stderr and exit code 1."""
    handle_signals()
    sys.meta_path.insert(0, _WithoutPandas())
    # Imports create many objects and hardly any garbage.
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    try:
        commands(prog_name="gpuviz", standalone_mode=False)
    except click.ClickException as error:
        is_help = isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ()))
        show_error(error, err=not is_help)
        sys.exit(error.exit_code)
    except click.Abort:
        _fail("interrupted", BY_SIGNAL + signal.SIGINT)
    except Exception as error:
        _end_as_signalled(error)
        if isinstance(error, GpuvizError):
            _fail(str(error))
        if isinstance(error, OSError):
            _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        raise
    finally:
        forget_signals()
    sys.exit(0)


class _WithoutPandas:
    """Blocks the import of pandas, which no command needs and which takes pyarrow half a second."""

    def find_spec(self, fullname: str, _path: object, _target: object = None) -> None:
        if fullname in {"pandas", "dateutil"}:
            raise ModuleNotFoundError(fullname)


def _end_as_signalled(error: BaseException) -> None:
    """Exit if a signal came first: a library may fail when it cleans up after one."""
    match signalled(error):
        case KeyboardInterrupt():
            _fail("interrupted", BY_SIGNAL + signal.SIGINT)
        case SystemExit(code=code):
            sys.exit(code)


def _fail(sentence: str, code: int = 1) -> NoReturn:
    say(f"gpuviz: {sentence}", err=True)
    sys.exit(code)
