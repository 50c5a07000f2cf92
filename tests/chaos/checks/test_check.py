"""Facts of parts of a history add up to those of the whole, and a part can be taken from it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from nemesrv.chaos.checks import CHECKS
from nemesrv.chaos.checks.check import Facts, Inconsistent, largest, least, of_the_rest
from nemesrv.chaos.checks.record.slots import Slot
from tests.chaos.builder import cluster


@dataclass(frozen=True)
class Inner(Facts):
    count: int = 0


@dataclass(frozen=True)
class Counted(Facts):
    examined: int = 0
    by_kind: Mapping[str, int] = field(default_factory=dict)
    of_each: Mapping[str, Inner] = field(default_factory=dict)
    rows: tuple[str, ...] = ()
    first_ms: float | None = least()
    last_ms: float | None = largest()
    carried: list[str] = of_the_rest(list)  # noqa: RUF009


ONE = Counted(3, {"a": 2}, {"x": Inner(1)}, ("r1", "r2"), 10.0, None, ["one"])
OTHER = Counted(2, {"a": 1, "b": 4}, {"x": Inner(2), "y": Inner(5)}, ("r2", "r3"), 20.0, 30.0, ["other"])


def test_numbers_add_entry_by_entry_and_rows_are_joined() -> None:
    whole = ONE.plus(OTHER)
    assert (whole.examined, whole.by_kind, whole.rows) == (5, {"a": 3, "b": 4}, ("r1", "r2", "r3"))
    assert whole.of_each == {"x": Inner(3), "y": Inner(5)}
    assert (whole.first_ms, whole.last_ms, whole.carried) == (10.0, 30.0, ["other"])


def test_what_a_part_gives_is_taken_away_but_for_the_least_and_the_largest() -> None:
    rest = ONE.plus(OTHER).minus(OTHER)
    assert (rest.examined, rest.by_kind["a"], rest.by_kind["b"], rest.rows) == (3, 2, 0, ("r1",))
    assert rest.of_each == {"x": Inner(1), "y": Inner(0)}
    assert (rest.first_ms, rest.last_ms, rest.carried) == (10.0, 30.0, ["other"])


@pytest.mark.parametrize(
    "more",
    [Counted(examined=4), Counted(by_kind={"a": 3}), Counted(by_kind={"new": 1}), Counted(of_each={"y": Inner(1)})],
)
def test_a_part_that_has_more_than_the_whole_is_inconsistent(more: Counted) -> None:
    with pytest.raises(Inconsistent):
        ONE.minus(more)


def test_nothing_added_changes_nothing() -> None:
    assert ONE.plus(Counted(carried=["one"])) == ONE


def test_the_same_operations_may_be_sealed_in_parts() -> None:
    """Sends in quiet, between changes and after the first fault: judged from two parts as from the whole."""
    from nemesrv.chaos.checks.record.slots import Slots, edges
    from nemesrv.chaos.checks.service.availability import judge, tallies

    pause = ("f1", "pause", "sigstop", "broker-a")
    builder = cluster(clients=("producer-0",), workload={"queues": 4, "sends_per_s": 1}).at(100).fault(*pause)
    _, world = builder.at(200).fault(*pause, end=True).end(400).facts()
    found = edges(world)
    slots = [
        Slot("producer-0", "send", at, segment, segment, 9, bad, 0.0, at * 2000.0, at * 2000.0 if bad else None)
        for at, segment, bad in ((5, 1, 0), (20, 1, 2), (60, 2, 5), (150, 4, 0))
    ]
    whole = tallies(Slots(found, slots), world)
    early, late = (tallies(Slots(found, part), world) for part in (slots[:2], slots[2:]))
    assert judge(early.plus(late), world) == judge(whole, world)
    assert judge(whole.minus(early).plus(early), world) == judge(whole, world)
    assert judge(whole, world).violations == 0  # nobody measured lateness: what failed is undecided
    assert judge(whole, world).examined == 9 + 11 + 14 + 9


def test_every_check_says_in_which_way_it_is_judged_while_a_history_grows() -> None:
    assert {name for name, check in CHECKS.items() if check.adds_up} >= {
        "no_acknowledged_loss",
        "order_kept",
        "duplicates",
        "answers_asked_for",
        "availability",
    }
    assert {name for name, check in CHECKS.items() if check.takes_all_rows} == {"availability", "exercised"}


def convergence(change: str, after_ms: float, bound_ms: float) -> dict[str, object]:
    return {"change": change, "after_ms": after_ms, "bound_ms": bound_ms}


@pytest.mark.parametrize(
    ("check", "measured", "said"),
    [
        (
            "no_acknowledged_loss",
            {"acknowledged": 1962, "received": 1960, "only_in_final_reads": 2, "lost": 0, "unread": 0},
            "1,962 acknowledged, 1,960 received, 2 only in final reads, 0 lost",
        ),
        ("order_kept", {"sends": 9, "out_of_order": 0}, "0 out of order"),
        ("duplicates", {"received_again": 3, "stored_again": 0}, "3 received again, 0 stored again"),
        ("answers_asked_for", {"answered": 5, "unasked": 0}, "0 that nobody asked for"),
        (
            "recovery_time",
            {"recoveries": 16, "max_ms": 3205.4, "never": 0},
            "of 16 recoveries the one nearest to its bound took 3.2 s",
        ),
        (
            "routes_converge",
            {"converged": [convergence("f1 start", 60_000.0, 130_000.0), convergence("f1 end", 14_200.0, 33_000.0)]},
            "equal again 14.2 s after f1 end (33.0 s)",
        ),
        ("exercised", {"faults": 1, "effects": 7, "clients": 4}, "1 fault with 7 effects, 4 clients"),
        ("exercised", {"faults": 0, "clients": 1}, "0 faults, 1 client"),
    ],
)  # fmt: skip
def test_what_was_measured_is_said_in_words(check: str, measured: Mapping[str, object], said: str) -> None:
    tells = CHECKS[check].tells
    assert tells is not None
    assert tells(measured) == said
