"""What needs real time: channels that are idle, and in 4.9 the 120 s after which a silent broker is dropped."""

import time
from collections.abc import Iterator

import pytest

from nemesrv.remoting.node.profile import Profile

from ..interop.conftest import need
from . import operations
from .machine import LIVES
from .operations import Register, Topic
from .pair import Pair
from .peers import JARS, Peers

pytestmark = [pytest.mark.java, pytest.mark.timeout(400)]

TOPICS = (Topic(name="T0"), Topic(name="T1"))


def own(number: int, **changes: object) -> Register:
    return Register(broker=f"b{number}", addr=f"10.0.0.{number}:10911", topics=TOPICS, five=False).but(**changes)


def live(pair: Pair, number: int) -> tuple[str, str]:
    return ("c0", f"10.0.0.{number}:10911")


@pytest.fixture(params=list(Profile))
def quick_to_idle(request: pytest.FixtureRequest) -> Iterator[Pair]:
    need(JARS[request.param])
    with Peers(request.param, serverChannelMaxIdleTimeSeconds=2) as peers:
        yield Pair(peers)


def test_an_idle_channel_takes_two_brokers_in_4_9_and_one_or_two_in_5_x(quick_to_idle: Pair) -> None:
    pair = quick_to_idle
    link = pair.link()
    for number in range(4):
        pair.ask(own(number).command(), link)
    for channel in link.channels:
        channel.wait_for_end()
    pair.admin = pair.link()  # the old one was idle as well
    gone = 1 if pair.five else 2
    pair.until("brokers are gone", lambda ch: sum(not pair.is_live(ch, *live(pair, n)) for n in range(4)) >= gone)
    # Both servers deal with one event of their channels after the other, so after this one nothing of the idle ones is
    # left to come.
    last = pair.link()
    pair.ask(own(9).command(), last)
    last.close()
    pair.until("the broker of the last channel is gone", lambda channel: not pair.is_live(channel, *live(pair, 9)))
    alive = [[pair.is_live(channel, *live(pair, number)) for number in range(4)] for channel in pair.admin.channels]
    theirs, ours = (each.count(False) for each in alive)
    assert (theirs, ours) in ([(1, 1), (2, 1)] if pair.five else [(2, 2)])
    link.close()


def test_a_broker_silent_for_120_s_is_dropped_in_4_9_unless_something_has_refreshed_it() -> None:
    need(JARS[Profile.V4_9])
    with Peers(Profile.V4_9, serverChannelMaxIdleTimeSeconds=600) as peers:
        pair = Pair(peers)
        links = [pair.link() for _ in range(5)]
        began = time.monotonic()
        for number, link in enumerate(links):
            pair.ask(own(number).command(), link)
        time.sleep(began + 60 - time.monotonic())
        same = {"counter": 1, "timestamp": 1000}
        pair.ask(operations.query_version("c0", own(1).addr, same))  # refreshes
        pair.ask(operations.query_version("c0", own(2).addr, {**same, "counter": 9}))  # does not, as it has changed
        pair.ask(own(3).command(), links[3])
        time.sleep(began + 131.5 - time.monotonic())  # past 120 s and the next scan
        pair.compare_state(("T0", "T1"), (), ("c0",))
        groups = pair.groups(pair.admin.channels[0])
        assert groups.keys() == {"b1", "b3"}
        for link in links:
            link.close()
        pair.clear(LIVES)
