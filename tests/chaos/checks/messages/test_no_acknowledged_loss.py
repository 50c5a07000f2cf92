"""no_acknowledged_loss over hand-written histories."""

import pytest

from nemesrv.chaos.checks.happened import happened
from nemesrv.chaos.checks.messages.no_acknowledged_loss import judge
from nemesrv.chaos.verdict import Validity
from nemesrv.remoting.message_id import offset_msg_id
from nemesrv.remoting.node.network import Address
from tests.chaos.builder import BOTH, HistoryBuilder, address_of, cluster, example, invalid, valid

AT = {"topic": "orders", "broker_name": "broker-a", "queue_id": 0}
ALLOWED = {"bound_ms": None, "formula": "0 lost", "tolerance_ms": 0, "row": "an acknowledged send is durable"}


EXAMPLE = example("producer-0", "broker-a", topic="orders", from_s=1, kind="lost", msg_key="k-1", queue_id=0, offset=1)


def sends() -> HistoryBuilder:
    """k-0 and k-1 were acknowledged, k-2 may have been stored, k-3 was refused; only k-0 was received."""
    builder = HistoryBuilder()
    for offset, type_ in enumerate(("ok", "ok", "info", "fail")):
        builder.at(offset).event("producer-0", "send", type="invoke", op_id=f"o-{offset}", msg_key=f"k-{offset}")
        builder.event("producer-0", "send", type=type_, op_id=f"o-{offset}", msg_key=f"k-{offset}", offset=offset, **AT)
    builder.event("consumer-0", "receive", msg_key="k-0", offset=0, **AT)
    return builder.event("consumer-0", "receive", msg_key="k-0", offset=0, **AT)


def test_what_nobody_received_but_the_final_read_holds_is_not_lost() -> None:
    builder = sends().at(10).event("reader", "read", msg_key="k-1", offset=1, **AT)
    assert builder.event("reader", "read_done", offset=2, **AT).judged(judge) == valid(
        "no_acknowledged_loss",
        examined=2,
        measured={"acknowledged": 2, "received": 1, "only_in_final_reads": 1, "lost": 0, "unread": 0},
        allowed=ALLOWED,
    )


def test_what_neither_a_consumer_nor_a_complete_final_read_holds_is_lost() -> None:
    assert sends().at(10).event("reader", "read_done", offset=1, **AT).judged(judge) == invalid(
        "no_acknowledged_loss",
        examined=2,
        measured={"acknowledged": 2, "received": 1, "only_in_final_reads": 0, "lost": 1, "unread": 0},
        allowed=ALLOWED,
        examples=(EXAMPLE,),
        why="1 of 2 acknowledged sends are neither received nor in the final reads",
    )


def test_a_lost_message_is_told_with_the_next_restart_of_its_broker_else_its_next_fault() -> None:
    for again, said in ((True, "restart was at 8.0 s"), (False, "fault was at 5.0 s")):
        told = cluster(name_servers=1, brokers=("broker-a",)).at(1)
        told.event("producer-0", "send", type="ok", op_id="o-1", msg_key="k-1", offset=0, **AT)
        told.at(5).fault("kill-1", "kill", "sigkill", "broker-a", until_s=8 if again else None)
        if again:
            told.restarted("broker-a")
        (lost,) = told.at(9).event("reader", "read_done", offset=0, **AT).end(10).judged(judge).examples
        assert happened(lost) == (
            "broker-a lost a message of topic orders that broker-a had acknowledged to producer-0 at 1.0 s; "
            f"the broker's next {said}"
        )


def test_where_the_final_read_of_that_queue_is_incomplete_nobody_knows() -> None:
    other = {**AT, "queue_id": 1}
    verdict = sends().at(10).event("reader", "read_done", offset=0, **other).judged(judge)
    assert (verdict.verdict, verdict.violations, verdict.measured["unread"]) == (Validity.UNKNOWN, 0, 1)
    assert [example.more["msg_key"] for example in verdict.examples] == ["k-1"]
    assert "incomplete" in verdict.why


def test_a_sync_master_acknowledges_nothing_while_no_slave_of_its_runs() -> None:
    def told(sent_s: float) -> HistoryBuilder:
        kill = ("kill-1", "kill", "sigkill", "broker-a/1")
        builder = cluster(brokers=("broker-a", "broker-a/1"), settings={"broker-a": {"brokerRole": "SYNC_MASTER"}})
        builder.at(100).fault(*kill, until_s=200).restarted("broker-a/1")
        builder.at(sent_s).event("producer-0", "send", type="ok", op_id="o-1", msg_key="k-1", offset=0, **AT)
        return builder.event("consumer-0", "receive", msg_key="k-1", offset=0, **AT).end(300)

    for sent_s, validity in ((99, Validity.VALID), (150, Validity.INVALID), (201, Validity.VALID)):
        found = told(sent_s).judged(judge)
        assert (found.verdict, found.violations) == (validity, int(validity is Validity.INVALID))


