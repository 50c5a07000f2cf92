"""answers_asked_for over hand-written histories."""

from nemesrv.chaos.checks.service.answers_asked_for import judge
from nemesrv.chaos.verdict import Example, Validity
from tests.chaos.builder import HistoryBuilder, address_of, cluster


def example(at_ms: float, answer: str) -> Example:
    return Example(who="consumer-0", what="broker-a", from_ms=at_ms, more={"kind": "unasked", "answer": answer})


def calls() -> HistoryBuilder:
    builder = cluster(clients=("consumer-0",)).at(5)
    builder.event("consumer-0", "pull", type="invoke", broker_name="broker-a", offset=0)
    builder.event("consumer-0", "pull", type="ok", broker_name="broker-a", offset=0)
    return builder.event("consumer-0", "name_server_call", f="route", type="ok", name_server=address_of("ns-0"))


def test_answers_to_calls_are_valid() -> None:
    verdict = calls().end(10).judged(judge)
    assert (verdict.verdict, verdict.examined, verdict.violations) == (Validity.VALID, 2, 0)


def test_answers_that_nobody_asked_for_are_invalid() -> None:
    builder = calls()
    for at_s in (6, 7, 8):
        value = {"reason": f"code 0, opaque {at_s}"}
        builder.at(at_s).event("consumer-0", "unasked_answer", address=address_of("broker-a"), value=value)
    verdict = builder.end(10).judged(judge)
    assert (verdict.verdict, verdict.examined, verdict.violations) == (Validity.INVALID, 5, 3)
    assert verdict.why == "3 answers of 1 peers were not asked for"
    assert verdict.examples == (example(6000.0, "code 0, opaque 6"), example(8000.0, "code 0, opaque 8"))
