"""done_by_hand over hand-written histories: what somebody did shows, for as long as it must, and then no longer."""

from __future__ import annotations

from typing import Any

from nemesrv.chaos.checks.service.done_by_hand import judge
from nemesrv.chaos.verdict import Validity, Verdict
from tests.chaos.builder import HistoryBuilder, address_of, cluster

STRANGE = "10.9.9.9:10911"


def check(builder: HistoryBuilder) -> Verdict:
    return judge(*builder.facts())


def story() -> HistoryBuilder:
    """One NameServer, which holds broker-a from 1 s on, as broker-a registered it."""
    builder = cluster(name_servers=1, brokers=("broker-a",)).at(1).topic("broker-a", "orders")
    for at_s in (1.01, 31.01, 61.01):
        registers(builder, at_s)
    return builder.at(1.02).route("ns-0", "orders", "broker-a")


def registers(builder: HistoryBuilder, at_s: float, version: int = 1, topics: int = 2) -> None:
    value = {"version": version, "topics": topics}
    about = {"type": "ok", "name_server": address_of("ns-0"), "duration_ms": 10.0, "value": value}
    builder.at(at_s).event("broker-a", "register", **about)


def act(builder: HistoryBuilder, at_s: float, f: str, **more: Any) -> HistoryBuilder:
    about = {"target": "ns-0", "fault_id": f"{f}-1", "broker_id": 0, "code": 0, "type": "ok", "duration_ms": 5.0}
    value = {"topics": {"orders": 4}, "perm": 6, **more.pop("value", {})}
    return builder.at(at_s).event("admin", "admin", f=f, value=value, **{**about, **more})


def holds(builder: HistoryBuilder, at_s: float, perm: int = 6, **addresses: str) -> HistoryBuilder:
    """ns-0's route of orders from then on: broker (a, x) to its address."""
    if not addresses:
        return builder.at(at_s).event("ns-0", "route", topic="orders", value=None)
    brokers = {f"broker-{name}": {"0": address} for name, address in addresses.items()}
    queues = {f"broker-{name}": [4, 4, perm, 0] for name in addresses}
    return builder.at(at_s).event("ns-0", "route", topic="orders", value={"brokers": brokers, "queues": queues})


OWN = address_of("broker-a")


def test_nothing_done_is_unknown() -> None:
    assert check(story().end(90)).verdict is Validity.UNKNOWN


def test_a_stranger_that_is_registered_is_there_until_it_is_silent_and_then_not() -> None:
    builder = act(story(), 10, "register", broker_name="broker-x", address=STRANGE)
    holds(builder, 9.999, a=OWN, x=STRANGE)
    holds(builder, 130, a=OWN).end(200)
    verdict = check(builder)
    assert (verdict.verdict, verdict.examined) == (Validity.VALID, 2)


def test_a_stranger_that_is_acknowledged_and_not_taken_in_is_invalid() -> None:
    verdict = check(act(story(), 10, "register", broker_name="broker-x", address=STRANGE).end(90))
    assert (verdict.verdict, verdict.violations) == (Validity.INVALID, 1)
    assert verdict.examples[0].more["kind"] == "registered"
    assert verdict.examples[0].more["due"] == f"broker-x {STRANGE} [4 read, 4 write, perm 6]"


def test_a_silent_stranger_that_stays_is_invalid_from_the_moment_that_its_channel_is_idle_for_too_long() -> None:
    builder = act(story(), 10, "register", broker_name="broker-x", address=STRANGE)
    holds(builder, 9.999, a=OWN, x=STRANGE).end(200)
    verdict = check(builder)
    assert verdict.verdict is Validity.INVALID
    assert verdict.examples[0].from_ms == 130_000


def test_a_broker_that_is_unregistered_is_gone_until_it_registers_again() -> None:
    gone = act(story(), 40, "unregister", broker_name="broker-a", address=OWN)
    holds(gone, 39.999)
    holds(gone, 61.005, a=OWN)
    assert check(gone.end(90)).verdict is Validity.VALID
    kept = act(story(), 40, "unregister", broker_name="broker-a", address=OWN).end(90)
    verdict = check(kept)
    assert (verdict.verdict, verdict.examples[0].over_ms) == (Validity.INVALID, 21_000.0)


def test_a_permission_that_is_wiped_stays_so_until_the_broker_registers_another_version() -> None:
    wiped = act(story(), 40, "wipe_write_perm", broker_name="broker-a")
    holds(wiped, 39.999, perm=4, a=OWN)
    registers(wiped, 70, version=2)
    holds(wiped, 70, a=OWN)
    assert check(wiped.end(90)).verdict is Validity.VALID
    soon = act(story(), 40, "wipe_write_perm", broker_name="broker-a")
    holds(soon, 39.999, perm=4, a=OWN)
    holds(soon, 61.01, a=OWN)
    assert check(soon.end(90)).verdict is Validity.INVALID  # with the registration of an unchanged version
    assert check(act(story(), 40, "wipe_write_perm", broker_name="broker-a").end(90)).verdict is Validity.INVALID


