"""The exceptions of gpuviz.

::

    GpuvizError
    ├── RecordingError                          a recording cannot be read, written or analyzed
    │   ├── FormatError (ValueError)            a file is damaged, unknown or too new
    │   ├── RecordingExistsError (FileExistsError)   a file would be overwritten
    │   └── SpoolError (OSError)                events can no longer be written to disk
    ├── RecorderError (RuntimeError)            start and stop in the wrong order
    ├── InstallationError (RuntimeError)        a library's allocator cannot be replaced any more
    ├── MissingPackageError (ModuleNotFoundError)   a package that only some features need
    └── DeviceUnavailableError (RuntimeError)   no GPU, no driver, no CuPy, or one too old
"""

from gpuviz.terminal import printable


class GpuvizError(Exception):
    """Any error that gpuviz itself raises; its text cannot control a terminal."""

    def __str__(self) -> str:
        return printable(super().__str__())


class RecordingError(GpuvizError):
    """A recording cannot be read, written or analyzed."""


class FormatError(RecordingError, ValueError):
    """A file is not a complete, readable recording.

    Attributes:
        path: The file; empty if a recording that is in no file is analyzed.
        member: The faulty part of the file, such as ``memory_events.arrow``; ``table streams`` if
            an analysis found the fault; empty for the whole.
        problem: What was found and what was expected.
    """

    def __init__(self, path: str, member: str, problem: str) -> None:
        super().__init__(path, member, problem)
        self.path = path
        self.member = member
        self.problem = problem

    def __str__(self) -> str:
        return printable(": ".join(filter(None, (self.path, self.member, self.problem))))


class RecordingExistsError(RecordingError, FileExistsError):
    """A file or folder already exists at the output path."""


class SpoolError(RecordingError, OSError):
    """Events can no longer be written to disk; from now on they are kept in memory."""


class RecorderError(GpuvizError, RuntimeError):
    """A recorder was started twice, or stopped without having been started."""


class InstallationError(GpuvizError, RuntimeError):
    """A library has begun to use its own allocator, and can no longer change to gpuviz's."""


class MissingPackageError(GpuvizError, ModuleNotFoundError):
    """A package that only some features need is not installed."""


class DeviceUnavailableError(GpuvizError, RuntimeError):
    """A GPU, driver or library is missing or too old."""
