"""Consumer offsets, held pulls, queue locks: the broker's small tables."""

from pathlib import Path

import pytest

from nemesrv.actors.broker.client_manager import LEASE_MS, QueueLocks
from nemesrv.actors.broker.long_poll import HeldPull, PullHolds
from nemesrv.actors.broker.offsets import ConsumerOffsets
from nemesrv.remoting.message import MessageQueue


def test_offsets_survive_a_restart(tmp_path: Path) -> None:
    offsets = ConsumerOffsets(tmp_path / "consumerOffset.json")
    assert offsets.query("g", "orders", 0) == -1
    offsets.commit("g", "orders", 0, 7)
    offsets.commit("g", "orders", 1, 3)
    offsets.commit("%RETRY%g", "a@b", 1, 3)
    offsets.persist()
    again = ConsumerOffsets(tmp_path / "consumerOffset.json")
    assert (again.query("g", "orders", 0), dict(again.queues("g", "orders"))) == (7, {0: 7, 1: 3})
    assert (again.topics_of("g"), again.groups_of("orders")) == (("orders",), ("g",))


def test_offsets_written_by_rocketmq_itself_are_read(tmp_path: Path) -> None:
    path = tmp_path / "consumerOffset.json"
    path.write_text('{\n\t"offsetTable":{\n\t\t"orders@g":{0:12,1:5\n\t\t}\n\t}\n}')
    assert dict(ConsumerOffsets(path).queues("g", "orders")) == {0: 12, 1: 5}


def test_an_offset_file_that_is_none_is_named(tmp_path: Path) -> None:
    path = tmp_path / "consumerOffset.json"
    for content in ("", "{", "[]", '{"offsetTable": 3}'):
        path.write_text(content)
        with pytest.raises(ValueError, match=r"consumerOffset\.json is not a consumer offset file"):
            ConsumerOffsets(path)


def test_forgetting_a_topic_or_a_group_leaves_the_others() -> None:
    offsets = ConsumerOffsets()
    for group, topic in (("g", "a"), ("g", "b"), ("h", "a")):
        offsets.commit(group, topic, 0, 1)
    offsets.forget_topic("a")
    assert [offsets.query(g, t, 0) for g, t in (("g", "a"), ("g", "b"), ("h", "a"))] == [-1, 1, -1]
    offsets.forget_group("g")
    assert offsets.query("g", "b", 0) == -1


def held(connection_id: int, offset: int, deadline_ms: int = 1000) -> HeldPull[str]:
    return HeldPull(connection_id, offset, deadline_ms, f"pull {connection_id}")


def test_a_held_pull_is_woken_by_its_own_queue_only() -> None:
    holds: PullHolds[str] = PullHolds(limit=10)
    assert holds.hold("orders", 0, held(1, 5))
    assert holds.hold("orders", 1, held(2, 5))
    assert [pull.request for pull in holds.wake("orders", 0, lambda pull: pull.offset < 6)] == ["pull 1"]
    assert (len(holds), ("orders", 0) in holds, ("orders", 1) in holds) == (1, False, True)


def test_the_check_takes_what_grew_and_what_is_late() -> None:
    holds: PullHolds[str] = PullHolds(limit=10)
    holds.hold("orders", 0, held(1, 5, deadline_ms=900))
    holds.hold("orders", 0, held(2, 5, deadline_ms=2000))
    holds.hold("orders", 1, held(3, 5, deadline_ms=2000))
    sizes = {("orders", 0): 5, ("orders", 1): 6}
    taken = holds.check(1000, lambda topic, queue_id: sizes[topic, queue_id])
    assert [pull.request for pull in taken] == ["pull 1", "pull 3"]
    assert len(holds) == 1


def test_holds_are_bounded_and_go_with_their_connection() -> None:
    holds: PullHolds[str] = PullHolds(limit=2)
    assert holds.hold("orders", 0, held(1, 5))
    assert holds.hold("orders", 1, held(1, 5))
    assert not holds.hold("orders", 2, held(2, 5))
    holds.drop_connection(1)
    holds.drop_connection(9)
    assert len(holds) == 0
    assert holds.hold("orders", 2, held(2, 5))
    assert [pull.request for pull in holds.take_all()] == ["pull 2"]


def test_a_queue_lock_is_one_clients_until_released_or_expired() -> None:
    locks = QueueLocks()
    queues = [MessageQueue("orders", "broker-a", queue_id) for queue_id in (0, 1)]
    assert locks.lock("g", queues, "c1", now_ms=0) == queues
    assert locks.lock("g", queues, "c2", now_ms=LEASE_MS) == []
    assert locks.lock("h", queues, "c2", now_ms=0) == queues
    locks.unlock("g", queues[:1], "c1")
    locks.unlock("g", queues[1:], "c2")
    assert locks.lock("g", queues, "c2", now_ms=LEASE_MS) == queues[:1]
    assert locks.lock("g", queues, "c2", now_ms=LEASE_MS + 1) == queues
    locks.expire(now_ms=10 * LEASE_MS)
    assert locks._leases == {}
