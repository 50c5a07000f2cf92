"""A checksum that shows whether a message was changed on its way: of its body, keys, tags and user's properties.

Properties that clients and brokers add (WAIT, UNIQ_KEY, MIN_OFFSET, CLUSTER …) are left out, so that producer and
consumers compute the same number.
"""

import zlib
from collections.abc import Mapping

from .message_properties import KEYS, RESERVED_NAMES, SHARDING_KEY, TAGS

_OF_THE_USER = frozenset({KEYS, TAGS, SHARDING_KEY})


def message_digest(body: bytes, properties: Mapping[str, str]) -> int:
    """CRC-32, as `java.util.zip.CRC32` has it, of the body as the user gave it and then of the properties by name."""
    own = [item for item in properties.items() if item[0] in _OF_THE_USER or item[0] not in RESERVED_NAMES]
    return zlib.crc32(repr(sorted(own)).encode("utf-8", "surrogatepass"), zlib.crc32(body))
