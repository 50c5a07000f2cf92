"""What a NameServer's table must hold, and when: obligations of small worlds, without Spark."""

import math
from dataclasses import replace

import pytest

from nemesrv.chaos.oracle.link import link_causes, process_causes, timers_of_rounds
from nemesrv.chaos.oracle.lists import in_use
from nemesrv.chaos.oracle.promises import ObligationKind, obligations
from nemesrv.chaos.oracle.recorded import STOOD_STILL, Fault, Life, NodeInfo, Served
from nemesrv.chaos.oracle.windows import Timers
from nemesrv.chaos.oracle.world import World
from tests.chaos.builder import cluster

LINK = ("black_hole", "toxiproxy.bandwidth.rate=0", "broker-a", "ns-0", "both")
KILL = ("kill", "sigkill", "broker-a", None, None)
LOSS = ("packet_loss", "packet_loss", "broker-a", "ns-0", "both")


def fault(kind: tuple[str, str, str, str | None, str | None], start_s: float, end_s: float = math.inf) -> Fault:
    return Fault(kind[0], *kind, start_s * 1000, end_s * 1000)


def world(*faults: Fault, lives: tuple[tuple[str, float, float], ...] = (), end_s: float = 600) -> World:
    """ns-0 and broker-a, both alive from 0 s on unless `lives` says otherwise."""
    lives = lives or (("ns-0", 0, math.inf), ("broker-a", 0, math.inf))
    numbers: dict[str, int] = {}
    made = []
    for node, start_s, stop_s in lives:
        made.append(Life(node, numbers.setdefault(node, 0), start_s * 1000, stop_s * 1000))
        numbers[node] += 1
    return World(
        timers=Timers(),
        nodes=(NodeInfo("ns-0", "name_server", "127.0.0.1:9876"), NodeInfo("broker-a", "broker", "127.0.0.1:10911")),
        lives=tuple(made),
        faults=tuple(sorted(faults, key=lambda f: f.start_ms)),
        end_ms=end_s * 1000,
    )


def demanded(world_: World) -> list[tuple[str, float, float]]:
    return [(str(o.demand), o.from_ms / 1000, o.to_ms / 1000) for o in obligations(world_)]


ALWAYS = (0, math.inf)
RUNS = ("ns-0", *ALWAYS)
PAUSE = ("pause", "sigstop", "ns-0", None, None)
STOP = ("stop", "sigterm", "broker-a", None, None)
RESET = ("reset", "toxiproxy.reset_peer", "broker-a", "ns-0", "both")
LITTLE = Fault("f", "latency", "toxiproxy.latency", "broker-a", "ns-0", "both", 100_000, 300_000, {"latency_ms": 50})
DEMANDED: dict[str, tuple[World, list[tuple[str, float, float]]]] = {
    "in peace the broker is held from R + C on": (world(), [("return", 33, 600)]),
    "a crash empties the table at once, and a restart fills it within R + C": (
        world(fault(KILL, 100, 190), lives=(RUNS, ("broker-a", 0, 100), ("broker-a", 190.5, math.inf))),
        [("return", 33, 100), ("drop", 100, 190.5), ("return", 223.5, 600)],
    ),
    "a silent broker is kept for E - R and gone after E + S": (
        world(fault(LINK, 100, 300)),
        [("return", 33, 100), ("keep", 100, 190), ("drop", 230, 300), ("return", 333, 600)],
    ),
    "a short silence demands nothing but that the broker is kept until the heal": (
        world(fault(LINK, 100, 120)),
        [("return", 33, 100), ("keep", 100, 120), ("return", 153, 600)],
    ),
    # behind the registration that it gave up comes the old channel's close, and the new one's registration is gone; the
    # kernel waits for as long as packets were lost, then R + C
    "a broker whose packets were lost may be dropped until its kernel has sent again": (
        world(fault(LOSS, 100, 130)),
        [("return", 33, 100), ("keep", 100, 130), ("return", 193, 600)],
    ),
    "a NameServer started again is empty, and owes nothing to the time before": (
        world(
            fault(("kill", "sigkill", "ns-0", None, None), 100, 149),
            lives=(("ns-0", 0, 100), ("ns-0", 150, math.inf), ("broker-a", *ALWAYS)),
        ),
        [("return", 33, 100), ("return", 183, 600)],
    ),
    "nothing is demanded of a paused NameServer until it could catch up": (
        world(fault(PAUSE, 100, 200)),
        [("return", 33, 100), ("return", 233, 600)],
    ),
    "a pause of it that no registration outlasts is not noticed": (
        world(fault(PAUSE, 100, 103)), [("return", 33, 600)],
    ),
    "one that is a second longer is": (
        world(fault(PAUSE, 100, 104)), [("return", 33, 100), ("return", 137, 600)],
    ),
    "a clean stop may have unregistered before it is recorded": (
        world(fault(STOP, 100), lives=(RUNS, ("broker-a", 0, 100))),
        [("return", 33, 97), ("drop", 100, 600)],
    ),
    "the end of the run is no fault": (
        world(lives=(("ns-0", 0, 601), ("broker-a", 0, 601))), [("return", 33, 600)],
    ),
    "a link that resets loses the broker with its next registration and never lets it in": (
        world(fault(RESET, 100, 300)),
        [("return", 33, 100), ("drop", 130, 300), ("return", 333, 600)],
    ),
    "a little latency changes nothing": (world(LITTLE), [("return", 33, 600)]),
}  # fmt: skip


