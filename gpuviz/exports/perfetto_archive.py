"""A ZIP archive of Perfetto traces, one for each host, with Perfetto's trace manifest."""

import json
import shutil
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, BinaryIO
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from gpuviz.analysis.processes import processes
from gpuviz.data.recording_data import RecordingData
from gpuviz.exports.perfetto import write_packets
from gpuviz.exports.trace import build_trace
from gpuviz.formats.whole_file import write_whole

# Perfetto documents the manifest at https://perfetto.dev/docs/reference/perfetto-manifest.
_MANIFEST = "perfetto_manifest.json"
_CLOCK = "REALTIME"
_UNKNOWN_HOST = "host"


def write(recording: RecordingData, path: Path, *, overwrite: bool = False) -> Path:
    """Write a recording atomically as an archive that Perfetto opens; return the path.

    Each host of a merged recording is a machine with a trace of its own. The traces have the common
    time axis of the recording, whose place on the wall clock each contains, so the manifest's
    offsets are 0. Its attributes have the bound of the error of each host, in ns.

    Raises:
        RecordingExistsError: ``path`` exists and ``overwrite`` is False.
        OSError: The file cannot be written.
    """

    def write_archive(file: BinaryIO) -> None:
        trace = build_trace(recording)
        names = _names(sorted({*trace.hosts.values()}))
        with ZipFile(file, "w", ZIP_DEFLATED) as archive:
            archive.writestr(_MANIFEST, json.dumps(_manifest(recording, names), indent=1))
            for host, name in names.items():
                with TemporaryFile() as unpacked:
                    write_packets(recording, trace.of_host(host), unpacked)
                    _add(archive, name, unpacked)

    return write_whole(path, write_archive, overwrite=overwrite)


def _add(archive: ZipFile, name: str, content: IO[bytes]) -> None:
    entry = ZipInfo(name)
    entry.compress_type = ZIP_DEFLATED
    # Perfetto reads no entries in the format for large ones, which zipfile chooses by the size.
    entry.file_size = content.tell()
    content.seek(0)
    with archive.open(entry, "w") as packed:
        shutil.copyfileobj(content, packed)


def _names(hosts: list[str]) -> dict[str, str]:
    """Return the name of each host's trace, without characters that a path could have."""
    names: dict[str, str] = {}
    for number, host in enumerate(hosts):
        safe = "".join(each if each.isalnum() or each in "-_." else "_" for each in host)[:40]
        names[host] = f"{number}-{safe or _UNKNOWN_HOST}.pftrace"
    return names


def _manifest(recording: RecordingData, names: dict[str, str]) -> dict[str, Any]:
    files: list[dict[str, Any]] = []
    first = next(iter(names.values()))
    for host, name in names.items():
        clocks: dict[str, Any] = {"clock": _CLOCK}
        if name != first:
            clocks |= {"sync_to": {"file": first, "clock": _CLOCK}, "offset_ns": 0}
        files.append({"path": name, "machine": {"name": host or _UNKNOWN_HOST}, "clocks": clocks})
    errors: dict[str, int] = {}
    for process in processes(recording):
        host = process.recording.manifest.host or _UNKNOWN_HOST
        known = errors.get(host, process.clock_error)
        errors[host] = -1 if -1 in {known, process.clock_error} else max(known, process.clock_error)
    manifest: dict[str, Any] = {"version": 1, "files": files}
    manifest["trace_time"] = {"clock": _CLOCK, "file": first}
    if errors:
        manifest["attributes"] = {
            f"clock error of {host} (ns)": error if error >= 0 else "unknown"
            for host, error in errors.items()
        }
    return {"perfetto_manifest": manifest}
