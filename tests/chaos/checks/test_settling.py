"""A run that ends too soon after its last fault says which time a check needs."""

import pytest

from nemesrv.chaos.checks import CHECKS
from nemesrv.chaos.checks.finishing import AFTER_THE_LAST_FAULT, settling_needed_s, with_settling
from nemesrv.chaos.explain import explanation
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.verdict import Finding, Validity, Verdict
from tests.chaos.builder import HistoryBuilder, cluster

CONVERGE = CHECKS["routes_converge"]


def ended(seconds: float) -> HistoryBuilder:
    """A broker is cut from a NameServer from 20 to 60 s; R + C are 33 s."""
    builder = cluster(name_servers=2, brokers=("broker-a",))
    return builder.at(20).black_hole("broker-a", "ns-0", until_s=60).end(seconds)


def test_a_check_needs_its_time_after_the_last_fault() -> None:
    for seconds, needed in ((80, 34), (93, 34), (94, None)):
        _, world = ended(seconds).facts()
        assert settling_needed_s(CONVERGE, world) == needed
    assert settling_needed_s(CONVERGE, cluster().end(50).facts()[1]) is None
    assert settling_needed_s(CHECKS["no_acknowledged_loss"], ended(80).facts()[1]) is None


def test_a_process_that_stood_still_asks_for_no_time() -> None:
    _, world = ended(100).at(80).lag(5000, "broker-a", until_s=86).facts()
    assert any(fault.stood_still for fault in world.faults)
    assert settling_needed_s(CONVERGE, world) is None


def test_the_verdict_names_what_it_does_not_judge_and_the_time_it_takes() -> None:
    _, world = ended(80).facts()
    why = "nothing is judged, because the 20 s that follow are too short: `settle_s: 34` is enough"
    valid = Verdict(name="routes_converge", verdict=Validity.VALID, examined=3)
    said = with_settling(CONVERGE, valid, world)
    assert (said.verdict, dict(said.undecided)) == (Validity.VALID, {AFTER_THE_LAST_FAULT: why})
    nothing = with_settling(
        CONVERGE, Verdict.nothing_examined("no segment was long enough", name="routes_converge"), world
    )
    assert nothing.why == f"no segment was long enough; after the last fault {why}"
    assert not with_settling(CONVERGE, valid, ended(94).facts()[1]).undecided


def test_what_was_judged_after_the_last_fault_all_the_same_is_not_called_undecided() -> None:
    _, world = ended(80).facts()
    found = Finding(subject="ns-0", kind="equal", from_ms=70_000, to_ms=80_000)
    judged = Verdict(name="routes_converge", verdict=Validity.VALID, examined=1, findings=(found,))
    assert not with_settling(CONVERGE, judged, world).undecided


@pytest.mark.parametrize(("settle_s", "short"), [(20, ["routes_converge", "availability"]), (200, [])])
def test_explain_says_it_before_anything_runs(settle_s: float, short: list[str]) -> None:
    document = {
        "timeline": [{"at_s": 20, "do": "black_hole", "links": ["broker-a <-> ns-0"]}, {"at_s": 60, "do": "heal"}],
        "settle_s": settle_s,
        "checks": ["routes_converge", "availability", "no_acknowledged_loss"],
    }
    assert [*explanation(parse(document, file="x.yaml"))["too_short"]] == short


def short(settle_s: float, **act: object) -> dict[str, str]:
    entry = {"at_s": 65, "nodes": ["ns-0"], **act}
    document = {"timeline": [entry], "settle_s": settle_s, "checks": ["queue_ownership"]}
    return dict(explanation(parse(document, file="x.yaml"))["too_short"])


def test_the_settle_time_that_is_advised_after_an_act_by_hand_decides() -> None:
    wipe = {"do": "wipe_write_perm", "broker": "broker-a"}
    assert short(122, **wipe)["queue_ownership"].endswith(
        "the 86 s that follow are too short: `settle_s: 154` is enough"
    )
    assert short(20, **wipe)["queue_ownership"].endswith("its effects outlast the run: `settle_s: 154` is enough")
    assert short(154, **wipe) == {}


def test_no_settle_time_is_advised_where_an_act_by_hand_leaves_a_check_open() -> None:
    assert short(20, do="register", broker="broker-x", address="10.9.9.9:10911") == {}
