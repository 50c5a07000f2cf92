"""Bugs of RocketMQ's as they were reported: each has an incident that ships, and is none of the self-test's."""

from nemesrv.chaos.proof.defects import DEFECTS, OF_APACHE, OF_INCIDENTS
from nemesrv.chaos.scenarios.loading import fixed, load, shipped


def test_each_has_an_incident_and_the_fix_takes_it_away() -> None:
    planted = {load(path).defect for path in shipped("incidents").values()} - {None}
    assert OF_INCIDENTS.keys() <= planted <= OF_INCIDENTS.keys() | DEFECTS.keys()
    assert not OF_INCIDENTS.keys() & (DEFECTS.keys() | OF_APACHE.keys())
    assert {fixed(path).defect for path in shipped("incidents").values()} == {None}
