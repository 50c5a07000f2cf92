"""A test that is nightly, and the tests every time that stand for nightly ones of more than one part."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Nightly:
    """A test that is nightly, but for the parameters that run every time; and the tests that stand for the rest."""

    test: str
    says: str
    instead: tuple[str, ...]
    every_time: tuple[str, ...] = ()
    """Ids of parameters, as pytest shows them in brackets."""


NODE_OF_APACHES = (
    "tests/chaos/apache/test_nodes_in_ray.py"
    "::test_a_node_of_apaches_is_killed_restarted_paused_and_stopped_with_its_jvm"
)
SELFTEST = "tests/chaos/proof/test_selftest.py"
BENCH = "tests/bench/test_namesrv_bench.py"
UP = (
    "tests/chaos/live/test_up_alone.py"
    "::test_a_node_that_somebody_kills_is_said_at_once_and_recorded_once_and_up_goes_on"
)
DEFECT = f"{SELFTEST}::test_planted_defects_are_killed_and_their_clean_twin_is_clean"
