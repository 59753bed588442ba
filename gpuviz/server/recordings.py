"""HTTP handlers that convert recordings which a browser cannot read."""

import asyncio
import base64
from collections.abc import Hashable
from functools import partial
from pathlib import Path
from stat import S_ISREG
from typing import Any

from jupyter_core.utils import ensure_async
from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler, AuthenticatedFileHandler
from jupyter_server.services.contents.fileio import FileManagerMixin
from tornado import web

from gpuviz.server.conversions import ConversionError, Conversions, Fetch


class RecordingsHandler(APIHandler):
    """Makes something for the browser of a file: a current recording, its findings, a comparison.

    The query has a ``path`` for each file: one, or those before and after.
    Users can convert any file that they can read through the server. The response has ``file``, the
    path of the result for `ConvertedHandler`. Status 202 means that the conversion still runs, and
    the request must be repeated. Other responses have a ``message`` for the user.
    """

    auth_resource = "contents"

    def initialize(self, conversions: Conversions) -> None:
        """Take what converts."""
        self._conversions = conversions

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Respond with JSON."""
        paths = self.get_query_arguments("path")
        if len(paths) != self._conversions.sources:
            raise web.HTTPError(400, f"Expected {self._conversions.sources} paths.")
        try:
            found = [await self._found(path.strip("/")) for path in paths]
        except (OSError, ValueError):
            # Also of a path that is too long, goes through a file or a loop, or has a null byte.
            raise web.HTTPError(404, "The file does not exist.") from None
        try:
            version = tuple(version for version, _ in found)
            file = await self._conversions.converted(version, *(source for _, source in found))
        except ConversionError as error:
            self.set_status(422)
            self.finish({"message": str(error)})
            return
        self.set_status(202 if file is None else 200)
        self.finish({} if file is None else {"file": file})

    async def _found(self, path: str) -> tuple[Hashable, Fetch]:
        """Return a key for a file's content, and a function that fetches it from the server."""
        manager: Any = self.contents_manager
        is_local = isinstance(manager, FileManagerMixin)
        if not manager.allow_hidden and await ensure_async(manager.is_hidden(path)):
            raise web.HTTPError(404, "The file does not exist.")
        if not is_local:
            model = await ensure_async(manager.get(path, type="file", content=False))
            return (path, model["last_modified"], model["size"]), partial(_copied, manager, path)
        found = Path(manager._get_os_path(path))  # noqa: SLF001 - the method for subclasses
        status = await asyncio.to_thread(found.stat)
        if not S_ISREG(status.st_mode):
            raise web.HTTPError(400, "It is not a file.")
        version = (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)
        return version, partial(_in_place, found)


class ConvertedHandler(AuthenticatedFileHandler):
    """Sends a converted file, whole or as ranges."""

    def initialize(self, conversions: Conversions) -> None:  # type: ignore[override]
        """Take what converts."""
        super().initialize(path=str(conversions.folder))


async def _in_place(path: Path, _folder: Path) -> Path:
    return path


async def _copied(manager: Any, path: str, folder: Path) -> Path:
    """Copy a file that is not on a local disk into a folder."""
    model = await ensure_async(manager.get(path, type="file", format="base64", content=True))
    copy = folder / "source"
    await asyncio.to_thread(lambda: copy.write_bytes(base64.b64decode(model["content"])))
    return copy
