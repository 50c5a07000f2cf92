"""Transactional messages: kept back in a queue of their own until their producer says commit or rollback.

    RMQ_SYS_TRANS_HALF_TOPIC      the message as sent, its real topic and queue among its properties
    RMQ_SYS_TRANS_OP_HALF_TOPIC   "d" records: the half message at the offset in the body has been ended

Every transactionCheckInterval the broker reads on in the half queue. The check skips half messages whose transaction
has ended. If a half message is older than transactionTimeOut, the broker asks its producer (39), and appends the half
message to the half queue again with its number of checks. After transactionCheckMax checks a half message goes to
TRANS_CHECK_MAX_TIME_TOPIC. Offsets of the group CID_RMQ_SYS_TRANS say how far half queue and op queue have been read.
Upstream: `TransactionalMessageServiceImpl`, `TransactionalMessageBridge`, `DefaultTransactionalMessageCheckListener`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...remoting import message_properties as names
from ...remoting.message import StoredMessage
from ...remoting.message_id import UniqIdGenerator
from ...remoting.topics import HALF_TOPIC, OP_TOPIC, TRANSACTION_DISCARD_TOPIC
from .services import Services
from .stored import Append, MessageIllegal, PutMessage, StoreFull, copied, set_aside, taken_up

GROUP = "CID_RMQ_SYS_TRANS"
NOT_ENDED, COMMIT, ROLLBACK = 0, 8, 12
"""The transaction bits of a record's sysFlag, which are also what a producer answers."""
_ENDED_TAG = "d"
_RESERVED_MS = 72 * 3_600_000
"""Half messages that are older are given up without asking the producer (`fileReservedTime`)."""
CHUNK = 200
"""How many half messages are looked at before other requests have a turn."""


def half(message: PutMessage, properties: Mapping[str, str]) -> PutMessage:
    """Return the half message of a message: what is stored until commit or rollback, with these properties added."""
    return replace(set_aside(message, HALF_TOPIC, 0, properties), sys_flag=message.sys_flag & ~ROLLBACK)


def committed(stored: StoredMessage) -> PutMessage | None:
    """Return the message that consumers get after the commit; None if the record lacks the real topic or queue."""
    meant = taken_up(stored)
    return meant and replace(
        meant,
        properties=stored.raw_properties,
        sys_flag=stored.sys_flag & ~ROLLBACK | COMMIT,
        prepared_transaction_offset=stored.physical_offset,
    )


