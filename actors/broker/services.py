"""The parts that the request processors share: the broker's tables, its store, and storing a message."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ...remoting.codes import ResponseCode
from ...remoting.command import RemotingCommand
from ...remoting.message import MessageQueue
from ...remoting.node.network import Address
from ...remoting.node.node import NodeContext
from ...remoting.transport import Connection
from .client_manager import ClientManager, QueueLocks
from .config import BrokerConfig
from .groups import SubscriptionGroups
from .long_poll import PullHolds
from .offsets import ConsumerOffsets
from .store import MessageStore
from .stored import Append, PutMessage, StoreFull
from .topics import TopicTable


@dataclass(slots=True)
class HeldRequest:
    """A pull request that waits for a message. `finish` runs the pull again, and `answer` gets the result."""

    run_again: Callable[[], RemotingCommand | None]
    answer: asyncio.Future[RemotingCommand | None]

    def finish(self) -> RemotingCommand | None:
        """Answer the pull now with the queue's messages. Returns the answer; None if the pull was answered before, or
        running it failed."""
        if self.answer.done():
            return None
        try:
            response = self.run_again()
        except Exception as exc:  # the transport answers it as any handler's failure
            self.answer.set_exception(exc)
            return None
        self.answer.set_result(response)
        return response

    def abandon(self) -> None:
        if not self.answer.done():
            self.answer.set_result(None)


@dataclass(slots=True, kw_only=True)
class Services:
    """The parts of one broker that its request processors use. `address` is the address that the broker registers with
    NameServers."""

    context: NodeContext
    config: BrokerConfig
    address: Address
    store: MessageStore
    topics: TopicTable
    groups: SubscriptionGroups
    offsets: ConsumerOffsets
    holds: PullHolds[HeldRequest]
    arrived: Callable[[str, int], None]
    """Called with (topic, queue id) after messages were stored there."""
    copied: Callable[[int], Awaitable[ResponseCode]]
    """Waits until a slave has the commit log up to an offset (`LogServing.copied`)."""
    clients: ClientManager = field(default_factory=ClientManager)
    locks: QueueLocks = field(default_factory=QueueLocks)
    transferred_messages: int = 0
    """How many messages consumers were given since the start."""

    @property
    def now_ms(self) -> int:
        return self.context.clock.now_ms()

    def put(self, messages: Sequence[PutMessage]) -> Append:
        """Store `messages` of one queue, and wake the pulls that wait for them. Raises MessageIllegal, StoreFull."""
        if self.config.is_slave:
            raise StoreFull("message store is slave mode, so putMessage is forbidden")
        stored = self.store.append(messages, now_ms=self.now_ms)
        self.arrived(messages[0].topic, messages[0].queue_id)
        return stored

    def commit(self, connection: Connection, f: str, group: str, topic: str, queue_id: int, offset: int) -> int:
        """Store that `group` has consumed the messages below `offset`, and record the change. Returns the previous
        offset, or -1 if there was none. `f` is the name of the committing request in the history."""
        # What was there before is read first, so that the row says what was asked even if the table does not take it.
        before = self.offsets.queues(group, topic).get(queue_id, -1)
        self.offsets.commit(group, topic, queue_id, offset)
        if before != offset:
            value = {"group": group, "client": self.clients.client_id(group, connection.id), "before": before}
            place = self.queue(topic, queue_id)._asdict()
            self.context.record("commit", f=f, op_id=str(connection.id), **place, offset=offset, value=value)
        return before

    def invalid(self, remark: str) -> RemotingCommand:
        """The answer to a request with a wrong parameter. 4.9 answers SYSTEM_ERROR, 5.x INVALID_PARAMETER."""
        return RemotingCommand.response(self.invalid_code, remark)

    @property
    def invalid_code(self) -> ResponseCode:
        return ResponseCode.INVALID_PARAMETER if self.config.is_5x else ResponseCode.SYSTEM_ERROR

    def queue(self, topic: str, queue_id: int) -> MessageQueue:
        """Return one of this broker's queues, as clients name it: topic, broker name, queue id."""
        return MessageQueue(topic, self.config.broker_name, queue_id)

    @property
    def host(self) -> str:
        return self.config.broker_ip1 or self.address.host


class Refused(Exception):
    """An exception that makes the broker answer the request with this code and remark; the request has no effect."""

    def __init__(self, code: ResponseCode, remark: str, header: Mapping[str, str] | None = None) -> None:
        super().__init__(remark)
        self.response = RemotingCommand.response(code, remark, header=header)


def refuse(code: ResponseCode, remark: str) -> RemotingCommand:
    return RemotingCommand.response(code, remark)
