"""RoutesRead against the NameServer's own table: the same requests make the same routes, in both profiles."""

import random
from typing import Any

import pytest

from nemesrv.actors.namesrv.route_table import RouteTable
from nemesrv.actors.namesrv.tables import DropReason, Registration, RouteOptions, Unregistration
from nemesrv.chaos.oracle.name_server import Request, RoutesRead
from nemesrv.remoting.bodies.route import DataVersion, QueueData, canonical
from nemesrv.remoting.node.profile import Profile
from tests.chaos.builder import address_of, cluster

TOPICS = ("orders", "payments", "rmq_sys_SYNC_BROKER_MEMBER_a")
BROKERS = (
    ("a", 0, "10.0.0.1:1", "eu"),
    ("a", 1, "10.0.0.2:1", "eu"),
    ("a", 0, "10.0.0.3:1", "eu"),
    ("a", 0, "10.0.0.5:1", "us"),
    ("b", 0, "10.0.0.4:1", "eu"),
    ("x", 0, "10.0.0.1:1", "us"),
    ("y", 0, "10.0.0.1:1", "eu"),
)
"""`x` and `y` are registered at the address of an `a`, and one `a` in another cluster than the others."""


def registration(rng: random.Random, cluster_name: str) -> dict[str, Any]:
    some = rng.sample(TOPICS, rng.choice((1, 2, 3)))
    topics = {topic: [rng.choice((4, 8)), 4, rng.choice((4, 6)), 0] for topic in some}
    said = {"version": [0, 0, rng.randint(1, 3)], "topics": topics, "cluster": cluster_name}
    return {**said, "timeout_ms": None, "acting": True}


class Both:
    def __init__(self, profile: str) -> None:
        acting = {"supportActingMaster": True}
        of = cluster(1, profile=profile, config={"name_servers": acting}, settings={"ns-0": acting})
        _, world = of.end(10_000).facts()
        self.profile = Profile(profile)
        self.read = RoutesRead(world, world.lives_of("ns-0")[0])
        self.table = RouteTable(self.profile, options=RouteOptions(support_acting_master=profile == "5.x"))

    def take(self, at_ms: float, rng: random.Random) -> None:
        name, id_, address, cluster_name = rng.choice(BROKERS)
        who = {"name": name, "id_": id_, "address": address}
        channel = int(address.split(".")[3].split(":")[0]) + (10 if name in "xy" else 0)
        match rng.choice(("register", "register", "register", "unregister", "wipe", "add", "delete", "ended")):
            case "register":
                said = registration(rng, cluster_name)
                self.read.take(Request(at_ms, "REGISTER_BROKER", str(channel), said=said, **who))
                self.table.register(self._registration(channel, said, name, id_, address), now_ms=int(at_ms))
            case "unregister":
                of_cluster = {"cluster": cluster_name}
                self.read.take(Request(at_ms, "UNREGISTER_BROKER", str(channel), said=of_cluster, **who))
                asked = Unregistration(cluster_name=cluster_name, broker_name=name, broker_addr=address, broker_id=id_)
                if self.profile is Profile.V5_X:
                    self.table.submit_unregister(asked)
                else:
                    self.table.unregister(asked)
            case "wipe":
                self.read.take(Request(at_ms, "WIPE_WRITE_PERM_OF_BROKER", name=name))
                self.table.wipe_write_perm(name)
            case "add":
                self.read.take(Request(at_ms, "ADD_WRITE_PERM_OF_BROKER", name=name))
                self.table.add_write_perm(name)
            case "delete":
                self.read.take(Request(at_ms, "DELETE_TOPIC_IN_NAMESRV", topic="orders"))
                self.table.delete_topic("orders")
            case "ended":
                self.read.take(Request(at_ms, "ended", str(channel), reason="closed"))
                self.table.on_channel_destroy(channel, "10.9.9.9:9", DropReason.CLOSED)
        self.table.run_unregistrations()
        self.read.take(Request(at_ms + 500, ""))

    @staticmethod
    def _registration(channel: int, said: dict[str, Any], name: str, id_: int, address: str) -> Registration:
        rows = [
            (topic, QueueData(broker_name=name, read_queue_nums=r, write_queue_nums=w, perm=perm, topic_sys_flag=flag))
            for topic, (r, w, perm, flag) in said["topics"].items()
        ]
        return Registration(
            cluster_name=said["cluster"],
            broker_name=name,
            broker_addr=address,
            broker_id=id_,
            ha_server_addr="",
            channel_id=channel,
            data_version=DataVersion(counter=said["version"][2]),
            rows=rows,
            enable_acting_master=said["acting"],
        )

    def shown(self, topic: str) -> tuple[object, object]:
        route, read = self.table.route(topic), self.read.shown[topic]
        return None if route is None else canonical(route), read[-1][1] if read else None


@pytest.mark.parametrize("profile", ["4.9", "5.x"])
@pytest.mark.parametrize("seed", [*range(20), 25, 115])
def test_what_was_read_makes_the_same_routes_as_the_name_servers_own_table(profile: str, seed: int) -> None:
    rng, both = random.Random(seed), Both(profile)
    for step in range(20):
        both.take(1_000.0 * (step + 1), rng)
        for topic in TOPICS:
            table, read = both.shown(topic)
            assert read == table, f"{topic} after step {step}"


SAID = {"version": [0, 0, 1], "topics": {"orders": [4, 4, 6, 0], "more": [4, 4, 6, 0]}, "cluster": "eu"}


def read_by_5x() -> RoutesRead:
    _, world = cluster(1, ("broker-a",), profile="5.x").end(60).facts()
    return RoutesRead(world, world.lives_of("ns-0")[0])


def test_an_unregistration_of_what_is_not_there_takes_out_no_later_registration() -> None:
    made = read_by_5x()
    of: dict[str, Any] = {"name": "broker-a", "address": address_of("broker-a")}
    for at_s, f, channel in ((1, "REGISTER_BROKER", "1"), (20, "ended", "1"), (20, "dropped", "")):
        made.take(Request(at_s * 1000, f, channel, said=SAID, **of))
    made.take(Request(30_000, "UNREGISTER_BROKER", "2", **of))
    made.take(Request(30_002, "REGISTER_BROKER", "3", said=SAID, **of))
    made.take(Request(40_000, "BROKER_HEARTBEAT", "3", **of))
    assert [(at_ms, route is not None) for at_ms, route in made.shown["orders"]] == [
        (1_000, True),
        (20_000, False),
        (30_002, True),
    ]


def test_whether_a_channel_ends_before_another_name_at_its_address_is_taken_out_nobody_knows() -> None:
    """Of 5.x, where another thread takes out who unregistered (random seed 1677651)."""
    made = read_by_5x()
    at: dict[str, Any] = {"address": "10.9.9.9:1", "said": SAID}
    made.take(Request(1_000, "REGISTER_BROKER", "1", name="broker-y", **at))
    made.take(Request(1_500, "REGISTER_BROKER", "4", name="broker-y", address="10.8.8.8:1", said=SAID))
    made.take(Request(2_000, "REGISTER_BROKER", "2", name="broker-x", **at))
    made.take(Request(3_000, "UNREGISTER_BROKER", "3", name="broker-y", **at))
    made.take(Request(3_000.5, "ended", "2", reason="closed"))
    assert made.unknown == {"orders", "more"}