def test_what_is_lost_decides_before_what_nobody_knows() -> None:
    builder = sends().at(0).event("producer-0", "send", type="ok", msg_key="k-9", offset=0, **{**AT, "queue_id": 1})
    verdict = builder.at(10).event("reader", "read_done", offset=2, **AT).judged(judge)
    assert (verdict.verdict, verdict.violations, verdict.examples) == (Validity.INVALID, 1, (EXAMPLE,))
    assert [(finding.kind, finding.wrong, finding.late) for finding in verdict.findings] == [
        ("lost", 1, 0),
        ("not read", 0, 1),
    ]


def named(
    *answered: str | None, sent_to: str = address_of("broker-a"), read: bool = True, **of_run: object
) -> HistoryBuilder:
    """The broker answered two sends with these offsetMsgIds; their records are at 0 and 200 of its commit log."""
    builder = cluster(name_servers=1, brokers=BOTH, **of_run)
    for number, msg_id in enumerate(answered):
        where = {**AT, "msg_key": f"k-{number}", "offset": number}
        answer = {"address": sent_to, "msg_id": msg_id}
        builder.at(1 + number).event("producer-0", "send", type="ok", op_id=f"o-{number}", **answer, **where)
        builder.event("consumer-0", "receive", **where)
        if read:
            builder.at(8 + number).event("reader", "read", msg_id=id_at(200 * number), **where)
    return builder.end(20)


def id_at(offset: int, broker: str = "broker-a") -> str:
    return offset_msg_id(Address.parse(address_of(broker)), offset)


def test_an_answer_names_the_place_of_its_message() -> None:
    verdict = named(id_at(0), id_at(200)).judged(judge)
    assert (verdict.verdict, verdict.measured["ids_compared"]) == (Validity.VALID, 2)
    for msg_id, kind, said in (
        (id_at(0), "answered another message's id", "under which the message of topic orders is not stored"),
        (id_at(200, "broker-b"), "answered another broker's id", "lacks broker-a's address"),
    ):
        verdict = named(id_at(0), msg_id).judged(judge)
        (wrong,) = verdict.examples
        assert (verdict.verdict, verdict.violations) == (Validity.INVALID, 1)
        assert verdict.why == "1 of 2 sends were answered with a wrong offsetMsgId"
        assert (wrong.more["kind"], judge.accused(wrong)) == (kind, "broker-a")
        assert happened(wrong).startswith("broker-a answered a send of producer-0 ")
        assert said in happened(wrong)


def test_an_id_is_not_compared_without_an_answer_or_a_record_that_has_one() -> None:
    for builder in (named(None, None), named(id_at(0), id_at(0), read=False)):
        verdict = builder.judged(judge)
        assert (verdict.verdict, verdict.violations, "ids_compared" in verdict.measured) == (Validity.VALID, 0, False)


def test_an_address_in_an_id_is_wrong_only_if_a_broker_of_ours_that_was_asked_by_its_name_never_had_it() -> None:
    """A front before Apache's servers has another address; brokerIP1 is an address of its broker; and a route with a
    wrong address leads to another broker."""
    strange = offset_msg_id(Address("172.17.0.3", 10911), 0)
    for builder, validity in (
        (named(strange, read=False), Validity.INVALID),
        (named(strange, read=False).made_by("apache-5.3.3", "broker-a"), Validity.VALID),
        (named(id_at(0, "broker-b"), read=False, sent_to=address_of("broker-b")), Validity.VALID),
        (named(strange, read=False, settings={"broker-a": {"brokerIP1": "172.17.0.3"}}), Validity.VALID),
    ):
        assert builder.judged(judge).verdict is validity


@pytest.mark.parametrize(
    ("attempt", "fault", "dead", "whole", "found"),
    [
        (2, False, False, True, ["dead letter lost"]),
        (2, False, True, True, []),
        (1, False, False, True, []),  # it is tried once more
        (2, True, False, True, []),  # a slave may have acted as the broker
        (2, False, False, False, []),
    ],
)
def test_a_message_that_failed_too_often_is_a_dead_letter(
    attempt: int, fault: bool, dead: bool, whole: bool, found: list[str]
) -> None:
    told = cluster(clients=("producer-0", "consumer-0"), settings={"consumer-0": {"maxReconsumeTimes": 1}}).at(1)
    told.event("producer-0", "send", type="ok", op_id="o-1", msg_key="k-1", offset=0, **AT)
    told.event("consumer-0", "receive", msg_key="k-1", offset=0, **AT)
    failed = {"f": "broker", "attempt": attempt, "duration_ms": 10.0, "msg_key": "k-1", "offset": 0, **AT}
    if fault:
        told.at(19).fault("pause-1", "pause", "signal.SIGSTOP", "broker-a", until_s=25)
    told.at(20).event("consumer-0", "sent_back", **failed)
    where = {**AT, "topic": "%DLQ%nemesrv-consumers"}
    if dead:
        told.at(30).event("prober", "read", msg_key="k-1", offset=0, **where)
    if whole:
        told.at(30).event("prober", "read_done", offset=int(dead), **where)
    assert [one.kind for one in told.end(31).judged(judge).findings] == found