@pytest.mark.parametrize("what", DEMANDED)
def test_what_is_demanded_of_the_table(what: str) -> None:
    of, demands = DEMANDED[what]
    assert demanded(of) == demands


@pytest.mark.parametrize(("off_s", "formula"), [(300, "N + R + C"), (60, "N + R + C + R, for a registration")])
def test_a_broker_may_meet_the_idle_close_of_its_old_channel(off_s: int, formula: str) -> None:
    builder = cluster(name_server_list=["ns-0", "ns-1"])
    for at_s, names in ((200, ["ns-1"]), (200 + off_s, ["ns-0", "ns-1"])):
        builder.at(at_s).event("harness", "served_list", value=names)
    back = [one for one in obligations(builder.end(900).facts()[1]) if one.from_ms > 200_000 and one.demand == "return"]
    assert {one.window.formula.partition(" that")[0] for one in back if one.name_server == "ns-0"} == {formula}


@pytest.mark.parametrize("node", ["ns-0", "broker-a"])
def test_while_it_is_silent_a_machine_that_stands_still_takes_no_promise_away(node: str) -> None:
    stall = ("stood-still-1", STOOD_STILL, node, None, None)
    assert demanded(world(fault(LINK, 100, 300), fault(stall, 150, 170))) == demanded(world(fault(LINK, 100, 300)))
    begins = demanded(world(fault(LINK, 100, 300), fault(stall, 290, 310)))
    assert begins == [("return", 33, 100), ("keep", 100, 190), ("drop", 230, 290), ("return", 343, 600)]


@pytest.mark.parametrize(("asks_first_ms", "held"), [(None, [("return", 33, 600)]), (24_000.0, [])])
def test_a_broker_that_hears_no_answer_registers_all_the_same_unless_it_asks_first(
    asks_first_ms: float | None, held: list[tuple[str, float, float]]
) -> None:
    deaf = fault(("black_hole", "toxiproxy.bandwidth.rate=0", "broker-a", "ns-0", "downstream"), 0)
    of = world(deaf)
    assert demanded(replace(of, timers=replace(of.timers, Z=False, F_ms=asks_first_ms))) == held


OF_BROKER = (("ns-0", 0, math.inf), ("broker-a", 0, 150))


@pytest.mark.parametrize(
    ("faults", "lives", "alone"),
    [
        # before the broker is sure to be back; over one another; what the kernel sends again comes meanwhile
        ((fault(LINK, 100, 120), fault(LINK, 130, 400)), (), [("keep", 100, 120), ("return", 433, 600)]),
        ((fault(LINK, 100, 400), fault(KILL, 150)), OF_BROKER, [("keep", 100, 150)]),
        ((fault(LOSS, 100, 130), fault(KILL, 150)), OF_BROKER, [("keep", 100, 130)]),
    ],
)
def test_where_faults_meet_nothing_is_promised_until_the_broker_is_sure_to_be_back(
    faults: tuple[Fault, ...], lives: tuple[tuple[str, float, float], ...], alone: list[tuple[str, float, float]]
) -> None:
    met = [replace(one, fault_id=f"{number}") for number, one in enumerate(faults)]
    assert demanded(world(*met, lives=lives)) == [("return", 33, 100), *alone]


