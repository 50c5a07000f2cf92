"""Requests that consumers and the admin client both send to a broker, and the look-up of a broker's address. Upstream:
`MQAdminImpl`, `MQClientAPIImpl`, `RemoteBrokerOffsetStore`."""

from ..remoting.codes import MASTER_ID, RequestCode, ResponseCode
from ..remoting.command import Header, RemotingCommand, success
from ..remoting.errors import ClientError
from ..remoting.headers import broker as headers
from ..remoting.message import MessageQueue
from ..remoting.node.network import Address
from ..remoting.transport import RemotingClient
from .client_instance import FindBrokerResult, MQClientInstance

OFFSET_CALL_TIMEOUT_S = 5.0
"""Of calls about consumer offsets."""


async def call(
    remoting: RemotingClient,
    address: Address,
    code: RequestCode,
    header: Header | None = None,
    body: bytes = b"",
    *,
    timeout_s: float,
) -> RemotingCommand:
    """Send the request and return the successful answer. Raises ResponseError for an answer code other than SUCCESS,
    and TransportError without an answer."""
    response = await remoting.invoke(address, RemotingCommand.request(code, header, body), timeout_s=timeout_s)
    return success(response)


async def find_broker(instance: MQClientInstance, queue: MessageQueue, broker_id: int = MASTER_ID) -> FindBrokerResult:
    """Return the address of the queue's broker. If the address is unknown, query the topic's route once. Raises
    ClientError if the address stays unknown, and TransportError or ProtocolError without a readable route answer."""
    found = instance.find_broker_address_in_subscribe(queue.broker_name, broker_id)
    if found is None:
        await instance.update_route(queue.topic)
        found = instance.find_broker_address_in_subscribe(queue.broker_name, broker_id)
    if found is None:
        raise ClientError(f"The broker[{queue.broker_name}] not exist")
    return found


async def max_offset(remoting: RemotingClient, address: Address, topic: str, queue_id: int, *, timeout_s: float) -> int:
    """Return the offset that the queue's next message will get. Raises as `call`."""
    header = headers.GetMaxOffsetRequestHeader(topic=topic, queue_id=queue_id)
    response = await call(remoting, address, RequestCode.GET_MAX_OFFSET, header, timeout_s=timeout_s)
    return headers.GetMaxOffsetResponseHeader.from_ext_fields(response.ext_fields).offset


async def min_offset(remoting: RemotingClient, address: Address, topic: str, queue_id: int, *, timeout_s: float) -> int:
    """Return the offset of the oldest message that the queue still has. Raises as `call`."""
    header = headers.GetMinOffsetRequestHeader(topic=topic, queue_id=queue_id)
    response = await call(remoting, address, RequestCode.GET_MIN_OFFSET, header, timeout_s=timeout_s)
    return headers.GetMinOffsetResponseHeader.from_ext_fields(response.ext_fields).offset


async def consumer_offset(
    remoting: RemotingClient, address: Address, group: str, topic: str, queue_id: int
) -> int | None:
    """Return the queue's offset that `group` committed; None if `group` committed no offset. Raises as `call`."""
    header = headers.QueryConsumerOffsetRequestHeader(consumer_group=group, topic=topic, queue_id=queue_id)
    request = RemotingCommand.request(RequestCode.QUERY_CONSUMER_OFFSET, header)
    response = await remoting.invoke(address, request, timeout_s=OFFSET_CALL_TIMEOUT_S)
    if response.code == ResponseCode.QUERY_NOT_FOUND:
        return None
    return headers.QueryConsumerOffsetResponseHeader.from_ext_fields(success(response).ext_fields).offset
