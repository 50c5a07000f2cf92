"""timers_kept over hand-written histories: who drops a silent peer reads nothing from its channel any more."""

import pytest

from nemesrv.chaos.checks.service.expired_channels import CHANNEL
from nemesrv.chaos.checks.service.timers_kept import judge
from tests.chaos.builder import HistoryBuilder, address_of, cluster

END_S = 200.0


def found(told: HistoryBuilder) -> list[tuple[str, int]]:
    """Who kept the channel of an expired peer open, and how often something was read from it."""
    return [
        (one.subject, one.wrong)
        for one in judge(*told.end(END_S, 1.0).facts()).findings
        if one.object == CHANNEL and one.wrong
    ]


def story() -> HistoryBuilder:
    return (
        cluster(name_servers=1, brokers=("broker-a",), clients=("consumer-0",))
        .at(5)
        .event("ns-0", "scheduled_task", f="scanNotActiveBroker", duration_ms=0.0)
    )


@pytest.mark.parametrize(("heard_again", "wrong"), [(False, [("broker-a", 1)]), (True, [])])
def test_a_client_expires_only_on_a_channel_that_was_heard(heard_again: bool, wrong: list[tuple[str, int]]) -> None:
    told = story().at(10).hears("broker-a", "consumer-0").at(20).forgets("broker-a", "consumer-0", "closed", groups=[])
    if heard_again:
        told.at(21).hears("broker-a", "consumer-0")
    assert found(told.at(145).forgets("broker-a", "consumer-0", "expired")) == wrong


@pytest.mark.parametrize(
    ("ended_s", "fault", "wrong"),
    [
        pytest.param(60, None, [("ns-0", 1)], id="in-use"),
        pytest.param(175, None, [], id="idle"),
        pytest.param(60, "cut", [], id="cut"),
        pytest.param(54.99, "cut", [], id="cut-before-the-cut-was-recorded"),
        pytest.param(54.9, "cut", [("ns-0", 1)], id="closed-before-the-cut-was-asked-for"),
        pytest.param(150, None, [("ns-0", 1)], id="in-use-by-its-last-look-up"),
        pytest.param(170, "unread", [], id="a-look-up-meets-the-close"),
    ],
)
def test_a_name_server_closes_no_channel_of_a_client_before_it_was_idle(
    ended_s: float, fault: str | None, wrong: list[tuple[str, int]]
) -> None:
    address = address_of("ns-0")
    told = story().at(2).event("consumer-0", "channel", f="open", address=address, value={"reason": "connected"})
    if fault == "cut":
        told.at(55).fault("f1", "cut", "toxiproxy.cut", "consumer-0", "ns-0", value={"asked_ms": 54_950}, until_s=90)
    answered = {"type": "ok", "code": 0, "name_server": address, "topic": "orders", "duration_ms": 1.0}
    told.at(50).event("consumer-0", "name_server_call", f="route", **answered)
    if fault == "unread":
        unread = {**answered, "type": "fail", "code": None}
        told.at(ended_s).event("consumer-0", "name_server_call", f="route", **unread)
    told.at(ended_s).event("consumer-0", "channel", f="close", address=address, value={"reason": "closed by peer"})
    assert found(told) == wrong


@pytest.mark.parametrize(
    ("heard_s", "closed_s", "wrong"),
    [(35, None, [("broker-a", 1)]), (35, 165, []), (35, 192, [("broker-a", 1)]), (5, None, [])],
    ids=["kept", "closed", "closed-late", "may-have-ended-before"],
)
def test_a_broker_closes_the_idle_channel_of_a_paused_client(
    heard_s: float, closed_s: float | None, wrong: list[tuple[str, int]]
) -> None:
    told = story().at(heard_s).hears("broker-a", "consumer-0")
    told.at(40).fault("f1", "pause", "signal.SIGSTOP", "consumer-0", until_s=195)
    if closed_s is not None:
        told.at(closed_s).forgets("broker-a", "consumer-0", "closed", groups=[])
    assert found(told) == wrong


def test_a_client_of_two_groups_expires_once_in_each() -> None:
    told = story().at(10).hears("broker-a", "consumer-0").at(145)
    for group in ("readers", "writers"):
        told.forgets("broker-a", "consumer-0", "expired", groups=[group])
    assert found(told) == []
