"""The members of the archive of a recording, checked before they are expanded."""

import os
import zipfile
from io import BytesIO
from typing import BinaryIO

from gpuviz.errors import FormatError
from gpuviz.formats.arrow_stream import TABLE_SUFFIX
from gpuviz.formats.damage import naming

MANIFEST = "manifest.json"

# Deflate's largest possible ratio; a member that declares more is damaged or hostile.
MAX_DEFLATE_RATIO = 1032
# JSON takes up to 30 times as much memory as text.
MAX_MANIFEST_BYTES = 8 << 20
MAX_MEMBERS = 10_000
_ZIP_START = b"PK"
_ZIP_ENTRY, _ZIP_END = b"PK\x01\x02", b"PK\x05\x06"
# The end of a ZIP is in its last bytes: 22, of which two are the size of a comment, and that.
_ZIP_END_BYTES = 22
_ZIP_TAIL = _ZIP_END_BYTES + (1 << 16)
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}

_NO_ARCHIVE = "not a gpuviz recording; expected a ZIP archive"
_NO_END = "damaged or truncated (the end of the ZIP archive is missing)"


def is_archive(start: bytes) -> bool:
    """Return whether the first bytes of a file are those of a ZIP."""
    return start.startswith(_ZIP_START)


def check_ends(file: BinaryIO, path: str) -> None:
    """Check the start and the end of an archive, because the rest may be huge."""
    start = file.read(len(_ZIP_START))
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _ZIP_TAIL))
    tail = file.read()
    file.seek(0)
    if start != _ZIP_START:
        raise FormatError(path, "", _NO_ARCHIVE)
    if _ZIP_END not in tail:
        raise FormatError(path, "", _NO_END)


def opened(content: bytes, path: str) -> zipfile.ZipFile:
    """Return an archive, to be closed; ``path`` names it in errors.

    Raises:
        FormatError: It is no archive, damaged or truncated, or has too many members.
    """
    if not content.startswith(_ZIP_START):
        raise FormatError(path, "", _NO_ARCHIVE)
    if content.count(_ZIP_ENTRY) > MAX_MEMBERS:
        raise FormatError(path, "", f"damaged (more than {MAX_MEMBERS} members)")
    _check_comment(content, path)
    with naming(path, ""):
        return zipfile.ZipFile(BytesIO(content))


def _check_comment(content: bytes, path: str) -> None:
    """Check that the comment at the end of an archive is whole, which `zipfile` does not."""
    end = content.rfind(_ZIP_END, max(0, len(content) - _ZIP_TAIL))
    sized = content[end:][:_ZIP_END_BYTES]
    if end >= 0 and end + len(sized) + int.from_bytes(sized[20:], "little") > len(content):
        raise FormatError(path, "", _NO_END)


def members_of(archive: zipfile.ZipFile, path: str, size: int) -> dict[str, zipfile.ZipInfo]:
    """Return the manifest and the tables of an archive by name; other members are not read.

    Raises:
        FormatError: A member is there twice, or declares what cannot be, or the manifest is
            missing.
    """
    members: dict[str, zipfile.ZipInfo] = {}
    if sum(member.compress_size for member in archive.infolist()) > size:
        raise FormatError(path, "", "damaged (its members overlap)")
    for member in archive.infolist():
        name = member.filename
        if name != MANIFEST and not name.endswith(TABLE_SUFFIX):
            continue
        if name in members:
            raise FormatError(path, name, "damaged (the archive has it twice)")
        _check_member(member, path, size)
        members[name] = member
    if MANIFEST not in members:
        raise FormatError(path, MANIFEST, "missing, so this ZIP is not a whole gpuviz recording")
    return members


def _check_member(member: zipfile.ZipInfo, path: str, size: int) -> None:
    possible = member.compress_size * MAX_DEFLATE_RATIO + 64
    if member.filename == MANIFEST:
        possible = min(possible, MAX_MANIFEST_BYTES)
    if member.compress_size > size or member.file_size > possible:
        problem = (
            f"damaged (declares {member.file_size} bytes from {member.compress_size} in a file "
            f"of {size}; at most {possible} are possible)"
        )
        raise FormatError(path, member.filename, problem)
    if member.compress_type not in _METHODS:
        problem = f"compressed by method {member.compress_type}; expected deflate"
        raise FormatError(path, member.filename, problem)


def member_bytes(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: str) -> bytes:
    """Return a member of an archive, expanded.

    Raises:
        FormatError: It is damaged, or not as long as declared.
    """
    with naming(path, member.filename):
        with archive.open(member) as file:
            # Without a number it would expand everything, whatever size is declared.
            content = file.read(member.file_size)
        if len(content) != member.file_size:
            raise EOFError(f"{len(content)} bytes, expected {member.file_size}")
        return content
