"""Facts of parts of a history add up to those of the whole."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from nemesrv.chaos import checks
from nemesrv.chaos.checks import CHECKS, GROUPS
from nemesrv.chaos.checks.check import Facts, largest, least
from nemesrv.chaos.verdict import Validity
from tests.chaos.builder import HistoryBuilder


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


ONE = Counted(3, {"a": 2}, {"x": Inner(1)}, ("r1", "r2"), 10.0, None)
OTHER = Counted(2, {"a": 1, "b": 4}, {"x": Inner(2), "y": Inner(5)}, ("r2", "r3"), 20.0, 30.0)


def test_numbers_add_entry_by_entry_and_rows_are_joined() -> None:
    whole = ONE.plus(OTHER)
    assert (whole.examined, whole.by_kind, whole.rows) == (5, {"a": 3, "b": 4}, ("r1", "r2", "r3"))
    assert whole.of_each == {"x": Inner(3), "y": Inner(5)}
    assert (whole.first_ms, whole.last_ms) == (10.0, 30.0)


def test_nothing_added_changes_nothing() -> None:
    assert ONE.plus(Counted()) == ONE


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
        ("answers_asked_for", {"answered": 5, "unasked": 0}, "0 unsolicited responses"),
        (
            "recovery_time",
            {"recoveries": 16, "max_ms": 3205.4, "never": 0},
            "16 recoveries; the slowest relative to its limit took 3.2 s",
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


@pytest.mark.parametrize("check", CHECKS)
def test_of_an_empty_history_every_check_is_unknown_and_says_why(check: str) -> None:
    verdict = HistoryBuilder().judged(CHECKS[check])
    assert (verdict.verdict, verdict.examined) == (Validity.UNKNOWN, 0)
    assert verdict.why


@pytest.mark.parametrize("folder", GROUPS)
def test_every_module_that_judges_has_a_record_and_a_test_of_its_own(folder: str) -> None:
    home = Path(checks.__file__).parent / folder
    for path in sorted(home.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "\ndef judge(" not in text:
            continue
        test = Path(__file__).parent / folder / f"test_{path.stem}.py"
        assert "\n@check(" in text, f"{folder}/{path.name} judges, and no check has it: its record is @check"
        assert test.is_file(), f"tests/chaos/checks/{folder}/{test.name} is missing: {path.name} has no test"
