"""A consumer that is asked through a broker says what it does: its NameServers, its subscriptions, its queues."""

from pathlib import Path

import pytest

from nemesrv.clients.admin import AdminClient
from nemesrv.remoting.bodies.client import ConsumerRunningInfo
from nemesrv.remoting.codes import RequestCode, ResponseCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.headers.broker import GetConsumerRunningInfoRequestHeader
from nemesrv.remoting.message import MessageQueue
from nemesrv.remoting.node.profile import Profile
from tests.in_one_process import CLOCK, PROFILES, Cluster, cluster, send


async def ask(running: Cluster, client_id: str, group: str = "group") -> RemotingCommand:
    """What broker-a answers to 307."""
    header = GetConsumerRunningInfoRequestHeader(consumer_group=group, client_id=client_id)
    async with AdminClient(running.context("asker"), running.addresses) as admin:
        request = RemotingCommand.request(RequestCode.GET_CONSUMER_RUNNING_INFO, header)
        return await admin.remoting.invoke(running.brokers["broker-a"], request, timeout_s=3.0)


@PROFILES
async def test_its_list_its_subscriptions_and_its_queues_are_told(tmp_path: Path, profile: Profile) -> None:
    async with cluster(tmp_path, profile=profile) as running:
        consuming = await running.consumer("consumer-0")
        await CLOCK.sleep(3)
        await send(await running.producer(), range(40))
        await CLOCK.sleep(7)
        answer = await ask(running, consuming.consumer.client.client_id)
        assert answer.code == ResponseCode.SUCCESS
        said = ConsumerRunningInfo.decode(answer.body)
        listed = said.properties["PROP_NAMESERVER_ADDR"]
        assert listed.endswith(";")
        assert sorted(listed.split(";")[:-1]) == sorted(map(str, running.addresses))
        assert said.properties["PROP_CLIENT_VERSION"] == ("V4_9_8" if profile is Profile.V4_9 else "V5_3_3")
        assert [data.topic for data in said.subscription_set] == ["%RETRY%group", "orders"]
        queues = {queue: told for queue, told in said.mq_table.items() if queue.topic == "orders"}
        assert set(queues) == {MessageQueue("orders", *queue) for queue in consuming.assigned()}
        assert sum(told.commit_offset for told in queues.values()) == 40
        assert {told.cached_msg_count for told in said.mq_table.values()} == {0}
        assert all(told.last_consume_timestamp > 0 for told in queues.values())


@pytest.mark.parametrize(("is_nobody", "group"), [(True, "group"), (False, "others")])
async def test_who_is_not_in_the_group_cannot_be_asked(tmp_path: Path, is_nobody: bool, group: str) -> None:
    async with cluster(tmp_path) as running:
        consuming = await running.consumer("consumer-0")
        await CLOCK.sleep(3)
        client_id = "127.0.0.1@nobody" if is_nobody else consuming.consumer.client.client_id
        answer = await ask(running, client_id, group)
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert answer.remark is not None
        assert "not online" in answer.remark
