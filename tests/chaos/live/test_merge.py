"""How verdicts of parts come to the verdict of the whole: what is sealed, and what the carried rows still give."""

from __future__ import annotations

from typing import Any

import pytest

from nemesrv.chaos.checkers import CHECKS
from nemesrv.chaos.live.merge import MERGES, WHOLE, Inconsistent, Merge, Sealed, undeclared
from nemesrv.chaos.verdict import Validity, Verdict

COUNTED = Merge(counted=True, sums=("lost", "by_kind"), lists={"slowest": ("after_ms", 3)})


def verdict(examined: int, violations: int = 0, validity: Validity | None = None, **fields: Any) -> Verdict:
    decided = Validity.INVALID if violations else Validity.VALID if examined else Validity.UNKNOWN
    return Verdict(name="check", verdict=validity or decided, examined=examined, violations=violations, **fields)


def test_every_check_declares_how_its_verdicts_merge() -> None:
    missing = set(CHECKS) - set(MERGES)
    assert not missing, f"declare in chaos/live/merge.py how the verdicts of {sorted(missing)} add up"


def test_a_check_without_a_declaration_is_unknown_and_says_why() -> None:
    found = undeclared("new_check")
    assert (found.verdict, found.examined) == (Validity.UNKNOWN, 0)
    assert "declares no merge" in found.why


def test_what_carried_rows_still_give_is_not_counted_twice() -> None:
    sealed = Sealed().plus(COUNTED, before=verdict(10), carried=verdict(3))
    assert sealed.examined == 7
    assert sealed.with_(COUNTED, verdict(3)) == verdict(10, measured={"slowest": []})
    assert sealed.with_(COUNTED, verdict(5)).examined == 12


def test_a_violation_that_was_sealed_away_stays_and_says_why() -> None:
    before = verdict(4, 1, why="1 of 4 lost", examples=({"msg_key": "k"},))
    sealed = Sealed().plus(COUNTED, before, verdict(1))
    whole = sealed.with_(COUNTED, verdict(2))
    assert (whole.verdict, whole.violations, whole.examined, whole.why) == (Validity.INVALID, 1, 5, "1 of 4 lost")
    assert [example.more for example in whole.examples] == [{"msg_key": "k"}]


def test_a_violation_that_is_still_carried_is_counted_once() -> None:
    sealed = Sealed().plus(COUNTED, verdict(4, 1, why="bad"), verdict(2, 1, why="bad"))
    assert (sealed.violations, sealed.with_(COUNTED, verdict(2, 1, why="bad")).violations) == (0, 1)


def test_what_could_not_be_decided_and_is_sealed_stays_unknown() -> None:
    late = verdict(4, validity=Validity.UNKNOWN, why="the machine was too late")
    whole = Sealed().plus(COUNTED, late, verdict(1)).with_(COUNTED, verdict(9))
    assert (whole.verdict, whole.why) == (Validity.UNKNOWN, "the machine was too late")


def test_what_is_undecided_in_carried_rows_may_still_be_decided() -> None:
    late = verdict(4, validity=Validity.UNKNOWN, why="not read yet")
    assert Sealed().plus(COUNTED, late, late).with_(COUNTED, verdict(4)).verdict is Validity.VALID


def test_carried_rows_that_hold_nothing_do_not_make_a_judged_run_unknown() -> None:
    whole = Sealed().plus(COUNTED, verdict(4), verdict(0)).with_(COUNTED, verdict(0, why="nothing to examine"))
    assert (whole.verdict, whole.examined) == (Validity.VALID, 4)


def test_nothing_examined_at_all_is_unknown() -> None:
    whole = Sealed().plus(COUNTED, verdict(0), verdict(0)).with_(COUNTED, verdict(0, why="nothing to examine"))
    assert (whole.verdict, whole.why) == (Validity.UNKNOWN, "nothing to examine")


def test_a_check_that_fails_on_the_rest_is_unknown_whatever_was_sealed() -> None:
    failed = Verdict.of_failed_check("check", ValueError("a bug"))
    assert Sealed().plus(COUNTED, verdict(4), verdict(0)).with_(COUNTED, failed) == failed


def test_sums_add_up_and_the_longest_lists_entries_stay() -> None:
    def measured(lost: int, kinds: dict[str, int], *after_ms: float) -> dict[str, Any]:
        return {"lost": lost, "by_kind": kinds, "slowest": [{"after_ms": at} for at in after_ms]}

    before = verdict(9, measured=measured(5, {"a": 3, "b": 2}, 9.0, 4.0))
    sealed = Sealed().plus(COUNTED, before, verdict(2, measured=measured(1, {"b": 1}, 4.0)))
    whole = sealed.with_(COUNTED, verdict(4, measured=measured(2, {"b": 1, "c": 1}, 7.0, 4.0, 1.0)))
    assert whole.measured == measured(6, {"a": 3, "b": 2, "c": 1}, 9.0, 7.0, 4.0)


def test_a_seal_after_which_more_is_counted_is_not_made() -> None:
    with pytest.raises(Inconsistent, match=r"VALID \(0 of 3\) became INVALID \(1 of 3\)"):
        Sealed().plus(COUNTED, verdict(3), verdict(3, 1))


def test_a_seal_on_which_the_check_fails_is_not_made() -> None:
    with pytest.raises(Inconsistent):
        Sealed().plus(COUNTED, verdict(3), Verdict.of_failed_check("check", ValueError("a bug")))


def test_what_is_taken_back_is_counted_by_the_rows_again() -> None:
    sealed = Sealed().plus(COUNTED, verdict(9, measured={"lost": 2}), verdict(1, measured={"lost": 0}))
    assert sealed.minus(1, 0, {"lost": 1}) == Sealed(
        examined=7, sums={"lost": 1, "by_kind": 0}, lists={"slowest": ()}, worst=sealed.worst
    )


def test_a_check_whose_rows_are_all_carried_says_what_these_say() -> None:
    rest = verdict(3, 1, why="bad", measured={"max_ms": 4.0})
    assert Sealed().plus(WHOLE, verdict(7), verdict(3)).with_(WHOLE, rest) == rest