class Transactions:
    """The half messages of one broker. The methods of this class neither wait nor use the network."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._ended: dict[int, int] = {}
        self._uniq_ids: UniqIdGenerator | None = None

    def open(self) -> None:
        """After a restart, read from the op queue which half messages have been committed or rolled back."""
        store = self._services.store
        for offset in range(self._offset(OP_TOPIC), store.max_offset(OP_TOPIC, 0)):
            stored = self._look(OP_TOPIC, offset)
            if stored is not None and stored.tags == _ENDED_TAG:
                for text in stored.body.decode(errors="replace").split(","):
                    if text.isdecimal():
                        self._ended[int(text)] = offset

    def prepare(self, message: PutMessage, properties: Mapping[str, str]) -> Append:
        """Store `message` as a half message. Raises MessageIllegal, StoreFull."""
        services = self._services
        services.topics.create_for_group(HALF_TOPIC, 1, now_ms=services.now_ms)
        return services.put([half(message, properties)])

    def find(self, physical_offset: int) -> StoredMessage | None:
        stored = self._services.store.look(physical_offset)
        return stored if stored is not None and stored.topic == HALF_TOPIC else None

    def resume(self, stored: StoredMessage) -> None:
        """Put a half message back into the half queue, with 0 checks. Raises MessageIllegal, StoreFull."""
        properties = {**stored.properties, names.TRANSACTION_CHECK_TIMES: "0"}
        self._services.put([copied(stored, HALF_TOPIC, 0, properties)])

    def end(self, stored: StoredMessage) -> None:
        """Record that a half message is done, so that no check asks its producer. Raises MessageIllegal, StoreFull."""
        services = self._services
        if self._uniq_ids is None:
            # not before one is needed: what is drawn here shifts everything that a seed repeats
            self._uniq_ids = UniqIdGenerator(services.store.store_host.host, services.context.rng)
        properties = {names.TAGS: _ENDED_TAG, names.UNIQ_KEY: self._uniq_ids.next_id(services.now_ms)}
        op = PutMessage(
            topic=OP_TOPIC,
            queue_id=stored.queue_id,
            body=str(stored.queue_offset).encode(),
            properties=names.format_properties(properties).encode(),
            tags_code=names.tags_code(_ENDED_TAG),
            born_timestamp=services.now_ms,
            born_host=services.store.store_host,
        )
        self._ended[stored.queue_offset] = services.put([op]).queue_offset

    # One turn of the check

    def begin(self) -> Turn:
        """Begin a check of the half messages that are stored now. In 4.9 the first check creates the topic of half
        messages."""
        services, store = self._services, self._services.store
        services.topics.create_for_group(HALF_TOPIC, 1, now_ms=services.now_ms)
        first = min(self._offset(HALF_TOPIC), store.max_offset(HALF_TOPIC, 0))
        return Turn(first, store.max_offset(HALF_TOPIC, 0))

    def step(self, turn: Turn) -> StoredMessage | None:
        """Check one half message; return it if its producer must be asked, else None. The check is over (`turn.over`)
        at the end of the half queue, or at a half message that is too young, because later ones are younger still.
        """
        services, config = self._services, self._services.config
        if turn.next_offset >= turn.end:
            turn.over = True
            return None
        stored = None if turn.next_offset in self._ended else self._look(HALF_TOPIC, turn.next_offset)
        # one put back while it was too young is ended by the offset that its producer knows
        if stored is None or _number(stored.properties.get(names.PREPARED_QUEUE_OFFSET)) in self._ended:
            turn.next_offset += 1
            return None
        properties, age_ms = stored.properties, services.now_ms - stored.born_timestamp
        checked = _number(properties.get(names.TRANSACTION_CHECK_TIMES))
        try:
            if (checked is not None and checked >= config.transaction_check_max) or age_ms > _RESERVED_MS:
                self._discard(stored)
                turn.next_offset += 1
                return None
            seconds = properties.get(names.CHECK_IMMUNITY)
            properties[names.TRANSACTION_CHECK_TIMES] = str(1 if checked is None else checked + 1)
            if seconds is None:
                if 0 <= age_ms < config.transaction_time_out:
                    turn.over = True
                    return None
            elif age_ms < immunity_ms(seconds, config.transaction_time_out):
                # it goes round the queue, so that those behind it are looked at
                properties.setdefault(names.PREPARED_QUEUE_OFFSET, str(stored.queue_offset))
                self._put_back(stored, properties)
                turn.next_offset += 1
                return None
            asked = self._put_back(stored, properties)
        except (StoreFull, MessageIllegal) as exc:
            services.context.log.error("half message at %d cannot be put back: %s", stored.physical_offset, exc)
            turn.over = True
            return None
        turn.next_offset += 1
        return asked

    def finish(self, turn: Turn) -> None:
        """Store how far the half queue and the op queue have been read."""
        services, group = self._services, GROUP
        if turn.next_offset >= turn.end:
            self._ended = {offset: op for offset, op in self._ended.items() if offset >= turn.end}
        if turn.next_offset != turn.begin:
            services.offsets.commit(group, HALF_TOPIC, 0, turn.next_offset)
        read = min(self._ended.values(), default=services.store.max_offset(OP_TOPIC, 0))
        if read != self._offset(OP_TOPIC):
            services.offsets.commit(group, OP_TOPIC, 0, read)

    # Records

    def _put_back(self, stored: StoredMessage, properties: Mapping[str, str]) -> StoredMessage:
        physical_offset = self._services.put([copied(stored, HALF_TOPIC, 0, properties)]).physical_offsets[0]
        found = self._services.store.look(physical_offset)
        if found is None:
            raise StoreFull("the record cannot be read back")
        return found

    def _discard(self, stored: StoredMessage) -> None:
        services = self._services
        services.context.log.error(
            "half message %s has been checked too many times or is too old: moved to %s",
            stored.msg_id,
            TRANSACTION_DISCARD_TOPIC,
        )
        services.topics.create_for_group(TRANSACTION_DISCARD_TOPIC, 1, now_ms=services.now_ms)
        services.put([copied(stored, TRANSACTION_DISCARD_TOPIC, 0, stored.properties)])

    def _look(self, topic: str, offset: int) -> StoredMessage | None:
        entry = self._services.store.entry(topic, 0, offset)
        return None if entry is None else self._services.store.look(entry[0])

    def _offset(self, topic: str) -> int:
        offset = self._services.offsets.query(GROUP, topic, 0)
        return self._services.store.min_offset(topic, 0) if offset < 0 else offset


@dataclass(slots=True)
class Turn:
    """One pass of the transaction check over the half queue's offsets `begin` to `end` (not included), read up to
    `next_offset`."""

    begin: int
    end: int
    next_offset: int = -1
    over: bool = False

    def __post_init__(self) -> None:
        self.next_offset = self.begin


def immunity_ms(seconds: str, otherwise_ms: int) -> int:
    """Return the age below which a half message's producer is not asked: `seconds`, the message's own property. If
    `seconds` is -1 or no number, the result is `otherwise_ms`."""
    number = _number(seconds)
    return otherwise_ms if number is None or number == -1 else number * 1000


def _number(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return -1
