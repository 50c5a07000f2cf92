"""The clocks of several hosts in the tolerance, and what depends on a host of which nothing is known: never VALID, and
never INVALID for that."""

import pytest

from nemesrv.chaos.checks import CHECKS
from nemesrv.chaos.checks.finishing import with_blind
from nemesrv.chaos.verdict import Validity, Verdict
from tests.chaos.builder import KILL, HistoryBuilder, cluster, invalid

TRUE = CHECKS["routes_are_true"]


def on_hosts(builder: HistoryBuilder, *, bound_ms: float | None, jump_s: float | None = None) -> HistoryBuilder:
    """ns-1 and broker-b are on h1, all else on h0, the harness's. None: nobody measured the clock of h1."""
    for row in builder.rows:
        if row["event"] == "node":
            row["value"] = {**row["value"], "host": "h1" if row["source"] in ("ns-1", "broker-b") else "h0"}
    for second in range(0, 161, 2):
        builder.at(second)
        clocks = {"h0": (0.0, 0.0)}
        if bound_ms is not None:
            clocks["h1"] = (700.0 if jump_s is not None and second > jump_s else 0.0, bound_ms)
        for host, (offset_ms, bound) in clocks.items():
            value = {"host_ms": second * 1000 + offset_ms, "offset_ms": offset_ms, "bound_ms": bound}
            builder.event("clocks", "host_clock", source=host, value=value)
    return builder


def crash(drops_at_s: float = 100.03, node: str = "ns-1") -> HistoryBuilder:
    """broker-a is killed at 100 s; the node drops it then, the other NameServer at once."""
    other = "ns-0" if node == "ns-1" else "ns-1"
    builder = cluster().at(100).fault(*KILL)
    builder.at(100.01).route(other, "orders", "broker-b").at(drops_at_s).route(node, "orders", "broker-b")
    return builder.end(160)


def judged(builder: HistoryBuilder) -> Verdict:
    control, world = builder.facts()
    return with_blind(TRUE, TRUE.judge(control, world), world)


@pytest.mark.parametrize(
    ("drops_at_s", "bound_ms", "validity"),
    [
        (100.050, 3.0, Validity.VALID),
        (100.053, 3.0, Validity.VALID),  # 50 ms at once, 1 ms late timers; and 3 ms that the clocks may be apart
        (100.058, 3.0, Validity.INVALID),
        (100.058, 10.0, Validity.VALID),
        (100.065, 10.0, Validity.INVALID),
    ],
)
def test_the_bound_is_part_of_the_tolerance(drops_at_s: float, bound_ms: float, validity: Validity) -> None:
    verdict = judged(on_hosts(crash(drops_at_s), bound_ms=bound_ms))
    assert verdict.verdict is validity, verdict.why
    assert verdict.allowed["tolerance_ms"] == pytest.approx(51 + bound_ms, abs=0.5)


def test_a_history_of_one_host_has_the_tolerance_that_it_had() -> None:
    assert judged(crash()).allowed["tolerance_ms"] == 51.0


def test_a_host_whose_clock_nobody_measured_makes_what_depends_on_it_unknown() -> None:
    for drops_at_s in (100.03, 130):
        verdict = judged(on_hosts(crash(drops_at_s), bound_ms=None))
        assert verdict.verdict is Validity.UNKNOWN
        assert "nobody measured the clock of host h1" in verdict.why
        assert verdict.violations == 0


def test_a_bound_beyond_what_at_once_may_take_is_as_bad_as_none() -> None:
    verdict = judged(on_hosts(crash(130), bound_ms=60.0))
    assert (verdict.verdict, verdict.violations) == (Validity.UNKNOWN, 0)
    assert "the clock of host h1 is known too badly" in verdict.why


@pytest.mark.parametrize("drops_at_s", [100.03, 101.5])
def test_a_jump_makes_what_depends_on_it_unknown(drops_at_s: float) -> None:
    verdict = judged(on_hosts(crash(drops_at_s), bound_ms=0.5, jump_s=101))
    assert (verdict.verdict, verdict.violations) == (Validity.UNKNOWN, 0)
    assert "the clock of host h1 jumped" in verdict.why


def test_what_is_wrong_elsewhere_is_wrong_all_the_same() -> None:
    verdict = judged(on_hosts(crash(130, node="ns-0"), bound_ms=0.5, jump_s=101))
    assert (verdict.verdict, verdict.violations) == (Validity.INVALID, 1)
    assert verdict.examples[0].who == "ns-0"
    assert "the clock of host h1 jumped" in verdict.why


def lost(builder: HistoryBuilder) -> HistoryBuilder:
    """The rows of ns-1 and broker-b could not be collected."""
    builder.rows = [row for row in builder.rows if row["node"] not in ("ns-1", "broker-b")]
    for node in ("ns-1", "broker-b"):
        builder.event("harness", "rows_missing", source=node, value={"host": "h1", "why": "the host is gone"})
    return builder


def test_rows_that_are_missing_are_named_and_nothing_is_said_of_their_nodes() -> None:
    verdict = judged(lost(crash()))
    said = "the rows of broker-b and ns-1 on h1 are missing: the host is gone"
    assert said in (verdict.why, *verdict.undecided.values()) or said in verdict.why
    wrong = judged(lost(crash(130, node="ns-0")))
    assert (wrong.verdict, wrong.examples[0].who) == (Validity.INVALID, "ns-0")


def test_without_a_finding_for_each_thing_examined_all_depends_on_it() -> None:
    _, world = on_hosts(crash(), bound_ms=0.5, jump_s=101).facts()
    sends = invalid("no_acknowledged_loss", why="lost")
    said = with_blind(CHECKS["no_acknowledged_loss"], sends, world)
    assert (said.verdict, said.violations) == (Validity.UNKNOWN, 0)
    nothing = Verdict.nothing_examined("no send was acknowledged", name="no_acknowledged_loss")
    assert with_blind(CHECKS["no_acknowledged_loss"], nothing, world) == nothing