def test_a_topic_that_is_deleted_is_gone_until_a_broker_brings_it_back() -> None:
    deleted = holds(act(story(), 40, "delete_topic", topic="orders"), 39.999)
    assert check(deleted.end(90)).verdict is Validity.VALID
    verdict = check(act(story(), 40, "delete_topic", topic="orders").end(90))
    assert (verdict.verdict, verdict.examples[0].more["due"]) == (Validity.INVALID, "code 17")


def test_a_topic_comes_back_with_any_registration_of_a_broker_that_the_name_server_had_dropped_or_never_had() -> None:
    def deleted(builder: HistoryBuilder) -> Validity:
        holds(act(builder, 40, "delete_topic", topic="orders"), 39.999)
        return check(holds(builder, 61.01, a=OWN).end(90)).verdict

    assert deleted(story()) is Validity.INVALID  # of the version that it had
    dropped = story().at(35).event("ns-0", "broker_dropped", broker_name="broker-a")
    assert deleted(holds(dropped, 35)) is Validity.VALID
    restarted = story().at(35).restarted("ns-0").at(36).event("ns-0", "route", topic="orders", value=None)
    assert deleted(restarted) is Validity.VALID


def test_a_5_x_slave_brings_a_topic_back_too() -> None:
    builder = cluster(name_servers=1, brokers=("broker-a", "broker-a/1")).at(1).topic("broker-a", "orders")
    builder.rows[0]["value"]["profile"] = "5.x"
    registers(builder, 1.01)
    holds(act(builder, 40, "delete_topic", topic="orders"), 39.999)
    about = {"type": "ok", "name_server": address_of("ns-0"), "duration_ms": 2.0, "value": {"version": 1, "topics": 2}}
    builder.at(45).event("broker-a/1", "register", **about)
    assert check(holds(builder, 45, a=OWN).end(90)).verdict is Validity.VALID


def test_a_topic_that_is_deleted_of_one_cluster_keeps_the_rows_of_the_others_brokers() -> None:
    def deleted(cluster: str, **left: str) -> Verdict:
        asked = {"topic": "orders", "value": {"cluster_name": cluster}}
        return check(holds(act(story(), 40, "delete_topic", **asked), 39.999, **left).end(90))

    assert deleted("eu", a=OWN).verdict is Validity.VALID
    assert deleted("DefaultCluster").verdict is Validity.VALID
    verdict = deleted("eu")
    assert (verdict.verdict, verdict.examples[0].more["due"]) == (Validity.INVALID, "broker-a as it was")
    assert verdict.examples[0].to_ms == 61_000  # from its own next registration on it is for the other checks


def test_nothing_says_that_a_broker_stays_which_is_dropped_or_was_registered_for_the_cluster_by_hand() -> None:
    asked = {"topic": "orders", "value": {"cluster_name": "eu"}}
    dropped = act(story(), 40, "delete_topic", **asked).at(45).event("ns-0", "broker_dropped", broker_name="broker-a")
    assert check(holds(dropped, 45).end(90)).verdict is Validity.VALID
    strange = act(story(), 20, "register", broker_name="broker-a", address=OWN)
    assert check(holds(act(strange, 40, "delete_topic", **asked), 39.999).end(90)).verdict is Validity.VALID


def test_a_topic_that_a_broker_does_not_change_though_it_says_so_is_invalid() -> None:
    asked = {"target": "broker-a", "topic": "orders", "value": {"read_queues": 8, "write_queues": 8}}
    assert check(act(story(), 40, "update_topic", **asked).end(90)).verdict is Validity.INVALID
    changed = story().at(40).event("broker-a", "topic", topic="orders", value={"read": 8, "write": 8, "perm": 6})
    assert check(act(changed, 40, "update_topic", **asked).end(90)).verdict is Validity.VALID


def test_nothing_is_said_while_a_registration_is_on_its_way() -> None:
    builder = story()
    registers(builder, 40.005)
    act(builder, 40, "unregister", broker_name="broker-a", address=OWN)
    assert check(builder.end(90)).verdict is Validity.UNKNOWN


def test_a_late_machine_is_an_excuse_that_is_said() -> None:
    builder = act(story(), 40, "unregister", broker_name="broker-a", address=OWN)
    holds(builder, 43.5).at(0).lag(4000.0, until_s=90)
    holds(builder, 61.005, a=OWN)
    assert check(builder.end(90, lag_ms=None)).verdict is Validity.VALID
