"""NameServers that have one another's address at first sight: the clock tells, where it can, which is which."""

import pytest

from nemesrv.operations.logs_to_rows.book import Book
from nemesrv.operations.logs_to_rows.clocks import ANY, AT, LogClock, Mark, compared, solve
from nemesrv.operations.logs_to_rows.line import Line
from nemesrv.operations.logs_to_rows.marks import marks_of
from nemesrv.operations.logs_to_rows.sources import BROKER, Source

OLD, NEW = "10.0.1.1:9876", "10.0.1.2:9876"
STARTED_S = {"broker-a": 0.0, "broker-b": 11.0, "broker-c": 19.0}
CHANGED_S = {"broker-a": 240.0, "broker-b": 221.0, "broker-c": 259.0}
"""A list that changed: each hears of it at a time of its own, and registers with the other NameServer."""


def first(node: str, at_s: float, address: str) -> Mark:
    return Mark(f"first {node}{AT}{address}", at_s * 1000, 5.0)


def line(at_s: float, event: str, **fields: str) -> Line:
    return Line("broker.log", "", 1, at_s * 1000, 1000, None, "main", "java-server", event, fields)


def clock(name: str, marks: list[Mark]) -> LogClock:
    return LogClock(name, 1, marks, min(mark.at_ms for mark in marks), max(mark.at_ms for mark in marks))


def broker(node: str) -> LogClock:
    shared = [Mark(f"client {client}", at_s * 1000, 3.0) for client, at_s in (("p", 33.0), ("q", 90.5), ("r", 127.0))]
    return clock(node, [first(node, STARTED_S[node], OLD), first(node, CHANGED_S[node], NEW), *shared])


def name_server(name: str, times: dict[str, float]) -> LogClock:
    return clock(name, [first(node, at_s, ANY) for node, at_s in times.items()])


def test_a_name_server_that_fits_at_two_addresses_by_two_clocks_is_unsure() -> None:
    one = compared(broker("broker-a"), name_server("ns-1", {"broker-a": CHANGED_S["broker-a"]}))
    assert one is not None
    assert one.certainty == "unsure"


def test_who_is_listed_only_after_the_change_is_not_put_to_the_start() -> None:
    clocks = [*map(broker, STARTED_S), name_server("ns-0", STARTED_S), name_server("ns-1", CHANGED_S)]
    assert solve(clocks) == []
    assert {one.name: one.shift_ms for one in clocks} == pytest.approx(dict.fromkeys([*STARTED_S, "ns-0", "ns-1"], 0.0))


def test_an_address_has_one_log() -> None:
    one = compared(broker("broker-a"), name_server("ns-1", {"broker-a": CHANGED_S["broker-a"]}), taken={OLD})
    assert one is not None
    assert (one.address, one.shift_ms) == (NEW, 0.0)


def test_a_clock_is_pinned_by_what_does_not_recur() -> None:
    recurring = [Mark("reg", at_s * 1000, 1.0) for at_s in range(0, 300, 30)]
    pinned = [*recurring, Mark("first", 17_000.0, 5.0)]
    for marks, is_pinned in ((recurring, False), (pinned, True)):
        pair = compared(clock("one", marks), clock("other", marks))
        assert pair is not None
        assert pair.pinned is is_pinned


def test_what_was_held_and_comes_all_at_once_says_one_thing() -> None:
    """A broker that hung sees the channels of three minutes open and end in one second; the client's log has each."""
    shared = [Mark("topic orders", 20_000.0, 5.0), Mark("topic bills", 61_000.0, 5.0), Mark("topic tax", 83_000.0, 5.0)]
    tries = [Mark(key, (100 + 10 * n) * 1000, 3.0) for n in range(18) for key in ("conn h>b", "disc h>b")]
    burst = [Mark(key, 290_000.0, 3.0) for _ in range(18) for key in ("conn h>b", "disc h>b")]
    one, other = clock("broker-a", [*shared, *burst]), clock("producer-0", [*shared, *tries])
    assert solve([one, other]) == []
    assert other.shift_ms == one.shift_ms


def test_what_a_server_that_stood_still_tells_all_at_once_is_of_no_moment() -> None:
    """It goes on at 300 s: the client had dialled it in vain each 6 s, and dials it again at 309 s."""
    booted = line(10.0, "broker_boot", broker="broker-a", address="10.0.2.5:10911")
    dials = [line(at_s, "channel_active", address="10.0.3.4:5511") for at_s in (80.0, *[300.0] * 12, 309.0)]
    told = marks_of(Source("broker-a", BROKER, lines=[booted, *dials]), Book())
    assert [(mark.key, mark.at_ms) for mark in told] == [
        ("conn 10.0.3.4>10.0.2.5:10911", 80_500.0),
        ("conn 10.0.3.4>10.0.2.5:10911", 309_500.0),
    ]


