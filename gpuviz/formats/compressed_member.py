"""`CompressedMember`: a member of a ZIP archive that is decompressed later, without the archive."""

import zipfile
import zlib
from dataclasses import dataclass
from struct import Struct
from typing import Self

# PKWARE's APPNOTE.TXT 4.3.7: where a local header has the lengths of the name and the extra field.
_LENGTHS = Struct("<26xHH")


@dataclass(frozen=True, slots=True)
class CompressedMember:
    """The bytes of a member as an archive has them."""

    content: bytes
    method: int
    size: int
    checksum: int

    @classmethod
    def of(cls, archive: bytes, member: zipfile.ZipInfo) -> Self:
        """Return a member of an archive.

        Raises:
            struct.error: The archive ends before it.
        """
        start = member.header_offset + _LENGTHS.size
        start += sum(_LENGTHS.unpack_from(archive, member.header_offset))
        content = archive[start : start + member.compress_size]
        return cls(content, member.compress_type, member.file_size, member.CRC)

    def decompressed(self) -> bytes:
        """Return the content.

        Raises:
            ValueError: It is not that which was compressed.
            zlib.error: The bytes are damaged.
        """
        content = self.content
        if self.method == zipfile.ZIP_DEFLATED:
            content = zlib.decompressobj(-zlib.MAX_WBITS).decompress(content, self.size or 1)
        if len(content) != self.size or zlib.crc32(content) != self.checksum:
            raise ValueError(f"{len(content)} bytes with another checksum, expected {self.size}")
        return content
