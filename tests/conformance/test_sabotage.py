"""Every rule can fail: our client with one defect is called INVALID by exactly that rule, and its clean twin by none.

On the virtual clock, through conform's own fronts in memory (memory.py); over TCP a clean client runs nightly.
"""

from pathlib import Path

import pytest

from nemesrv.chaos.verdict import Validity
from nemesrv.conformance.rule_verdicts import RuleProfile, RuleVerdict, judge_all, profile_of
from nemesrv.conformance.rules import RULES, LeftOut
from nemesrv.conformance.rules.rule import Expected, Range
from nemesrv.conformance.situations import SITUATIONS, Watched
from nemesrv.remoting.node.profile import Profile
from tests.conformance.memory import put_through
from tests.conformance.sabotage import DEFECTS, Defect

OF_THE_DRIVER: dict[str, Expected] = {
    "leaves_within_s": Range(at_most=58.0),
    "poll_jitter_s": Range(at_most=0.2),
    "storm": Range(at_most=10),
    "sends_lost": Range(at_most=0.2),
    "send_stall_s": Range(at_most=7.0),
    "received_twice": Range(at_most=55.0),
}
"""What depends on how often the program sends, on when a poll is due, or on the machine: no profile says it."""
NAMES = {Profile.V4_9: "java-4.9", Profile.V5_X: "java-5.3"}
LOCKED = {Profile.V4_9: {"failover"}, Profile.V5_X: set()}
"""What even the clean twin breaks: 4.9.8 never recovers (apache/rocketmq#7056)."""

Pass = dict[str, list[Watched]]


def rules_of(profile: Profile) -> RuleProfile:
    built_in = profile_of(NAMES[profile])
    return RuleProfile(name=built_in.name, rules={**built_in.rules, **OF_THE_DRIVER})


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> dict[Profile, Pass]:
    """Both twins, put through everything."""
    data = tmp_path_factory.mktemp("clean")
    return {
        profile: {name: put_through(name, data / profile.name, profile=profile) for name in SITUATIONS}
        for profile in Profile
    }


def judged_by_name(watched: list[Watched], profile: Profile) -> dict[str, RuleVerdict]:
    return {one.rule.name: one for one in judge_all(watched, rules_of(profile))}


def judged(watched: Pass, profile: Profile) -> dict[str, RuleVerdict]:
    return judged_by_name([one for of in watched.values() for one in of], profile)


def invalid(verdicts: dict[str, RuleVerdict]) -> set[str]:
    return {name for name, one in verdicts.items() if one.verdict is Validity.INVALID}


@pytest.mark.parametrize("profile", Profile)
def test_the_clean_twin_is_decided_by_every_rule_and_breaks_none(clean: dict[Profile, Pass], profile: Profile) -> None:
    verdicts = judged(clean[profile], profile)
    assert invalid(verdicts) == LOCKED[profile]
    assert {name for name, one in verdicts.items() if one.verdict is Validity.UNKNOWN} == set()
    left_out = {name for name, one in verdicts.items() if isinstance(one.measured, LeftOut)}
    assert left_out == ({"timeouts_add"} if profile is Profile.V5_X else set())  # its calls make one try


@pytest.mark.parametrize("defect", DEFECTS.values(), ids=DEFECTS)
def test_exactly_its_rule_finds_a_sabotaged_client(clean: dict[Profile, Pass], defect: Defect, tmp_path: Path) -> None:
    watched = dict(clean[defect.profile])
    for name in defect.situations:
        watched[name] = [
            one
            for seed in range(defect.repeats)
            for one in put_through(
                name, tmp_path, profile=defect.profile, plant=defect.plant, seed=seed, **defect.settings
            )
        ]
    verdicts = judged(watched, defect.profile)
    assert invalid(verdicts) == {defect.rule} | defect.besides | (LOCKED[defect.profile] - defect.heals)


def test_every_rule_has_a_defect() -> None:
    assert {defect.rule for defect in DEFECTS.values()} == set(RULES)