def test_a_name_server_that_joins_is_told_of_by_whoever_has_not_fetched_the_list_that_names_it() -> None:
    lives = (("ns-0", 110, math.inf), ("broker-a", 0, math.inf))
    served = (Served(-math.inf, ("ns-1",), ""), Served(100_000, ("ns-0", "ns-1"), "list-1"))
    assert demanded(replace(world(lives=lives), served=served)) == [("return", 100 + 120 + 3 + 33, 600)]


def test_a_pause_of_a_broker_that_may_not_have_fetched_its_new_list_hastens_nothing() -> None:
    served = (Served(-math.inf, ("ns-1",), ""), Served(100_000, ("ns-0", "ns-1"), "list-1"))
    paused = world(fault(("pause", "sigstop", "broker-a", None, None), 101, 105))
    assert [one for one in demanded(replace(paused, served=served)) if one[0] == "return"] == [("return", 261, 600)]


def test_a_list_of_name_servers_that_is_fetched_takes_no_broker_from_a_client() -> None:
    served = (Served(-math.inf, ("ns-0",), ""), Served(100_000, ("ns-1",), "list-1"))
    client = NodeInfo("producer-0", "producer", None)
    fetches = replace(world(), served=served, nodes=(*world().nodes, client))
    assert link_causes(fetches, "producer-0", "broker-a") == []
    assert [one.start_ms for one in link_causes(fetches, "producer-0", "ns-0")] == [100_000]


def test_a_list_that_is_only_in_another_order_is_not_taken() -> None:
    own = Served(-math.inf, ("ns-0", "ns-1"), "")
    other = Served(100_000, ("ns-1", "ns-0"), "list-1")
    shorter = Served(300_000, ("ns-1",), "list-2")
    fetches = replace(world(), served=(own, other, shorter))
    assert list(in_use(fetches, "broker-a", 250_000, 260_000)) == [own, other]
    assert list(in_use(fetches, "broker-a", 450_000, 460_000)) == [shorter]


@pytest.mark.parametrize(("expiry_s", "round_s"), [(120, 30), (10, 34)])
def test_a_broker_held_up_at_its_start_is_back_with_its_second_round(expiry_s: int, round_s: int) -> None:
    """An acting master's first heartbeat comes after the 24 s that its first round waits for the one that hangs."""
    hangs = world(fault(PAUSE, 100, 200))
    hangs = replace(hangs, timers=hangs.timers.with_(B_ms=24_000, E_ms=1000 * expiry_s))
    assert timers_of_rounds(hangs, "broker-a", "ns-0").R_ms == 1000 * round_s


@pytest.mark.parametrize("asked_s", [None, 99])
def test_a_broker_may_register_with_a_name_server_that_starts_while_it_stops(asked_s: float | None) -> None:
    stop = fault(STOP, 100)
    asked = stop if asked_s is None else replace(stop, value={"asked_ms": asked_s * 1000})
    lives = (("ns-0", 98, math.inf), ("broker-a", 0, 100))
    assert [from_s for kind, from_s, _ in demanded(world(asked, lives=lives)) if kind == "drop"] == [100.0]


@pytest.mark.parametrize("injection", ["toxiproxy.bandwidth", "toxiproxy.latency", "the sun"])
def test_where_the_table_bounds_nothing_nothing_is_demanded(injection: str) -> None:
    kind = ("latency", injection, "broker-a", "ns-0", "both")
    assert demanded(world(fault(kind, 100, 300))) == [("return", 33, 100), ("return", 333, 600)]


DEAF = ("black_hole", "toxiproxy.bandwidth.rate=0", "broker-a", "ns-0", "downstream")


