"""Ways to lose how far a group has consumed: consumers that give queues up without a commit or commit
where nobody asks, and brokers that do not write it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from types import SimpleNamespace

from ....actors.broker.server import Broker
from ....clients.client_instance import FindBrokerResult
from ....remoting.codes import MASTER_ID, RequestCode
from ....remoting.message import MessageQueue
from ...experiment.workloads.consumer import ConsumerNode
from ...scenarios.defect import Defect, checks, in_its_parts, replace_part
from ...topology import NodeKind

COPIES = 4


def _commits_only_what_it_keeps(node: ConsumerNode) -> None:
    """Queues that a rebalance takes from it are marked before they are persisted."""
    offsets, held = node.client._offsets, node.client._rebalancer.process_queues
    persist = offsets.persist

    async def persist_kept(queues: Collection[MessageQueue]) -> None:
        await persist([queue for queue in queues if queue not in held or not held[queue].dropped])

    replace_part(offsets, "persist", persist_kept)


def _leaves_without_a_commit(node: ConsumerNode) -> None:
    rebalancer, offsets = node.client._rebalancer, node.client._offsets
    stop = rebalancer.stop

    async def persist_nothing(queues: Collection[MessageQueue]) -> None:
        """It is on its way out."""

    async def stop_and_commit_no_more() -> None:
        replace_part(offsets, "persist", persist_nothing)
        await stop()

    replace_part(rebalancer, "stop", stop_and_commit_no_more)


def _keeps_its_offsets_at_slaves(node: ConsumerNode) -> None:
    instance = node.instance
    find = instance.find_broker_address_in_subscribe

    def find_slave(broker_name: str, _id: int, _only: bool = False) -> FindBrokerResult | None:
        return find(broker_name, MASTER_ID + 1, False)

    there = SimpleNamespace(
        find_broker_address_in_subscribe=find_slave, update_route=instance.update_route, remoting=instance.remoting
    )
    replace_part(node.client._offsets, "_instance", there)


def _stops_without_writing_offsets(broker: Broker) -> None:
    """From its leave of the NameServers on it writes none."""
    registration, offsets = broker._registration, broker.services.offsets
    leave = registration.stop

    async def leave_and_write_no_more() -> None:
        replace_part(offsets, "persist", lambda: None)
        await leave()

    replace_part(registration, "stop", leave_and_write_no_more)


def _copies_offsets_once(broker: Broker) -> None:
    synchronize, taken = broker._synchronize, 0
    table = synchronize._table

    async def table_once(code: RequestCode, take: Callable[[bytes], object]) -> None:
        nonlocal taken
        if code == RequestCode.GET_ALL_CONSUMER_OFFSET:
            taken += synchronize.master is not None
            if taken > COPIES:
                return
        await table(code, take)

    replace_part(synchronize, "_table", table_once)


def _begins_new_groups_at_the_end(broker: Broker) -> None:
    offsets, store = broker.services.offsets, broker.services.store
    query = offsets.query

    def query_or_end(group: str, topic: str, queue_id: int) -> int:
        offset = query(group, topic, queue_id)
        return offset if offset >= 0 else store.max_offset(topic, queue_id)

    replace_part(offsets, "query", query_or_end)


DEFECTS = (
    Defect(
        name="slave-stops-copying-offsets",
        what=f"a slave copies its master's consumer offsets {COPIES} times and then no more",
        kinds=(NodeKind.SLAVE,),
        nodes=("broker-a/1",),
        scenario="slave-tells-offsets",
        caught_by=checks("commits_follow_work"),
        also=checks("duplicates"),
        plant=in_its_parts(_copies_offsets_once),
    ),
    Defect(
        name="broker-stops-without-writing-offsets",
        what="a broker that is stopped in order does not write what groups have committed since it last did",
        kinds=(NodeKind.BROKER,),
        nodes=("broker-a",),
        scenario="broker-stop",
        caught_by=checks("commits_follow_work"),
        also=checks("duplicates"),
        plant=in_its_parts(_stops_without_writing_offsets),
    ),
    Defect(
        name="consumer-gives-queues-up-uncommitted",
        what="consumers do not commit what they have consumed of a queue that a rebalance takes from them",
        kinds=(NodeKind.CONSUMER,),
        scenario="consumer-stop",
        caught_by=checks("commits_follow_work"),
        also=checks("duplicates"),
        plant=_commits_only_what_it_keeps,
    ),
    Defect(
        name="consumer-leaves-without-a-commit",
        what="consumers that are shut down do not commit what they have consumed",
        kinds=(NodeKind.CONSUMER,),
        scenario="consumer-stop",
        caught_by=checks("commits_follow_work"),
        also=checks("duplicates"),
        plant=_leaves_without_a_commit,
    ),
    Defect(
        name="consumer-keeps-its-offsets-at-slaves",
        what="a consumer commits to slaves, and asks them for its offsets, where a name has one",
        kinds=(NodeKind.CONSUMER,),
        nodes=("consumer-0",),
        scenario="slave-reads",
        caught_by=checks("commits_follow_work"),
        also=checks("duplicates"),
        plant=_keeps_its_offsets_at_slaves,
    ),
    Defect(
        name="broker-begins-new-groups-at-the-end",
        what="a broker sends a group that has no offset of a queue to its end, past all that it has in memory",
        kinds=(NodeKind.BROKER,),
        nodes=("broker-a",),
        scenario="group-joins",
        caught_by=checks("queue_ownership"),
        plant=in_its_parts(_begins_new_groups_at_the_end),
    ),
)
