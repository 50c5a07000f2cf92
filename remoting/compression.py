"""Compressed message bodies, and the sysFlag bits that announce them. Inflated sizes are limited, because of zip bombs.

    sysFlag   bit 0: compressed · bit 1: multi tags · bits 2–3: transaction · bit 4, 5: born, store host is IPv6
              bits 8–10: 0 (old clients) and 0x300 zlib stream, 0x100 LZ4 frame, 0x200 zstd frame

Upstream: `common/.../compression/*`, `MessageSysFlag`.
"""

import zlib
from enum import IntEnum

import lz4.frame
import zstandard

from .errors import RemoteProtocolError

COMPRESSED_FLAG = 0x1
MULTI_TAGS_FLAG = 0x2
BORN_HOST_V6_FLAG = 0x10
STORE_HOST_V6_FLAG = 0x20
COMPRESSION_TYPE_MASK = 0x700

INFLATED_MAX = 16_777_216
"""Most bytes a body may inflate to. Producers refuse bodies over 4 MiB before they compress them."""

_LEVEL = 5
_ZSTD_WINDOW_MAX = 1 << 24
_ZSTD_SLICE = 128


class CompressionType(IntEnum):
    """A compression algorithm; values are the sysFlag bits."""

    LZ4 = 0x100
    ZSTD = 0x200
    ZLIB = 0x300


def compression_type(sys_flag: int) -> CompressionType:
    """Return the compression algorithm in a sysFlag's bits. Raises RemoteProtocolError for unknown bits."""
    bits = sys_flag & COMPRESSION_TYPE_MASK
    if bits == 0:
        return CompressionType.ZLIB
    try:
        return CompressionType(bits)
    except ValueError:
        raise RemoteProtocolError(f"sysFlag {sys_flag:#x} names no known compression") from None


def compressed_flags(kind: CompressionType = CompressionType.ZLIB) -> int:
    """Return the sysFlag bits of a body compressed as `kind` (0x301 for zlib, as 4.9.8 sends)."""
    return COMPRESSED_FLAG | kind


def compress(body: bytes, kind: CompressionType = CompressionType.ZLIB) -> bytes:
    """Compress `body` to one zlib stream, LZ4 frame or zstd frame, with RocketMQ's default level."""
    if kind is CompressionType.ZLIB:
        return zlib.compress(body, _LEVEL)
    if kind is CompressionType.LZ4:
        return bytes(lz4.frame.compress(body))
    return zstandard.ZstdCompressor(level=_LEVEL).compress(body)


def inflate_zlib(data: bytes | memoryview, limit: int = INFLATED_MAX) -> bytes:
    """Inflate one whole zlib stream. Raises RemoteProtocolError for a broken or short stream, or over `limit` bytes."""
    inflater = zlib.decompressobj()
    try:
        body = inflater.decompress(data, limit + 1)
    except zlib.error as exc:
        raise RemoteProtocolError(f"zlib stream of {len(data)} B cannot be inflated: {exc}") from exc
    return _bounded(body, inflater.eof, len(data), limit, "zlib")


def decompress(body: bytes, sys_flag: int, limit: int = INFLATED_MAX) -> bytes:
    """Return the decompressed body; if sysFlag has no compression bit, return the body unchanged. Raises
    RemoteProtocolError for a damaged body."""
    if not sys_flag & COMPRESSED_FLAG:
        return body
    kind = compression_type(sys_flag)
    if kind is CompressionType.ZLIB:
        return inflate_zlib(body, limit)
    try:
        if kind is CompressionType.LZ4:
            frame = lz4.frame.LZ4FrameDecompressor()
            inflated = bytes(frame.decompress(body, max_length=limit + 1))
            return _bounded(inflated, bool(frame.eof), len(body), limit, "LZ4")
        return _inflate_zstd(body, limit)
    except (RuntimeError, EOFError, zstandard.ZstdError) as exc:
        raise RemoteProtocolError(f"{kind.name} body of {len(body)} B cannot be inflated: {exc}") from exc


def _inflate_zstd(body: bytes, limit: int) -> bytes:
    # decompressobj is the one that tells a whole frame from a cut one, but it has no output limit; a slice holds at
    # most _ZSTD_SLICE / 4 run-length blocks of 128 KiB, so this overshoots the limit by 4 MiB at worst.
    frame = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_MAX).decompressobj()
    parts: list[bytes] = []
    size = 0
    for start in range(0, len(body), _ZSTD_SLICE):
        if frame.eof or size > limit:
            break
        parts.append(frame.decompress(body[start : start + _ZSTD_SLICE]))
        size += len(parts[-1])
    return _bounded(b"".join(parts), frame.eof, len(body), limit, "zstd")


def _bounded(body: bytes, whole: bool, size: int, limit: int, kind: str) -> bytes:
    if len(body) > limit:
        raise RemoteProtocolError(f"{kind} body of {size} B inflates to more than {limit} B")
    if not whole:
        raise RemoteProtocolError(f"{kind} body of {size} B is cut short")
    return body