@pytest.mark.parametrize("kind", [(*RESET[:4], "downstream"), DEAF])
def test_nothing_is_promised_of_a_broker_without_answers(kind: tuple[str, str, str, str | None, str | None]) -> None:
    assert demanded(world(fault(kind, 100, 300))) == [("return", 33, 100), ("return", 333, 600)]


def test_without_close_on_timeout_a_broker_that_gets_no_answers_is_never_dropped() -> None:
    deaf = replace(world(fault(DEAF, 100, 300)), timers=Timers(Z=False))
    assert demanded(deaf) == [("return", 33, 600)]


def slow(latency_ms: float, jitter_ms: float = 0, stream: str = "both") -> World:
    numbers = {"latency_ms": latency_ms, "jitter_ms": jitter_ms}
    kind = ("f", "latency", "toxiproxy.latency", "broker-a", "ns-0", stream)
    return world(Fault(*kind, 100_000, 300_000, numbers))


def test_a_round_trip_below_the_connect_time_out_changes_nothing() -> None:
    assert demanded(slow(1_200)) == demanded(slow(2_900, stream="upstream")) == [("return", 33, 600)]


@pytest.mark.parametrize(("beats_ms", "held"), [(None, [(35, 600)]), (1_000.0, [(35, 100), (335, 600)])])
def test_a_question_that_runs_out_closes_the_channel(beats_ms: float | None, held: list[tuple[float, float]]) -> None:
    """The question waits 3 s, a registration and a connect longer (random seed 1679121)."""
    of = slow(2_000)
    timers = replace(of.timers, C_ms=5_000.0, B_ms=6_000.0, h_ms=beats_ms)
    assert [(a, b) for what, a, b in demanded(replace(of, timers=timers)) if what == "return"] == held


@pytest.mark.parametrize("link", [slow(4_000), slow(2_000, 1_500)])
def test_a_round_trip_that_may_be_longer_than_the_registration_waits_decides_nothing(link: World) -> None:
    assert demanded(link) == [("return", 33, 100), ("return", 333, 600)]


def test_two_latencies_of_one_link_add_up() -> None:
    def latency(name: str, from_ms: float, latency_ms: float, stream: str) -> Fault:
        of = (name, "latency", "toxiproxy.latency", "broker-a", "ns-0", stream)
        return Fault(*of, from_ms, 300_000, {"latency_ms": latency_ms})

    little, more = latency("f", 100_000, 600, "both"), latency("g", 150_000, 2_000, "downstream")
    assert demanded(world(little)) == demanded(world(more)) == [("return", 33, 600)]
    assert demanded(world(little, more)) == [("return", 33, 150), ("return", 333, 600)]


def test_an_obligation_names_the_fault_it_comes_from() -> None:
    found = obligations(world(fault(LINK, 100, 300)))
    assert [(o.demand, str(o.label)) for o in found[1:]] == [
        (ObligationKind.KEEP, "black_hole start"),
        (ObligationKind.DROP, "black_hole start"),
        (ObligationKind.RETURN, "black_hole end"),
    ]


@pytest.mark.parametrize(("asked_s", "began_s"), [(87, 87), (99.9, 99.9), (None, 94)])
def test_a_clean_stop_began_when_asked_or_as_it_unregistered(asked_s: float | None, began_s: float) -> None:
    """Apache's broker 5.3.3 told two NameServers, and its process ended 13 s later."""
    value = None if asked_s is None else {"asked_ms": asked_s * 1000}
    told = cluster(name_servers=2, brokers=("broker-a",)).at(100).fault("s", "stop", "sigterm", "broker-a", value=value)
    stop, *_ = process_causes(told.end(200).facts()[1], "broker-a")
    assert stop.start_ms == began_s * 1000
    assert stop.start_ms + stop.begins_late_ms == 100_000


@pytest.mark.parametrize(("h_ms", "kept"), [(None, True), (1_000.0, False)])
def test_a_short_pause_is_unnoticed_unless_brokers_ask_each_second(h_ms: float | None, kept: bool) -> None:
    hangs = world(fault(PAUSE, 100, 105))
    timers = Timers.for_profile("5.x", **({} if h_ms is None else {"h_ms": h_ms}))
    assert (demanded(replace(hangs, timers=timers)) == [("return", 33, 600)]) == kept
