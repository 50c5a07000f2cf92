"""What a slave copies from its master besides messages: topics, consumer offsets, delay offsets, groups.

Every 10 s, first after 3 s, the slave asks the master that a NameServer named last. If the master does not give a
table, the slave asks for this table again 10 s later. The master's consumer offsets replace the slave's own. As with
Apache's slaves, newer offsets that clients committed to the slave while the master was away are lost. Upstream:
`SlaveSynchronize`.
"""

from collections.abc import Callable

from ...remoting.bodies.client import SubscriptionGroupWrapper
from ...remoting.bodies.register import TopicConfigSerializeWrapper
from ...remoting.codes import RequestCode
from ...remoting.command import RemotingCommand, success
from ...remoting.errors import RocketMQError
from ...remoting.node.network import Address
from ...remoting.transport import RemotingClient
from .schedule import ScheduleService
from .services import Services

FIRST_S = 3.0
PERIOD_S = 10.0
CALL_TIMEOUT_S = 3.0
TASK = "SlaveSynchronize"


class SlaveSynchronize:
    """Copies tables from `master`, which is set from the NameServers' answers to registrations."""

    def __init__(self, services: Services, client: RemotingClient, schedule: ScheduleService) -> None:
        self._services, self._client, self._schedule = services, client, schedule
        self.master: Address | None = None

    async def run(self) -> None:
        """Copy the master's tables at a fixed rate, as long as the broker is a slave."""
        context = self._services.context
        due_s = context.clock.monotonic_s() + FIRST_S
        while True:
            await context.clock.sleep(max(0.0, due_s - context.clock.monotonic_s()))
            due_s += PERIOD_S
            begin_s = context.clock.monotonic_s()
            await self.all()
            context.record_ended(begin_s, "scheduled_task", f=TASK)

    async def all(self) -> None:
        await self._table(RequestCode.GET_ALL_TOPIC_CONFIG, self._topics)
        await self._table(RequestCode.GET_ALL_CONSUMER_OFFSET, self._services.offsets.take)
        await self._table(RequestCode.GET_ALL_DELAY_OFFSET, self._schedule.take)
        await self._table(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, self._groups)

    async def _table(self, code: RequestCode, take: Callable[[bytes], object]) -> None:
        master, services = self.master, self._services
        if master is None or master == services.address:
            return
        try:
            answer = await self._client.invoke(master, RemotingCommand.request(code), timeout_s=CALL_TIMEOUT_S)
            take(success(answer).body)
        except (RocketMQError, OSError, ValueError) as exc:
            services.context.log.error("%s Exception, %s: %s", code.name, master, exc)

    def _topics(self, body: bytes) -> None:
        wrapper = TopicConfigSerializeWrapper.decode(body)
        if wrapper.data_version != self._services.topics.data_version:
            self._services.topics.take(wrapper.topic_config_table, wrapper.data_version)

    def _groups(self, body: bytes) -> None:
        wrapper = SubscriptionGroupWrapper.decode(body)
        if wrapper.data_version != self._services.groups.data_version:
            self._services.groups.take(wrapper.subscription_group_table, wrapper.data_version)
