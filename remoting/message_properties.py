"""The properties string of a message, the property names that RocketMQ reserves, and Java's string hash.

    name 0x01 value 0x02 name 0x01 value 0x02 …      UTF-8, no escaping, last separator optional

Upstream: `MessageDecoder.messageProperties2String`, `string2messageProperties`, `MessageConst`, `String.hashCode`.
"""

import zlib
from array import array
from collections.abc import Mapping
from functools import lru_cache

from .errors import LocalProtocolError

NAME_VALUE_SEPARATOR = "\x01"
PROPERTY_SEPARATOR = "\x02"
PROPERTIES_MAX = 32767
"""Most bytes that a record can hold of them: the length is a signed short."""

KEYS = "KEYS"
TAGS = "TAGS"
WAIT = "WAIT"
DELAY = "DELAY"
UNIQ_KEY = "UNIQ_KEY"
RETRY_TOPIC = "RETRY_TOPIC"
ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID"
REAL_TOPIC = "REAL_TOPIC"
REAL_QUEUE_ID = "REAL_QID"
PRODUCER_GROUP = "PGROUP"
RECONSUME_TIME = "RECONSUME_TIME"
MAX_RECONSUME_TIMES = "MAX_RECONSUME_TIMES"
CLUSTER = "CLUSTER"
MSG_REGION = "MSG_REGION"
TRACE_ON = "TRACE_ON"
REPLY_TO_CLIENT = "REPLY_TO_CLIENT"
PUSH_REPLY_TIME = "PUSH_REPLY_TIME"
TRANSACTION_PREPARED = "TRAN_MSG"
TRANSACTION_CHECK_TIMES = "TRANSACTION_CHECK_TIMES"
CHECK_IMMUNITY = "CHECK_IMMUNITY_TIME_IN_SECONDS"
PREPARED_QUEUE_OFFSET = "TRAN_PREPARED_QUEUE_OFFSET"
SHARDING_KEY = "__SHARDINGKEY"

_RESERVED = """
    KEYS TAGS WAIT DELAY UNIQ_KEY BUYER_ID RETRY_TOPIC ORIGIN_MESSAGE_ID REAL_TOPIC REAL_QID PGROUP TRAN_MSG
    CHECK_IMMUNITY_TIME_IN_SECONDS TRANSACTION_CHECK_TIMES __transactionId__ TRAN_PREPARED_QUEUE_OFFSET RECONSUME_TIME
    MAX_RECONSUME_TIMES CONSUME_START_TIME MIN_OFFSET MAX_OFFSET CLUSTER MSG_REGION TRACE_ON INSTANCE_ID CORRELATION_ID
    REPLY_TO_CLIENT TTL ARRIVE_TIME PUSH_REPLY_TIME MSG_TYPE __SHARDINGKEY INNER_NUM INNER_BASE DUP_INFO POP_CK
    1ST_POP_TIME TIMER_DELAY_SEC TIMER_DELAY_MS TIMER_DELIVER_MS __BORNHOST BORN_TIMESTAMP __CRC32#
"""
_RESERVED_NAMES = frozenset(_RESERVED.split())


def format_properties(properties: Mapping[str, str], *, trailing_separator: bool = True) -> str:
    """Return the properties string, in the mapping's order. From 5.3.0 on RocketMQ ends the string with a separator.

    Empty names and values are left out, because every reader skips them. Raises LocalProtocolError for a name or value
    that contains a separator.
    """
    items = []
    for name, value in properties.items():
        if not name or not value:
            continue
        if NAME_VALUE_SEPARATOR in name or PROPERTY_SEPARATOR in name or PROPERTY_SEPARATOR in value:
            raise LocalProtocolError(f"property {name!r} or its value holds a separator (0x01 or 0x02)")
        items.append(name + NAME_VALUE_SEPARATOR + value)
    if trailing_separator and items:
        items.append("")
    return PROPERTY_SEPARATOR.join(items)


def parse_properties(text: str | None) -> dict[str, str]:
    """Return the properties by name; of equal names the last value counts. Properties without name or value are
    skipped."""
    properties: dict[str, str] = {}
    for item in (text or "").split(PROPERTY_SEPARATOR):
        name, _, value = item.partition(NAME_VALUE_SEPARATOR)
        if name and value:
            properties[name] = value
    return properties


def append_property(text: str, name: str, value: str) -> str:
    """Return the properties string `text` with one more property and a separator at the end."""
    between = "" if not text or text.endswith(PROPERTY_SEPARATOR) else PROPERTY_SEPARATOR
    return text + between + format_properties({name: value})


@lru_cache(maxsize=4096)
def java_hash(text: str) -> int:
    """Return Java's `String.hashCode()`: 31·h + unit over the UTF-16 units, as a signed 32-bit number."""
    units = array("H", text.encode("utf-16-le" if array("H", b"\1\0")[0] == 1 else "utf-16-be", "surrogatepass"))
    hashed = 0
    for unit in units:
        hashed = (31 * hashed + unit) & 0xFFFFFFFF
    return hashed - 0x1_0000_0000 if hashed & 0x8000_0000 else hashed


def tags_code(tags: str | None) -> int:
    """Return a consume queue's 8-byte tag hash: Java's hash of the tag; 0 without a tag."""
    return java_hash(tags) if tags else 0


_OF_THE_PRODUCER = frozenset({KEYS, TAGS, SHARDING_KEY, UNIQ_KEY})


def message_digest(topic: str, body: bytes, properties: Mapping[str, str]) -> int:
    """Return the CRC-32 (`java.util.zip.CRC32`) of the body, then of the topic that the user sends to or the listener
    gets, and then of UNIQ_KEY and the user's properties by name.

    Other properties that clients and brokers add (WAIT, MIN_OFFSET, CLUSTER …) are not in the digest. Producer and
    consumers therefore compute the same digest, unless the message was changed on its way.
    """
    own = [item for item in properties.items() if item[0] in _OF_THE_PRODUCER or item[0] not in _RESERVED_NAMES]
    return zlib.crc32(repr((topic, sorted(own))).encode("utf-8", "surrogatepass"), zlib.crc32(body))


def is_of_share(keys: str | None, share: float) -> bool:
    """Return whether a message with these keys is one of this share (0 to 1) of all messages, by the keys' CRC-32."""
    return zlib.crc32((keys or "").encode()) < share * 2**32
