"""Makes a message ready to send (checks, id, compression), and makes the request for one queue.

Upstream: `Validators.checkMessage`, `DefaultMQProducerImpl.sendKernelImpl`, `tryToCompressMessage`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from ...remoting import message_properties as names
from ...remoting.codes import RequestCode
from ...remoting.command import RemotingCommand
from ...remoting.compression import compress, compressed_flags
from ...remoting.errors import ClientError
from ...remoting.headers.broker import SendMessageRequestHeader
from ...remoting.message import Message, MessageQueue
from ...remoting.message_properties import format_properties
from ...remoting.node.profile import Profile
from ...remoting.topics import NOT_ALLOWED_TO_SEND, RETRY_GROUP_TOPIC_PREFIX, TBW102
from ..config import DEFAULT_TOPIC_QUEUE_NUMS, ProducerConfig

TOPIC_MAX_LENGTH = 127
_TOPIC = re.compile(r"[%|a-zA-Z0-9_-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRequest:
    """The parts of a send that are the same for every try."""

    message: Message
    """With its UNIQ_KEY."""
    body: bytes
    """As it travels, perhaps compressed."""
    sys_flag: int
    properties: str
    reconsume_times: int = 0
    max_reconsume_times: int | None = None

    @property
    def topic(self) -> str:
        return self.message.topic

    @property
    def msg_id(self) -> str:
        """The message id for SendResult: the UNIQ_KEY."""
        return self.message.uniq_key or ""

    def command(self, queue: MessageQueue, config: ProducerConfig, *, now_ms: int) -> RemotingCommand:
        """Return the request (310) that stores the message in `queue`."""
        header = SendMessageRequestHeader(
            producer_group=config.producer_group,
            topic=self.topic,
            default_topic=TBW102,
            default_topic_queue_nums=DEFAULT_TOPIC_QUEUE_NUMS,
            queue_id=queue.queue_id,
            sys_flag=self.sys_flag,
            born_timestamp=now_ms,
            flag=self.message.flag,
            properties=self.properties,
            reconsume_times=self.reconsume_times,
            max_reconsume_times=self.max_reconsume_times,
            broker_name=queue.broker_name,
        )
        return RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, header.to_v2(), self.body)


def single(message: Message, config: ProducerConfig, next_id: Callable[[], str]) -> SendRequest:
    """Return `message` ready to send. Raises ClientError if the topic, the body or its
    size is not allowed, and LocalProtocolError if a property contains a separator."""
    _check(message, config)
    message = _with_uniq_key(message, next_id)
    properties = dict(message.properties)
    reconsume_times, max_reconsume_times = 0, None
    if message.topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
        # These two travel in the header and not with the message.
        reconsume_times = int(properties.pop(names.RECONSUME_TIME, "0"))
        text = properties.pop(names.MAX_RECONSUME_TIMES, None)
        max_reconsume_times = None if text is None else int(text)
    body, sys_flag = message.body, 0
    if len(body) >= config.compress_msg_body_over_howmuch:
        body, sys_flag = compress(body), compressed_flags()
    return SendRequest(
        message=message,
        body=body,
        sys_flag=sys_flag,
        properties=format_properties(properties, trailing_separator=config.profile is Profile.V5_X),
        reconsume_times=reconsume_times,
        max_reconsume_times=max_reconsume_times,
    )


def _with_uniq_key(message: Message, next_id: Callable[[], str]) -> Message:
    return message if message.uniq_key else message.with_property(names.UNIQ_KEY, next_id())


def _check(message: Message, config: ProducerConfig) -> None:
    topic = message.topic
    if not topic.strip():
        raise ClientError("The specified topic is blank")
    if len(topic) > TOPIC_MAX_LENGTH:
        raise ClientError(f"The specified topic is longer than topic max length {TOPIC_MAX_LENGTH}.")
    if not _TOPIC.fullmatch(topic):
        raise ClientError(f"The specified topic[{topic}] contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$")
    if topic in NOT_ALLOWED_TO_SEND:
        raise ClientError(f"Sending message to topic[{topic}] is forbidden.")
    if not message.body:
        raise ClientError("the message body length is zero")
    size = len(message.body)
    if size > config.max_message_size:
        raise ClientError(f"the message body size {size} is over max value, MAX: {config.max_message_size}")
