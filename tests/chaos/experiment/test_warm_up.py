"""Before clients begin, each of Apache's brokers has answered a send, unless the scenario wants to see its first; and
the topic is there, though a call timed out."""

import logging
import random
from pathlib import Path
from typing import Any, Self, cast

import pytest

from nemesrv.chaos.experiment.harness import Harness
from nemesrv.chaos.experiment.nodes import cold
from nemesrv.chaos.experiment.run_folder import RunFolder
from nemesrv.chaos.experiment.stage import RealStage
from nemesrv.chaos.experiment.workloads.prober import ProberNode, ProberWorkload
from nemesrv.chaos.history.recorder import EventLines
from nemesrv.chaos.history.schema import raw_dir
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.clients.config import ClientConfig
from nemesrv.remoting.errors import RequestTimeout
from nemesrv.remoting.message import StoredMessage
from nemesrv.remoting.node.clock import RealClock
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.node.node import NodeContext
from tests.actors.broker.world import World

BROKER, NOBODY = Address("127.0.0.1", 10911), Address("127.0.0.1", 10999)


def warmed(cluster: dict[str, Any], **more: Any) -> tuple[str, ...]:
    return cold(parse({"cluster": cluster, "checks": ["routes_converge"], **more}, file="x.yaml"))


def test_it_is_apaches_masters_and_nobody_where_all_are_ours() -> None:
    assert warmed({"brokers": 2}) == ()
    assert warmed({"brokers": 2, "slaves": 1, "implementation": "apache-5.3.3"}) == ("broker-a", "broker-b")
    mixed = {"broker-a": {"implementation": "ours"}}
    assert warmed({"brokers": 2, "implementation": "apache-5.3.3"}, nodes=mixed) == ("broker-b",)


def test_whoever_may_be_elected_is_one_of_them() -> None:
    dledger = {"brokers": {"enableDLegerCommitLog": True}}
    cluster = {"brokers": 1, "slaves": 2, "implementation": "apache-4.9.7"}
    assert warmed(cluster, config=dledger) == ("broker-a", "broker-a/1", "broker-a/2")


def test_who_wants_to_see_a_first_answer_says_so() -> None:
    assert warmed({"brokers": 2, "implementation": "apache-5.3.3", "warm_up": False}) == ()


async def test_one_message_goes_to_each_broker_and_who_is_silent_is_left_out(tmp_path: Path) -> None:
    async with World(tmp_path) as world:
        await world.broker()
        context = NodeContext(
            name="prober", clock=world.clock, network=world.network, rng=random.Random(1), log=logging.getLogger()
        )
        prober = ProberNode(context, ProberWorkload(topic="orders", queues=4, config=ClientConfig()))
        answered = await prober.warm_up({"broker-a": ("broker-a", BROKER), "broker-b": ("broker-b", NOBODY)}, 60)
        assert answered.keys() == {"broker-a"}
        pulled = await world.pull(topic="broker-a")
        assert [message.body for message in StoredMessage.decode_all(pulled.body, strict=True)] == [b"warm-up"]


class LateTwice:
    """An admin client whose first two calls a machine that stood still let time out."""

    def __init__(self) -> None:
        self.calls: list[Address] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None: ...

    async def create_topic(self, broker: Address, _topic: str, **_queues: int) -> None:
        self.calls.append(broker)
        if len(self.calls) <= 2:
            raise RequestTimeout(f"wait response on the channel <{broker}> timeout, 5000(ms)")


async def test_the_prober_asks_for_its_topic_three_times_at_most(tmp_path: Path) -> None:
    prober = ProberNode(cast(NodeContext, None), ProberWorkload(topic="orders", queues=4, config=ClientConfig()))
    late = LateTwice()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prober, "_admin", lambda: late)
        await prober.create_topic({"broker-a": BROKER})
    assert late.calls == [BROKER] * 3


def test_a_process_of_the_run_stood_still_if_a_row_since_then_says_so(tmp_path: Path) -> None:
    stage = RealStage(cast(Harness, None))
    stage._folder = RunFolder.create("smoke", out=tmp_path / "run")
    lines = EventLines("broker-a", "broker", 0, RealClock.starting_now(1.0))
    late = lines.line("timer_lag", {"lag_ms": 1_500.0, "duration_ms": 2_000.0}, 60_000.0)
    (raw_dir(tmp_path / "run") / "broker-a.0.jsonl").write_bytes(late)
    assert stage.stood_still(59.0)
    assert not stage.stood_still(61.0)
