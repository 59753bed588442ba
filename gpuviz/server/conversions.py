"""Conversion of recordings for the browser, in separate processes, to a temporary folder."""

import asyncio
import atexit
import re
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable, Hashable
from functools import cached_property
from pathlib import Path

KEPT_BYTES = 4 << 30
LIMIT_S = 600
AT_ONCE = 2
# A proxy in front of the server may abort a request that takes a minute.
PATIENCE_S = 20.0
_NAME_BYTES = 16

Fetch = Callable[[Path], Awaitable[Path]]
"""Returns the path of the source; it may write the source into the given folder."""


class ConversionError(Exception):
    """A file cannot be converted; the message is for the user."""


class Conversions:
    """Converts each version of a file once, and removes the least recently used results.

    To be used from one event loop, which is never blocked.

    Args:
        file: The name of each result, of which `gpuviz.server.convert` takes the format.
        sources: The number of files that a result is made of.
    """

    def __init__(self, file: str, *, sources: int = 1) -> None:
        self._file = file
        self.sources = sources
        # Least recently used first.
        self._conversions: dict[Hashable, asyncio.Task[Path]] = {}
        self._processes: set[asyncio.subprocess.Process] = set()
        self._turns = asyncio.Semaphore(AT_ONCE)

    @cached_property
    def folder(self) -> Path:
        """The folder of converted files, which have unguessable names; removed with the server."""
        folder = Path(tempfile.mkdtemp(prefix="gpuviz-server-"))
        atexit.register(self._close)
        return folder

    @property
    def names(self) -> str:
        """A regular expression of the paths that `converted` returns."""
        return f"[0-9a-f]{{{2 * _NAME_BYTES}}}/{re.escape(self._file)}"

    async def converted(self, version: Hashable, *sources: Fetch) -> str | None:
        """Return the path of a converted file in `folder`; None while the conversion runs.

        Args:
            version: A key for the content, such as a path and a modification time.
            sources: Return the files to convert.

        Raises:
            ConversionError: The file cannot be converted.
        """
        conversion = self._conversions.pop(version, None)
        if conversion is None or _is_lost(conversion):
            conversion = asyncio.create_task(self._convert(sources))
        self._conversions[version] = conversion
        await asyncio.wait([conversion], timeout=PATIENCE_S)
        if not conversion.done():
            return None
        if conversion.exception() is not None:
            # The next request tries again; waiting requests keep this task.
            self._conversions.pop(version, None)
        return conversion.result().relative_to(self.folder).as_posix()

    async def _convert(self, sources: tuple[Fetch, ...]) -> Path:
        async with self._turns:
            folder = self.folder / secrets.token_hex(_NAME_BYTES)
            try:
                folder.mkdir()
                copies = [folder / f"source{number}" for number in range(len(sources))]
                for copy in copies:
                    copy.mkdir()
                fetched = zip(sources, copies, strict=True)
                paths = [await source(copy) for source, copy in fetched]
                await self._run(paths, folder / self._file)
            except BaseException as error:
                shutil.rmtree(folder, ignore_errors=True)
                if isinstance(error, OSError):
                    problem = error.strerror or error
                    raise ConversionError(f"The server cannot convert files: {problem}.") from error
                raise
            for copy in copies:
                shutil.rmtree(copy)
        self._discard(KEPT_BYTES - (folder / self._file).stat().st_size)
        return folder / self._file

    async def _run(self, sources: list[Path], target: Path) -> None:
        # -P: modules beside the notebooks must not shadow the standard library.
        command = (sys.executable, "-P", "-m", "gpuviz.server.convert")
        process = await asyncio.create_subprocess_exec(
            *command,
            str(target),
            str(LIMIT_S),
            *map(str, sources),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        self._processes.add(process)
        try:
            _, output = await process.communicate()
        finally:
            self._processes.discard(process)
            if process.returncode is None:
                process.kill()
        if process.returncode != 0:
            raise ConversionError(_problem(process.returncode, output.decode(errors="replace")))

    def _discard(self, kept_bytes: int) -> None:
        """Remove the least recently used files until the others fit."""
        for version, conversion in reversed(list(self._conversions.items())):
            if not conversion.done() or conversion.exception() is not None or _is_lost(conversion):
                continue
            kept_bytes -= conversion.result().stat().st_size
            if kept_bytes < 0:
                shutil.rmtree(conversion.result().parent, ignore_errors=True)
                del self._conversions[version]

    def _close(self) -> None:
        for process in self._processes:
            process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def _is_lost(conversion: asyncio.Task[Path]) -> bool:
    """Whether the file is gone, for example because the system emptied the temporary folder."""
    is_whole = conversion.done() and conversion.exception() is None
    return is_whole and not conversion.result().is_file()


def _problem(code: int | None, output: str) -> str:
    if code == 1 and output.count("\n") == 1:
        return output.strip()
    if code == -signal.SIGALRM:
        return f"Converting the file takes longer than {LIMIT_S // 60} minutes."
    if code == -signal.SIGKILL:
        return "The conversion was killed by the system, which may have run out of memory."
    last = output.strip().rpartition("\n")[2] or f"exit code {code}"
    return f"Converting the file failed unexpectedly: {last}"
