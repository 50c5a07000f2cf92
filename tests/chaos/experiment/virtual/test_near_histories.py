"""What differs for no longer than "at once", or what no peer sees, is no difference between two histories."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.chaos.builder import HistoryBuilder, cluster

from .near_histories import near

Told = Callable[[HistoryBuilder], Any]


def _stopped_and_started(story: HistoryBuilder, away_s: float) -> None:
    story.at(20).event("ns-0", "broker_dropped", broker_name="broker-a", value={"reason": "unregistered"})
    story.route("ns-0", "orders", "broker-b")
    story.at(20 + away_s).event("ns-0", "registration", broker_name="broker-a")
    story.route("ns-0", "orders", "broker-a", "broker-b")


def _registered(story: HistoryBuilder, at_s: float) -> None:
    story.at(at_s).event("ns-0", "registration", broker_name="broker-a")


def _polled(story: HistoryBuilder, at_s: float, took_ms: float) -> None:
    story.at(at_s).event("producer-0", "name_server_call", f="route", type="ok", code=0, duration_ms=took_ms)


@pytest.mark.parametrize(
    ("one", "other", "are_near"),
    [
        (lambda story: _stopped_and_started(story, 0.002), lambda story: _registered(story, 20.002), True),
        (lambda story: _stopped_and_started(story, 0.051), lambda story: _registered(story, 20.051), True),
        (lambda story: _stopped_and_started(story, 0.06), lambda story: _registered(story, 20.06), False),
        (lambda story: _polled(story, 20, 1), lambda story: _polled(story, 20.04, 41), True),
        (lambda story: _polled(story, 20, 1), lambda story: _polled(story, 20.06, 61), False),
        (lambda story: _polled(story, 20, 1), lambda _story: None, False),
        (lambda story: story.at(20).route("ns-0", "orders", "broker-b"), lambda _story: None, False),
        (lambda story: story.at(20).event("producer-0", "broker_isolated", f="selected"), lambda _story: None, True),
    ],
)
def test_histories_are_near_when_nothing_differs_for_longer_than_at_once(
    one: Told, other: Told, are_near: bool
) -> None:
    def rows(told: Told) -> list[dict[str, Any]]:
        story = cluster(clients=("producer-0",))
        told(story)
        return story.end(60).rows

    assert near(rows(one), rows(other)) == near(rows(other), rows(one)) == are_near
    assert near(rows(one), rows(one))
