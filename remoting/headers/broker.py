"""The headers of requests that a broker answers or sends; import them from headers.py.

Each class's docstring says which request codes have the header (codes.py has the codes' names). Requests without a
class here have no fields: 21, 25, 28, 34, 41, 42, 43, 45, 200, 201. Upstream: `protocol/header/**`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from ..codes import RequestCode
from .fields import HeaderFields, Plan, as_text, plan, read_fields, values_of, wire

# --- broker: messages -----------------------------------------------------------------------------------------------


class GivenBySender(HeaderFields):
    """Header fields that send requests and pushed replies (request 326) have in common."""

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: int
    queue_id: int
    """Negative: the broker picks."""
    sys_flag: int
    born_timestamp: int
    flag: int
    properties: str | None = None
    reconsume_times: int | None = None
    unit_mode: bool = False


class SendMessageRequestHeader(GivenBySender):
    """Requests 10 and 324; and 310, 320 and 325, whose fields' names are letters (`SendMessageRequestHeaderV2`)."""

    batch: bool = False
    max_reconsume_times: int | None = None
    broker_name: str | None = wire("bname", default=None)

    def to_v2(self) -> dict[str, str]:
        """Return the ext fields of request 310 or 320."""
        return {
            letter: value if type(value) is str else as_text(value)
            for letter, value in zip(_V2_LETTERS, _V2_VALUES(self), strict=True)
            if value is not None
        }

    @classmethod
    def from_v2(cls, fields: Mapping[str, str] | None) -> SendMessageRequestHeader:
        """Return the header of request 310 or 320. Raises HeaderError for a letter that is missing or unreadable."""
        return cls(**read_fields(fields, _v2_plan()))

    @classmethod
    def for_code(cls, code: int, fields: Mapping[str, str] | None) -> SendMessageRequestHeader:
        """Return the header of a send (request 10, 310 or 320) or a reply (324, 325), by `code`."""
        in_words = code in (RequestCode.SEND_MESSAGE, RequestCode.SEND_REPLY_MESSAGE)
        return cls.from_ext_fields(fields) if in_words else cls.from_v2(fields)


_V2_LETTERS = {
    "a": "producer_group",
    "b": "topic",
    "c": "default_topic",
    "d": "default_topic_queue_nums",
    "e": "queue_id",
    "f": "sys_flag",
    "g": "born_timestamp",
    "h": "flag",
    "i": "properties",
    "j": "reconsume_times",
    "k": "unit_mode",
    "l": "max_reconsume_times",
    "m": "batch",
    "n": "broker_name",
}
_V2_VALUES = values_of(_V2_LETTERS.values())


@cache
def _v2_plan() -> tuple[Plan, ...]:
    fields = {field.name: field for field in plan(SendMessageRequestHeader)}
    return tuple(fields[name]._replace(wire=letter) for letter, name in _V2_LETTERS.items())


class SendMessageResponseHeader(HeaderFields):
    """The answer to requests 10, 310 and 320. For a batch, the message ids are joined by commas, and the queue offset
    is the first message's."""

    msg_id: str
    queue_id: int
    queue_offset: int
    transaction_id: str | None = None
    batch_uniq_id: str | None = None
    msg_region: str | None = wire("MSG_REGION", default=None)
    trace_on: bool | None = wire("TRACE_ON", default=None)


class ReplyMessageRequestHeader(GivenBySender):
    """Request 326, from broker to client: a reply message, and when and from which address the reply came."""

    born_host: str
    store_host: str
    store_timestamp: int


class PullMessageRequestHeader(HeaderFields):
    """Requests 11 and 361."""

    consumer_group: str
    topic: str
    queue_id: int
    queue_offset: int
    max_msg_nums: int
    sys_flag: int
    commit_offset: int
    suspend_timeout_millis: int
    subscription: str | None = None
    sub_version: int
    expression_type: str | None = None
    max_msg_bytes: int | None = None
    request_source: int | None = None
    proxy_forward_client_id: str | None = wire("proxyFrowardClientId", default=None)
    broker_name: str | None = wire("bname", default=None)


class PullMessageResponseHeader(HeaderFields):
    suggest_which_broker_id: int
    next_begin_offset: int
    min_offset: int
    max_offset: int
    offset_delta: int | None = None
    topic_sys_flag: int | None = None
    group_sys_flag: int | None = None
    forbidden_type: int | None = None


class QueryMessageRequestHeader(HeaderFields):
    """Request 12."""

    topic: str
    key: str
    max_num: int
    begin_timestamp: int
    end_timestamp: int
    unique_key_query: bool | None = wire("_UNIQUE_KEY_QUERY", default=None)


class QueryMessageResponseHeader(HeaderFields):
    index_last_update_timestamp: int
    index_last_update_phyoffset: int


class ViewMessageRequestHeader(HeaderFields):
    """Request 33. The field `offset` is an offset in the commit log."""

    topic: str | None = None
    offset: int


class ConsumerSendMsgBackRequestHeader(HeaderFields):
    """Request 36. The field `offset` is an offset in the commit log."""

    offset: int
    group: str
    delay_level: int
    origin_msg_id: str | None = None
    origin_topic: str | None = None
    unit_mode: bool = False
    max_reconsume_times: int | None = None
    broker_name: str | None = wire("bname", default=None)


class EndTransactionRequestHeader(HeaderFields):
    """Request 37. The two offsets are the half message's offset in the queue and its offset in the commit log."""

    producer_group: str
    tran_state_table_offset: int
    commit_log_offset: int
    commit_or_rollback: int
    """8 commit, 12 rollback, 0 not known."""
    from_transaction_check: bool = False
    msg_id: str
    transaction_id: str | None = None
    broker_name: str | None = wire("bname", default=None)


