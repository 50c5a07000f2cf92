"""Admin requests to NameServers and brokers, one method per request.

The argument `name_server` is the NameServer to ask; None means the client's chosen NameServer. Every method raises
ResponseError for an answer code other than SUCCESS, and TransportError without an answer. Upstream:
`DefaultMQAdminExtImpl`, `MQClientAPIImpl`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence

from ..remoting import fastjson
from ..remoting.bodies.client import ConsumeStats, GetConsumerListByGroupResponseBody, TopicStatsTable
from ..remoting.bodies.route import ClusterInfo, KVTable, TopicList, TopicRouteData
from ..remoting.codes import PERM_READ, PERM_WRITE, LanguageCode, RequestCode
from ..remoting.command import Header, RemotingCommand, success
from ..remoting.errors import ClientError, RemoteProtocolError
from ..remoting.headers import broker as broker_headers
from ..remoting.headers import namesrv as headers
from ..remoting.message import StoredMessage
from ..remoting.node.network import Address
from ..remoting.node.node import NodeContext
from ..remoting.node.profile import Profile
from ..remoting.properties import format_properties, parse_properties
from ..remoting.topics import TBW102
from ..remoting.transport import RemotingClient
from .consumer.pull import PullStatus, pull, pull_sys_flag
from .name_server_client import NameServerClient

ADMIN_TIMEOUT_S = 5.0
TOOLS_CONSUMER_GROUP = "TOOLS_CONSUMER"
"""The group under which tools read; every broker knows it (`MixAll.TOOLS_CONSUMER_GROUP`)."""
READ_BATCH = 32


class AdminClient:
    """Sends admin requests over its own channels. An AdminClient needs no start; `close` it at the end."""

    def __init__(
        self,
        context: NodeContext,
        name_servers: Sequence[Address],
        *,
        profile: Profile = Profile.V4_9,
        timeout_s: float = ADMIN_TIMEOUT_S,
    ) -> None:
        self._context, self._timeout_s = context, timeout_s
        self.remoting = RemotingClient(**context.seams, language=LanguageCode.PYTHON, version=profile.version)
        self.name_server = NameServerClient(context, self.remoting, name_servers, profile)
        self.name_server.start()

    async def close(self) -> None:
        await self.remoting.close()

    async def __aenter__(self) -> AdminClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # -- NameServer

    async def topic_route(self, topic: str, *, name_server: Address | None = None) -> TopicRouteData:
        """Return the topic's route. Raises TopicNotExist if the NameServer has no route of the topic."""
        header = headers.GetRouteInfoRequestHeader(topic=topic)
        response = await self._ask(name_server, RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
        return TopicRouteData.decode(response.body)

    async def cluster_info(self, *, name_server: Address | None = None) -> ClusterInfo:
        response = await self._ask(name_server, RequestCode.GET_BROKER_CLUSTER_INFO)
        return ClusterInfo.decode(response.body)

    async def topic_list(self, *, name_server: Address | None = None) -> list[str]:
        response = await self._ask(name_server, RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
        return list(TopicList.decode(response.body).topic_list)

    async def wipe_write_perm(self, broker_name: str, *, name_server: Address | None = None) -> int:
        """Take the broker's write permission away at the NameServer. Returns how many topics of the broker can no
        longer be written, according to the NameServer's answer."""
        header = headers.WipeWritePermOfBrokerRequestHeader(broker_name=broker_name)
        response = await self._ask(name_server, RequestCode.WIPE_WRITE_PERM_OF_BROKER, header)
        return headers.WipeWritePermOfBrokerResponseHeader.from_ext_fields(response.ext_fields).wipe_topic_count

    async def add_write_perm(self, broker_name: str, *, name_server: Address | None = None) -> int:
        """Give the broker's write permission back at the NameServer. Returns how many topics of the broker can be
        written again, according to the NameServer's answer."""
        header = headers.AddWritePermOfBrokerRequestHeader(broker_name=broker_name)
        response = await self._ask(name_server, RequestCode.ADD_WRITE_PERM_OF_BROKER, header)
        return headers.AddWritePermOfBrokerResponseHeader.from_ext_fields(response.ext_fields).add_topic_count

    async def delete_topic_in_name_server(
        self, topic: str, *, cluster: str | None = None, name_server: Address | None = None
    ) -> None:
        header = headers.DeleteTopicFromNamesrvRequestHeader(topic=topic, cluster_name=cluster)
        await self._ask(name_server, RequestCode.DELETE_TOPIC_IN_NAMESRV, header)

    async def put_kv_config(self, namespace: str, key: str, value: str, *, name_server: Address | None = None) -> None:
        header = headers.PutKVConfigRequestHeader(namespace=namespace, key=key, value=value)
        await self._ask(name_server, RequestCode.PUT_KV_CONFIG, header)

    async def delete_kv_config(self, namespace: str, key: str, *, name_server: Address | None = None) -> None:
        header = headers.DeleteKVConfigRequestHeader(namespace=namespace, key=key)
        await self._ask(name_server, RequestCode.DELETE_KV_CONFIG, header)

    async def kv_list(self, namespace: str, *, name_server: Address | None = None) -> dict[str, str]:
        """Return all keys and values of a namespace. Raises ResponseError with code 22 for a namespace without keys."""
        header = headers.GetKVListByNamespaceRequestHeader(namespace=namespace)
        response = await self._ask(name_server, RequestCode.GET_KVLIST_BY_NAMESPACE, header)
        return _table(response)

    async def name_server_config(self, *, name_server: Address | None = None) -> dict[str, str]:
        response = await self._ask(name_server, RequestCode.GET_NAMESRV_CONFIG)
        return parse_properties(response.body.decode())

    async def update_name_server_config(
        self, properties: Mapping[str, object], *, name_server: Address | None = None
    ) -> None:
        body = format_properties(properties).encode()
        await self._ask(name_server, RequestCode.UPDATE_NAMESRV_CONFIG, body=body)

    # -- broker

    async def create_topic(
        self,
        broker: Address,
        topic: str,
        *,
        read_queue_nums: int = 8,
        write_queue_nums: int = 8,
        perm: int = PERM_READ | PERM_WRITE,
        order: bool = False,
    ) -> None:
        """Create or change the topic at one broker. The broker then registers the topic with its NameServers."""
        header = broker_headers.CreateTopicRequestHeader(
            topic=topic,
            default_topic=TBW102,
            read_queue_nums=read_queue_nums,
            write_queue_nums=write_queue_nums,
            perm=perm,
            topic_sys_flag=0,
            order=order,
        )
        await self._call(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, header)

    async def delete_topic_in_broker(self, broker: Address, topic: str) -> None:
        await self._call(
            broker, RequestCode.DELETE_TOPIC_IN_BROKER, broker_headers.DeleteTopicRequestHeader(topic=topic)
        )

    async def update_broker_config(self, broker: Address, properties: Mapping[str, object]) -> None:
        body = format_properties(properties).encode()
        await self._call(broker, RequestCode.UPDATE_BROKER_CONFIG, body=body)

    async def max_offset(self, broker: Address, topic: str, queue_id: int) -> int:
        header = broker_headers.GetMaxOffsetRequestHeader(topic=topic, queue_id=queue_id)
        response = await self._call(broker, RequestCode.GET_MAX_OFFSET, header)
        return broker_headers.GetMaxOffsetResponseHeader.from_ext_fields(response.ext_fields).offset

    async def min_offset(self, broker: Address, topic: str, queue_id: int) -> int:
        header = broker_headers.GetMinOffsetRequestHeader(topic=topic, queue_id=queue_id)
        response = await self._call(broker, RequestCode.GET_MIN_OFFSET, header)
        return broker_headers.GetMinOffsetResponseHeader.from_ext_fields(response.ext_fields).offset

    async def consumer_list(self, broker: Address, group: str) -> list[str]:
        """Return the client ids of the group's members at that broker. Raises ResponseError (1) for an empty group."""
        header = broker_headers.GetConsumerListByGroupRequestHeader(consumer_group=group)
        response = await self._call(broker, RequestCode.GET_CONSUMER_LIST_BY_GROUP, header)
        return list(GetConsumerListByGroupResponseBody.decode(response.body).consumer_id_list)

    async def topic_stats(self, broker: Address, topic: str) -> TopicStatsTable:
        """Return the offsets and the last store time of each queue of the topic at that broker. Raises TopicNotExist
        for an unknown topic."""
        response = await self._call(
            broker, RequestCode.GET_TOPIC_STATS_INFO, broker_headers.GetTopicStatsInfoRequestHeader(topic=topic)
        )
        return TopicStatsTable.decode(response.body)

    async def consume_stats(self, broker: Address, group: str) -> ConsumeStats:
        """Return the broker's offset and the group's offset in each queue that the group consumes at that broker."""
        header = broker_headers.GetConsumeStatsRequestHeader(consumer_group=group)
        response = await self._call(broker, RequestCode.GET_CONSUME_STATS, header)
        return ConsumeStats.decode(response.body)

    async def consumer_groups(self, broker: Address) -> dict[str, list[str]]:
        """Return, for each topic, the sorted names of the consumer groups that committed offsets at that broker."""
        response = await self._call(broker, RequestCode.GET_ALL_CONSUMER_OFFSET)
        body = fastjson.loads(response.body)
        table = body.get("offsetTable") if isinstance(body, Mapping) else None
        if not isinstance(table, Mapping):
            raise RemoteProtocolError(f"consumer offsets of {broker} hold no offsetTable")
        groups: dict[str, list[str]] = {}
        for key in sorted(map(str, table)):
            topic, _, group = key.partition("@")
            groups.setdefault(topic, []).append(group)
        return groups

    async def broker_runtime_info(self, broker: Address) -> dict[str, str]:
        response = await self._call(broker, RequestCode.GET_BROKER_RUNTIME_INFO)
        return _table(response)

    async def read_queue(self, topic: str, broker: Address, queue_id: int) -> AsyncIterator[StoredMessage]:
        """Yield every message that the queue has when the read begins, in order of offset; later messages are left out.

        The reader joins no consumer group and commits no offset. Raises ClientError if a broker's answer does not
        advance the offset, RemoteProtocolError for a damaged record.
        """
        offset, end = await self.min_offset(broker, topic, queue_id), await self.max_offset(broker, topic, queue_id)
        while offset < end:
            header = broker_headers.PullMessageRequestHeader(
                consumer_group=TOOLS_CONSUMER_GROUP,
                topic=topic,
                queue_id=queue_id,
                queue_offset=offset,
                max_msg_nums=READ_BATCH,
                sys_flag=pull_sys_flag(subscription=True),
                commit_offset=0,
                suspend_timeout_millis=0,
                subscription="*",
                sub_version=0,
            )
            result = await pull(self.remoting, broker, header, timeout_s=self._timeout_s, strict=True)
            for message in result.messages:
                if offset <= message.queue_offset < end:
                    yield message
            if result.next_begin_offset <= offset or result.status is PullStatus.NO_NEW_MESSAGE:
                raise ClientError(
                    f"{topic} queue {queue_id} at {broker}: {result.status.name} at offset {offset}, next "
                    f"{result.next_begin_offset}, though the queue ends at {end}"
                )
            offset = result.next_begin_offset

    # -- calls

    async def _ask(
        self, name_server: Address | None, code: RequestCode, header: Header | None = None, body: bytes = b""
    ) -> RemotingCommand:
        if name_server is not None:
            return await self._call(name_server, code, header, body)
        request = RemotingCommand.request(code, header, body)
        return success(await self.name_server.invoke(request, self._timeout_s))

    async def _call(
        self, address: Address, code: RequestCode, header: Header | None = None, body: bytes = b""
    ) -> RemotingCommand:
        request = RemotingCommand.request(code, header, body)
        return success(await self.remoting.invoke(address, request, timeout_s=self._timeout_s))


def _table(response: RemotingCommand) -> dict[str, str]:
    return {key: value for key, value in KVTable.decode(response.body).table.items() if value is not None}
