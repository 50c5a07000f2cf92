"""Short ways to make stored messages."""

from nemesrv.remoting.message import StoredMessage
from nemesrv.remoting.message_properties import format_properties
from nemesrv.remoting.node.network import Address


def stored(
    queue_offset: int, body: bytes = b"hello", *, topic: str = "orders", queue_id: int = 0, **properties: str
) -> StoredMessage:
    """A message at that offset; properties by keyword, e.g. TAGS="TagA"."""
    return StoredMessage(
        topic=topic,
        body=body,
        raw_properties=format_properties(properties).encode(),
        queue_id=queue_id,
        queue_offset=queue_offset,
        physical_offset=queue_offset * 1000,
        born_timestamp=1_700_000_000_000,
        born_host=Address("10.0.0.9", 50000),
        store_timestamp=1_700_000_000_001,
        store_host=Address("10.0.0.1", 10911),
    )
