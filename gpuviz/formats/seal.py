"""The seal of a ``.gpuviz`` file: whether this user's gpuviz wrote it, and nobody changed it since.

A file contains conclusions besides what was recorded. They are believed only under this seal, and
computed again without it: a checksum can be made by everybody, so it says nothing of who wrote.
"""

import hashlib
import hmac
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

# The seal is the comment of the ZIP archive, so that other programs skip it.
_LABEL = b"gpuviz-seal-1:"
_KEY_BYTES = 32
_COMMENT_BYTES = len(_LABEL) + hashlib.sha256().digest_size
# PKWARE's APPNOTE.TXT 6.3: an archive ends with the size of its comment and the comment.
_SIZE_BYTES = 2
_PIECE_BYTES = 1 << 20


def seal(file: BinaryIO) -> None:
    """Seal the archive in a file object that is also read, and has no comment yet.

    It stays without a seal where the user's key can be neither read nor made.
    """
    key = _key()
    if key is None:
        return
    seal_of_content = hmac.new(key, digestmod="sha256")
    left = file.seek(0, os.SEEK_END) - _SIZE_BYTES
    file.seek(0)
    while left:
        piece = file.read(min(left, _PIECE_BYTES))
        seal_of_content.update(piece)
        left -= len(piece)
    file.seek(-_SIZE_BYTES, os.SEEK_END)
    file.write(_COMMENT_BYTES.to_bytes(_SIZE_BYTES, "little"))
    file.write(_LABEL + seal_of_content.digest())


def is_sealed(content: bytes) -> bool:
    """Return whether an archive has the seal of this user."""
    archive = memoryview(content)[: -_SIZE_BYTES - _COMMENT_BYTES]
    comment = content[-_COMMENT_BYTES:]
    if not comment.startswith(_LABEL):
        return False
    key = _key()
    if key is None:
        return False
    return hmac.compare_digest(comment[len(_LABEL) :], hmac.digest(key, archive, "sha256"))


def _key() -> bytes | None:
    """Return the user's key, made on first use; None if there is none that only the user knows."""
    try:
        path = _key_path()
        with suppress(FileExistsError):
            _make_key(path)
        return _read_key(path)
    # Path.home() raises RuntimeError for a user without a home.
    except (OSError, RuntimeError):
        return None


def _key_path() -> Path:
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "gpuviz" / "seal.key"


def _make_key(path: Path) -> None:
    """Write a new key, as a whole.

    Raises:
        FileExistsError: There is one.
        OSError: It cannot be written.
    """
    if path.exists():
        raise FileExistsError(path)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = path.with_name(f".{os.urandom(8).hex()}.tmp")
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(os.urandom(_KEY_BYTES))
        # Unlike a rename, a link does not replace the key of a process that was faster.
        os.link(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def _read_key(path: Path) -> bytes | None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        is_own = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
        if not is_own or found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            return None
        key = file.read(_KEY_BYTES + 1)
    return key if len(key) == _KEY_BYTES else None
