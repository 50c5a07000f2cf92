"""Clients that are wrong wherever they are put: INVALID by just the right rule, alone and as one of three of a program.

In memory, on the virtual clock, in the situations that show it; nightly as programs of their own in real time, too.
"""

import json
import sys
from pathlib import Path

import pytest

from nemesrv.chaos.verdict import Validity
from nemesrv.conformance.rule_verdicts import RuleVerdict
from nemesrv.conformance.rules import RULES
from nemesrv.conformance.situations import SITUATIONS
from nemesrv.conformance.stand import TOPIC
from nemesrv.remoting.node.profile import Profile
from tests.clients_matrix.catalogue import DRIVERS
from tests.conformance.memory import Plant, put_through
from tests.conformance.sabotage import WRONG, Defect, goes_backwards, is_right_for_ten_minutes, leaves_after_ten
from tests.conformance.test_sabotage import invalid, judged_by_name
from tests.ran import ran

QUICK = [wrong for wrong in WRONG if wrong.starts <= 20]


def judged(
    data: Path,
    situations: tuple[str, ...],
    plant: Plant | None,
    *,
    starts: int = 20,
    beside: int = 0,
    repeats: int = 1,
    **settings: object,
) -> dict[str, RuleVerdict]:
    watched = [
        one
        for name in situations
        for seed in range(repeats)
        for one in put_through(name, data, plant=plant, starts=starts, beside=beside, seed=seed, **settings)
    ]
    return judged_by_name(watched, Profile.V5_X)


def is_told(wrong: Defect, verdicts: dict[str, RuleVerdict]) -> bool:
    return {wrong.rule} <= invalid(verdicts) <= {wrong.rule} | wrong.may


@pytest.mark.parametrize("wrong", QUICK, ids=[wrong.name for wrong in QUICK])
def test_a_wrong_client_is_invalid_by_just_the_right_rule(wrong: Defect, tmp_path: Path) -> None:
    verdicts = judged(tmp_path, wrong.only, wrong.plant, starts=wrong.starts, **wrong.settings)
    assert is_told(wrong, verdicts), invalid(verdicts)


@pytest.mark.parametrize("wrong", QUICK, ids=[wrong.name for wrong in QUICK])
def test_among_two_right_ones_it_is_the_one_that_is_invalid(wrong: Defect, tmp_path: Path) -> None:
    how = {"starts": wrong.starts, "repeats": wrong.repeats, **wrong.settings}
    verdicts = judged(tmp_path, wrong.only, wrong.plant, beside=2, **how)
    assert is_told(wrong, verdicts), invalid(verdicts)
    for name in invalid(verdicts):
        of = {client for client, one in verdicts[name].clients.items() if one.verdict is Validity.INVALID}
        assert of <= {TOPIC}, name


@pytest.mark.nightly("test_a_wrong_client_is_invalid_by_just_the_right_rule")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("wrong", [wrong for wrong in WRONG if wrong not in QUICK], ids=lambda wrong: wrong.name)
def test_one_that_only_many_starts_show_is_told_alone_and_among_right_ones(wrong: Defect, tmp_path: Path) -> None:
    test_a_wrong_client_is_invalid_by_just_the_right_rule(wrong, tmp_path / "alone")
    test_among_two_right_ones_it_is_the_one_that_is_invalid(wrong, tmp_path / "among")


def test_backwards_through_a_shuffled_list_is_as_forwards_through_another(tmp_path: Path) -> None:
    assert invalid(judged(tmp_path, ("all_gone", "refused", "quiet"), goes_backwards)) == set()


def test_three_right_clients_in_a_program_are_not_invalid(tmp_path: Path) -> None:
    shown = tuple(dict.fromkeys(name for wrong in QUICK for name in wrong.only))
    assert invalid(judged(tmp_path, shown, None, beside=2)) == set()


@pytest.mark.nightly("test_a_wrong_client_is_invalid_by_just_the_right_rule")
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("beside", [0, 2])
@pytest.mark.parametrize("wrong", WRONG, ids=[wrong.name for wrong in WRONG])
def test_as_a_program_of_its_own_it_is_invalid_by_the_right_rule(wrong: Defect, beside: int, tmp_path: Path) -> None:
    shown = {name for name, rule in RULES.items() if {*rule.situations} <= {*wrong.only}} | {wrong.rule}
    options = ("--profile", "java-5.3", "--profile-rocketmq", "5.x", "--rules", ",".join(shown))
    repeats = wrong.repeats if beside else 1
    numbers = ("--starts", str(wrong.starts), "--repeats", str(repeats), "--out", str(tmp_path / "run"))
    words = (sys.executable, str(DRIVERS / "ours.py"), "5.x", wrong.name, str(beside))
    conform = (sys.executable, "-m", "nemesrv.chaos", "conform", *options, *numbers, "--", *words)
    done = ran(conform)
    rules = json.loads((tmp_path / "run" / "conform.json").read_text())["rules"]
    found = {rule["rule"] for rule in rules if rule["verdict"] == "INVALID"}
    assert {wrong.rule} <= found <= {wrong.rule} | wrong.may, done.stdout
    of_clients = (rule["clients"].items() for rule in rules if "clients" in rule)
    blamed = {name for of in of_clients for name, each in of if each.get("verdict") == "INVALID"}
    assert blamed <= {TOPIC}, done.stdout


@pytest.mark.nightly("test_three_right_clients_in_a_program_are_not_invalid")
@pytest.mark.timeout(3_600)
def test_three_right_clients_in_a_program_are_not_invalid_in_any_situation(tmp_path: Path) -> None:
    assert invalid(judged(tmp_path, tuple(SITUATIONS), None, beside=2)) == set()


@pytest.mark.parametrize("beside", [0, 2])
@pytest.mark.parametrize(
    ("plant", "for_s", "verdict"),
    [
        (is_right_for_ten_minutes, 480.0, Validity.VALID),
        (is_right_for_ten_minutes, 900.0, Validity.INVALID),
        (leaves_after_ten, 200.0, Validity.UNKNOWN),
        (leaves_after_ten, 900.0, Validity.INVALID),
    ],
)
def test_one_that_is_right_at_first_is_told_by_what_it_does_later_only(
    plant: Plant, for_s: float, verdict: Validity, beside: int, tmp_path: Path
) -> None:
    verdicts = judged(tmp_path, ("quiet",), plant, beside=beside, for_s=for_s)
    assert verdicts["sticky"].verdict is verdict
    others = (one for name, one in verdicts["sticky"].clients.items() if name != TOPIC)
    assert all(one.verdict is not Validity.INVALID for one in others)