class CheckTransactionStateRequestHeader(HeaderFields):
    """Request 39, from broker to client. The fields `topic` and `broker_name` exist in 5.x only."""

    topic: str | None = None
    tran_state_table_offset: int
    commit_log_offset: int
    msg_id: str | None = None
    transaction_id: str | None = None
    offset_msg_id: str | None = None
    broker_name: str | None = wire("bname", default=None)


# --- broker: offsets ------------------------------------------------------------------------------------------------


class QueryConsumerOffsetRequestHeader(HeaderFields):
    """Request 14."""

    consumer_group: str
    topic: str
    queue_id: int
    set_zero_if_not_found: bool | None = None
    broker_name: str | None = wire("bname", default=None)


class QueryConsumerOffsetResponseHeader(HeaderFields):
    """The answer to requests 14, 29, 30 (the offset of the next message) and 31."""

    offset: int


SearchOffsetResponseHeader = QueryConsumerOffsetResponseHeader
GetMaxOffsetResponseHeader = QueryConsumerOffsetResponseHeader
GetMinOffsetResponseHeader = QueryConsumerOffsetResponseHeader


class UpdateConsumerOffsetRequestHeader(HeaderFields):
    """Request 15."""

    consumer_group: str
    topic: str
    queue_id: int
    commit_offset: int
    broker_name: str | None = wire("bname", default=None)


class SearchOffsetRequestHeader(HeaderFields):
    """Request 29."""

    topic: str
    queue_id: int
    timestamp: int
    boundary_type: str | None = None
    broker_name: str | None = wire("bname", default=None)


class GetMaxOffsetRequestHeader(HeaderFields):
    """Request 30."""

    topic: str
    queue_id: int
    committed: bool | None = None
    broker_name: str | None = wire("bname", default=None)


class GetMinOffsetRequestHeader(HeaderFields):
    """Requests 31 and 32."""

    topic: str
    queue_id: int
    broker_name: str | None = wire("bname", default=None)


GetEarliestMsgStoretimeRequestHeader = GetMinOffsetRequestHeader


class GetEarliestMsgStoretimeResponseHeader(HeaderFields):
    timestamp: int


# --- broker: clients, topics, administration ------------------------------------------------------------------------


class UnregisterClientRequestHeader(HeaderFields):
    """Request 35."""

    client_id: str = wire("clientID")
    producer_group: str | None = None
    consumer_group: str | None = None


class GetConsumerListByGroupRequestHeader(HeaderFields):
    """Requests 38 and 203, and 40 from broker to client."""

    consumer_group: str


NotifyConsumerIdsChangedRequestHeader = GetConsumerListByGroupRequestHeader
GetConsumerConnectionListRequestHeader = GetConsumerListByGroupRequestHeader


class CreateTopicRequestHeader(HeaderFields):
    """Request 17."""

    topic: str
    default_topic: str
    read_queue_nums: int
    write_queue_nums: int
    perm: int
    topic_filter_type: str = "SINGLE_TAG"
    topic_sys_flag: int | None = None
    order: bool = False
    attributes: str | None = None
    force: bool | None = None


class DeleteTopicRequestHeader(HeaderFields):
    """Requests 215, 351, 300 and 202."""

    topic: str


GetTopicConfigRequestHeader = DeleteTopicRequestHeader
QueryTopicConsumeByWhoRequestHeader = DeleteTopicRequestHeader
GetTopicStatsInfoRequestHeader = DeleteTopicRequestHeader


class GetProducerConnectionListRequestHeader(HeaderFields):
    """Request 204."""

    producer_group: str


class DeleteSubscriptionGroupRequestHeader(HeaderFields):
    """Request 207."""

    group_name: str
    clean_offset: bool = False


class GetConsumeStatsRequestHeader(HeaderFields):
    """Request 208."""

    consumer_group: str
    topic: str | None = None


class GetBrokerConfigResponseHeader(HeaderFields):
    """The answer to request 26."""

    version: str


class ResetOffsetRequestHeader(HeaderFields):
    """Request 222, and 220 from broker to client. The fields `queue_id` and `offset` exist in 5.x only."""

    group: str
    topic: str
    queue_id: int = -1
    offset: int | None = None
    timestamp: int
    is_force: bool = False


class GetConsumerStatusRequestHeader(HeaderFields):
    """Request 223. The field `client_addr` has a client id, in spite of its name."""

    group: str
    topic: str
    client_addr: str | None = None


class GetConsumerRunningInfoRequestHeader(HeaderFields):
    """Request 307, which the broker passes on to the client."""

    consumer_group: str
    client_id: str
    jstack_enable: bool = False


class ConsumeMessageDirectlyResultRequestHeader(HeaderFields):
    """Request 309, which the broker passes on to the client."""

    consumer_group: str
    client_id: str | None = None
    msg_id: str | None = None


class QueryConsumeTimeSpanRequestHeader(HeaderFields):
    """Request 303."""

    topic: str
    group: str


class GetConsumeStatsInBrokerHeader(HeaderFields):
    """Request 317."""

    is_order: bool = False


class QueryConsumeQueueRequestHeader(HeaderFields):
    """Request 321."""

    topic: str
    queue_id: int
    index: int
    count: int
    consumer_group: str | None = None


class ResumeCheckHalfMessageRequestHeader(HeaderFields):
    """Request 323."""

    msg_id: str | None = None
