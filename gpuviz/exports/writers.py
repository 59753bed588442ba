"""Export formats for other tools."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from gpuviz.data.recording_data import RecordingData

# For each format: its module, its function, and the suffixes that select it.
FORMATS = {
    "perfetto": ("exports.perfetto", "write", (".pftrace", ".perfetto-trace")),
    "perfetto_archive": ("exports.perfetto_archive", "write", (".zip",)),
    "chrome_trace": ("exports.chrome_trace", "write", (".json",)),
    "torch_snapshot": ("exports.torch_export", "write", (".pickle", ".pkl")),
    "arrow": ("formats.arrow_directory", "write_arrow", (".arrow",)),
    "parquet": ("formats.arrow_directory", "write_parquet", (".parquet",)),
}


class Writer(Protocol):
    """Writes a recording atomically, and returns the path."""

    def __call__(self, recording: "RecordingData", path: Path, *, overwrite: bool) -> Path:
        """Write to ``path``; RecordingExistsError if it exists and ``overwrite`` is False."""


def writer(path: Path, format: str | None) -> Writer:  # noqa: A002 - as `Recording.export` has it
    """Return the writer of a format; if ``format`` is None, by the suffix of ``path``.

    Raises:
        ValueError: The format or suffix is unknown; the message lists the formats.
    """
    if format is None:
        format = _format_of(path)  # noqa: A001
    if format not in FORMATS:
        raise ValueError(f"unknown format {format!r}; choose one of {_listed()}")
    module, function, _ = FORMATS[format]
    found: Writer = getattr(import_module(f"gpuviz.{module}"), function)
    return found


def _format_of(path: Path) -> str:
    for name, (_, _, suffixes) in FORMATS.items():
        if path.suffix in suffixes:
            return name
    found = f"the suffix {path.suffix!r}" if path.suffix else "no suffix"
    raise ValueError(
        f"{path} has {found}, which is not that of a format; pass format=..., one of {_listed()}; "
        "Recording.save writes .gpuviz and Recording.report HTML",
    )


def _listed() -> str:
    return ", ".join(f'"{name}" ({" or ".join(each[2])})' for name, each in FORMATS.items())