def test_two_tries_that_fall_together_make_no_clock_known() -> None:
    tries = [Mark("conn h>b", at_s * 1000, 3.0) for at_s in (100, 131, 170)]
    seen = [Mark("conn h>b", at_s * 1000, 3.0) for at_s in (417, 448)]
    pair = compared(clock("producer-0", tries), clock("broker-a", seen))
    assert pair is not None
    assert pair.certainty == "unsure"


def test_of_two_addresses_at_which_a_log_fits_it_has_that_by_which_its_clock_is_right() -> None:
    """Its log has what the list of the start had, 120 s later."""
    at_start = [first(node, at_s, OLD) for node, at_s in STARTED_S.items()]
    later = [first(node, at_s + 120, NEW) for node, at_s in STARTED_S.items()]
    diallers = clock("diallers", [*at_start, Mark(f"conn x{AT}{OLD}", 7_000.0, 3.0), *later])
    server = clock("ns-1", [first(node, at_s + 120, ANY) for node, at_s in STARTED_S.items()])
    server.marks = [*server.marks, Mark(f"conn x{AT}{ANY}", 127_000.0, 3.0)]
    one = compared(diallers, server)
    assert one is not None
    assert (one.address, one.shift_ms) == (NEW, 0.0)


def dialled(*brokers: str, at_s: float) -> list[Mark]:
    return [Mark(f"conn h>{broker}", at_s * 1000, 3.0) for broker in brokers]


def test_a_client_that_dials_three_brokers_in_one_moment_is_known_by_it() -> None:
    """Each broker's log has the client once: nothing else in these logs is like its start."""
    brokers = clock("brokers", dialled("a", "b", "c", at_s=87.5))
    pair = compared(brokers, clock("consumer-0", dialled("a", "b", "c", at_s=9971.4)))
    assert pair is not None
    assert (pair.shift_ms, pair.certainty) == (pytest.approx(9_883_900.0), "likely")


def test_hours_between_a_log_with_its_zone_and_one_without_are_the_zone_of_the_one_without() -> None:
    """A client's own log says no zone: it was written in UTC, and the NameServer's in +08:00."""
    hours_ms = 8 * 3_600_000.0
    client, server = (clock(name, dialled("a", "b", "c", at_s=87.5)) for name in ("consumer-0", "ns-0"))
    client.marks = [mark._replace(at_ms=mark.at_ms - hours_ms) for mark in client.marks]
    client.first_ms, client.last_ms, server.zoned = client.first_ms - hours_ms, client.last_ms - hours_ms, True
    assert solve([client, server]) == []
    assert (client.shift_ms, server.shift_ms) == pytest.approx((-hours_ms, 0.0))


def test_registrations_of_three_brokers_that_fall_together_are_no_start() -> None:
    recurring = [Mark(f"reg {n}", (30 * turn + n) * 1000, 1.0) for turn in range(6) for n in range(3)]
    gap = Mark("first 0", 137_000.0, 5.0)
    ahead = [mark._replace(at_ms=mark.at_ms + 97_000.0) for mark in recurring]
    pair = compared(clock("ns-0", [*recurring, gap]), clock("broker-a", ahead))
    assert pair is not None
    assert pair.certainty == "unsure"


HEARD_OF = [("~told-", "~heard-", 100.0, 117.0), ("~told+", "~heard+", 190.0, 207.0)]
"""What a NameServer told, and what a client heard of it 17 s later, by the true time."""


def test_of_two_dials_the_one_is_meant_by_which_the_client_heard_within_a_poll() -> None:
    """Its zone is likely; within what polls leave open the dial is the better guess."""
    ahead_s = 7_204.0
    others = [Mark(f"{told}b", at_s * 1000) for told, _, at_s, _ in HEARD_OF]
    mine = [Mark(f"{heard}b", (at_s + ahead_s) * 1000) for _, heard, _, at_s in HEARD_OF]
    dials = [Mark("conn h>b", (at_s + ahead_s) * 1000, 3.0) for at_s in (160, 208)]
    servers = clock("servers", [*others, Mark("conn h>b", 208_000.0, 3.0)])
    pair = compared(servers, clock("consumer-0", [*mine, *dials]))
    assert pair is not None
    assert (pair.shift_ms, pair.certainty) == (pytest.approx(1000 * ahead_s), "likely")
    assert pair.bound_ms > 30_000
