"""Ends transactions when producers report their outcome (37), and asks producers for the outcome (39) on their
channels.

Upstream: `EndTransactionProcessor`, `TransactionalMessageCheckService`, `AbstractTransactionalMessageCheckListener`,
`ProducerManager.getAvailableChannel`.
"""

from dataclasses import replace

from ....remoting.codes import RequestCode, ResponseCode
from ....remoting.command import RemotingCommand
from ....remoting.errors import RocketMQError
from ....remoting.headers.broker import CheckTransactionStateRequestHeader, EndTransactionRequestHeader
from ....remoting.message import StoredMessage
from ....remoting.message_properties import CHECK_IMMUNITY, PRODUCER_GROUP, REAL_QUEUE_ID, REAL_TOPIC
from ....remoting.transport import Connection
from ..services import Services, refuse
from ..transactions import CHUNK, COMMIT, NOT_ENDED, ROLLBACK, Transactions, committed, immunity_ms

_SAID = {NOT_ENDED: "unknown", COMMIT: "commit", ROLLBACK: "rollback"}


class TransactionProcessor:
    def __init__(self, services: Services, transactions: Transactions) -> None:
        self._services = services
        self._transactions = transactions
        self._asked = 0

    def end(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        """Request 37: commit a half message or roll it back. If the producer does not know the outcome yet, nothing
        changes and the result is None."""
        header = EndTransactionRequestHeader.from_ext_fields(request.ext_fields)
        if self._services.config.is_slave:
            return RemotingCommand.response(ResponseCode.SLAVE_NOT_AVAILABLE)
        said = header.commit_or_rollback
        if said != COMMIT or header.from_transaction_check:
            self._services.context.log.warning(
                "producer[%s] %s: %s, %s Remark: %s",
                connection.remote_address,
                "was asked for the state" if header.from_transaction_check else "ends a transaction",
                _SAID.get(said, said),
                header,
                request.remark,
            )
        if said not in (COMMIT, ROLLBACK):
            return None
        stored = self._transactions.find(header.commit_log_offset)
        refusal = self._refused(header, stored)
        if stored is None or refusal is not None:
            return refusal
        if said == COMMIT:
            message = committed(stored)
            if message is None:
                return refuse(ResponseCode.SYSTEM_ERROR, "Find prepared transaction message failed")
            self._services.put([message])
        self._transactions.end(stored)
        return RemotingCommand.response()

    def _refused(self, header: EndTransactionRequestHeader, stored: StoredMessage | None) -> RemotingCommand | None:
        if stored is None:
            return refuse(ResponseCode.SYSTEM_ERROR, "Find prepared transaction message failed")
        config, properties = self._services.config, stored.properties
        seconds = properties.get(CHECK_IMMUNITY)
        if config.is_5x and seconds is not None and not header.from_transaction_check:
            age_ms = self._services.now_ms - stored.born_timestamp
            if age_ms > immunity_ms(seconds, config.transaction_time_out):
                return RemotingCommand.response(ResponseCode.ILLEGAL_OPERATION)
        if properties.get(PRODUCER_GROUP) != header.producer_group:
            return refuse(ResponseCode.SYSTEM_ERROR, "The producer group wrong")
        if stored.queue_offset != header.tran_state_table_offset:
            return refuse(ResponseCode.SYSTEM_ERROR, "The transaction state table offset wrong")
        return None

    async def check(self) -> None:
        """Ask the producers of old half messages for the state of their transactions."""
        turn = self._transactions.begin()
        looked = 0
        while not turn.over:
            stored = self._transactions.step(turn)
            if stored is not None:
                self._ask(stored)
            looked += 1
            if looked % CHUNK == 0:
                await self._services.context.clock.sleep(0)
        self._transactions.finish(turn)

    def _ask(self, stored: StoredMessage) -> None:
        services, properties = self._services, stored.properties
        group = properties.get(PRODUCER_GROUP, "")
        channel = self._channel(group)
        if channel is None:
            services.context.log.warning("Check transaction failed, channel is null. groupId=%s", group)
            return
        v5 = services.config.is_5x
        header = CheckTransactionStateRequestHeader(
            topic=stored.topic if v5 else None,
            tran_state_table_offset=stored.queue_offset,
            commit_log_offset=stored.physical_offset,
            msg_id=stored.uniq_key,
            transaction_id=stored.uniq_key,
            offset_msg_id=stored.offset_msg_id,
            broker_name=services.config.broker_name if v5 else None,
        )
        meant = replace(stored, topic=properties[REAL_TOPIC], queue_id=int(properties[REAL_QUEUE_ID]))
        command = RemotingCommand.request(RequestCode.CHECK_TRANSACTION_STATE, header, meant.encode(), oneway=True)
        try:
            channel.send(command)
        except RocketMQError as exc:
            services.context.log.warning("cannot ask %s of group %s for its transaction: %s", channel, group, exc)

    def _channel(self, group: str) -> Connection | None:
        clients = list(self._services.clients.producers.get(group, {}).values())
        self._asked += 1
        for number in range(len(clients)):
            channel = clients[(self._asked + number) % len(clients)].channel
            if not channel.closed:
                return channel
        return None
