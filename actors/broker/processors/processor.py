"""Passes each request to the method for its request code. Upstream: the processor tables of
`BrokerController.registerProcessor`."""

from collections.abc import Awaitable, Callable

from ....remoting.codes import RequestCode, ResponseCode
from ....remoting.command import RemotingCommand
from ....remoting.errors import ProtocolError
from ....remoting.headers.fields import HeaderError
from ....remoting.transport import Connection
from ..config import BrokerConfig
from ..consumer_calls import ConsumerCalls
from ..member_group import MemberGroup
from ..replication import FETCH_COMMIT_LOG, LogServing
from ..schedule import ScheduleService
from ..services import Refused, Services, refuse
from ..stored import MessageIllegal, StoreFull
from ..transactions import Transactions
from .admin_processor import AdminProcessor
from .client_processor import ClientProcessor
from .pull_processor import PullProcessor
from .query_processor import QueryProcessor
from .reply_processor import ReplyProcessor
from .send_processor import SendProcessor
from .transaction_processor import TransactionProcessor

Answer = RemotingCommand | Awaitable[RemotingCommand | None] | None
Method = Callable[[Connection, RemotingCommand], Answer]


class BrokerProcessor:
    """Answers each request that the broker gets; the result is the response or an awaitable of the response."""

    def __init__(
        self,
        services: Services,
        schedule: ScheduleService,
        log: LogServing,
        members: MemberGroup,
        *,
        reconfigured: Callable[[BrokerConfig], None],
        told: Callable[[], Awaitable[None]],
        started_ms: int,
    ) -> None:
        self._services = services
        self.half_messages = Transactions(services)
        self.half_messages.open()
        self.pull, self.clients = PullProcessor(services), ClientProcessor(services)
        self.transactions = TransactionProcessor(services, self.half_messages)
        send = SendProcessor(services, self.half_messages)
        admin = AdminProcessor(
            services,
            reconfigured=reconfigured,
            told=told,
            started_ms=started_ms,
            delay_offsets=schedule.encode,
            transactions=self.half_messages,
        )
        query, calls, reply = QueryProcessor(services), ConsumerCalls(services), ReplyProcessor(services, send)
        pull, client, transaction = self.pull, self.clients, self.transactions
        code = RequestCode
        self._methods: dict[int, Method] = {
            code.SEND_MESSAGE: send.send,
            code.SEND_MESSAGE_V2: send.send,
            code.SEND_BATCH_MESSAGE: send.send,
            code.SEND_REPLY_MESSAGE: reply.reply,
            code.SEND_REPLY_MESSAGE_V2: reply.reply,
            code.CONSUMER_SEND_MSG_BACK: send.send_back,
            code.END_TRANSACTION: transaction.end,
            code.PULL_MESSAGE: pull.pull,
            code.HEART_BEAT: client.heartbeat,
            code.UNREGISTER_CLIENT: client.unregister,
            code.GET_CONSUMER_LIST_BY_GROUP: client.consumer_list,
            code.CHECK_CLIENT_CONFIG: client.check_client,
            code.QUERY_CONSUMER_OFFSET: client.query_offset,
            code.UPDATE_CONSUMER_OFFSET: client.update_offset,
            code.LOCK_BATCH_MQ: client.lock_queues,
            code.UNLOCK_BATCH_MQ: client.unlock_queues,
            code.GET_MAX_OFFSET: query.max_offset,
            code.GET_MIN_OFFSET: query.min_offset,
            code.SEARCH_OFFSET_BY_TIMESTAMP: query.search_offset,
            code.GET_EARLIEST_MSG_STORETIME: query.earliest_store_time,
            code.VIEW_MESSAGE_BY_ID: query.view_message,
            code.QUERY_MESSAGE: query.query_message,
            code.UPDATE_AND_CREATE_TOPIC: admin.create_topic,
            code.DELETE_TOPIC_IN_BROKER: admin.delete_topic,
            code.GET_ALL_TOPIC_CONFIG: admin.all_topics,
            code.GET_TOPIC_CONFIG: admin.topic_config,
            code.GET_TOPIC_STATS_INFO: admin.topic_stats,
            code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: admin.update_group,
            code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: admin.all_groups,
            code.DELETE_SUBSCRIPTIONGROUP: admin.delete_group,
            code.GET_CONSUMER_CONNECTION_LIST: admin.consumer_connections,
            code.GET_PRODUCER_CONNECTION_LIST: admin.producer_connections,
            code.GET_CONSUME_STATS: admin.consume_stats,
            code.QUERY_TOPIC_CONSUME_BY_WHO: admin.topic_groups,
            code.GET_ALL_CONSUMER_OFFSET: admin.all_consumer_offsets,
            code.GET_ALL_DELAY_OFFSET: admin.all_delay_offsets,
            FETCH_COMMIT_LOG: log.fetch,
            code.UPDATE_BROKER_CONFIG: admin.update_config,
            code.GET_BROKER_CONFIG: admin.get_config,
            code.GET_BROKER_RUNTIME_INFO: admin.runtime_info,
            code.INVOKE_BROKER_TO_RESET_OFFSET: calls.reset_offset,
            code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: calls.consumer_status,
            code.GET_CONSUMER_RUNNING_INFO: calls.running_info,
            code.CONSUME_MESSAGE_DIRECTLY: calls.consume_directly,
            code.QUERY_CONSUME_TIME_SPAN: admin.time_span,
            code.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: admin.system_topics,
            code.CLEAN_EXPIRED_CONSUMEQUEUE: admin.nothing_to_do,
            code.CLEAN_UNUSED_TOPIC: admin.clean_unused_topics,
            code.GET_BROKER_CONSUME_STATS: admin.all_consume_stats,
            code.QUERY_CONSUME_QUEUE: admin.consume_queue,
            code.RESUME_CHECK_HALF_MESSAGE: admin.resume_check,
            code.GET_ALL_PRODUCER_INFO: admin.all_producers,
            code.DELETE_EXPIRED_COMMITLOG: admin.nothing_to_do,
        }
        if services.config.is_5x:
            self._methods[code.NOTIFY_MIN_BROKER_ID_CHANGE] = members.notified
            self._methods[code.LITE_PULL_MESSAGE] = pull.pull  # 4.9 knows no such requests
            self._methods[code.UPDATE_AND_CREATE_TOPIC_LIST] = admin.create_topics
            self._methods[code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST] = admin.update_groups
            self._methods[code.GET_BROKER_HA_STATUS] = log.status
            self._methods[code.RESET_MASTER_FLUSH_OFFSET] = admin.nothing_to_do

    def __call__(self, connection: Connection, request: RemotingCommand) -> Answer:
        """The answer to a request; a request with an unreadable header or body is refused with the field's name; the
        channel stays open."""
        method = self._methods.get(request.code)
        if method is None:
            return not_supported(request.code)
        try:
            return method(connection, request)
        except Refused as exc:
            return exc.response
        except MessageIllegal as exc:
            return refuse(ResponseCode.MESSAGE_ILLEGAL, f"the message is illegal: {exc}")
        except StoreFull as exc:
            return refuse(ResponseCode.SERVICE_NOT_AVAILABLE, f"service not available now: {exc}")
        except HeaderError as exc:
            return self._services.invalid(str(exc))
        except ProtocolError as exc:
            return refuse(ResponseCode.SYSTEM_ERROR, f"{type(exc).__name__}: {exc}")


def not_supported(code: int) -> RemotingCommand:
    """The answer to a request code that this broker does not know."""
    return refuse(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, f" request type {code} not supported")
