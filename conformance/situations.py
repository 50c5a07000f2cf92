"""The situations for a program under test, and the observations of each of its processes.

Situations run in parallel, with one process each (two if queues change owners). If chance decides the result, a
situation runs `times` times.

    starts   many processes, each until its first route        everything else: one stand of its own, for `for_s`
    steps    at_s after the process is at work (its first look-up was answered with a route); None: before it starts

A situation defines only what happens: rules (rules/) measure the client, and profiles have the expected values. A step
is executed at `at_s`, or after the poll that follows (`after_poll`). Most situations take a little more than two polls,
because every known client polls its routes each 30 s.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeVar

from ..chaos.fronts.behaviour import (
    BLACK_HOLE,
    CLOSES_EACH,
    CLOSES_ONCE,
    DROPS_SYNS,
    PASSES,
    REFUSES,
    RESETS_ONCE,
    SILENT,
    Behaviour,
)
from ..chaos.fronts.observed import Answered, Asked, Behaved, Observation
from ..chaos.fronts.rows import SENDS
from ..chaos.oracle.choosing.labels import Label

GET_ROUTEINFO = 105
SYSTEM_ERROR, SERVICE_NOT_AVAILABLE, TOPIC_NOT_EXIST = 1, 14, 17
LIST_PERIOD_S = 120.0
"""A Java client asks for its list by HTTP after 10 s and then each 120 s; Go does the same."""


class Target(StrEnum):
    """The servers, the list or the process on which a step acts."""

    CHOSEN = "the NameServer that answered the last look-up (with a route, where it knows one)"
    FIRST = "the first NameServer of the list"
    SECOND = "the second NameServer of the list"
    OTHERS = "every NameServer but the one that answered the last look-up"
    NAME_SERVERS = "every NameServer"
    BROKER = "the broker that was used last"
    LIST = "the address server's list, which loses the NameServer in use and gains another"
    CLIENT = "the second process of the program"


HANGS_S = 130.0
"""Long enough to see the poll after 90 s: a client may close a connection after 60 s without an answer (ons-client)."""
AFTER_POLL_S = 110.0
"""For a situation whose step waits for a poll: clients poll each 30 s, and 60 s after the step must be observed."""
POLL_LIMIT_S = 42.0
"""Longest wait for a poll."""
POLL_OVER_S = 0.5
"""A poll is over when no look-up followed for this time."""
QUEUES = 4
"""Number of queues of the topic at each broker."""
KILL, STOP, RESTART, NAME_SERVER_LIST = "kill", "stop", "restart", "name_server_list"
"""Steps that no front can do, in a timeline's words (chaos/faults/kinds.py)."""


@dataclass(frozen=True, slots=True)
class SituationStep:
    at_s: float | None
    """Seconds after the program has begun to work; None: before the program starts."""
    target: Target
    behaviour: Behaviour | None = None
    """The fronts' behaviour after this step; None if the step changes no front."""
    do: str | None = None
    after_poll: bool = False
    """Wait then for the end of the client's next poll: a client that has a whole interval before it needs longest to
    leave a server."""

    def changes(
        self, name_servers: Sequence[str], brokers: Sequence[str], answered_last: str | None, used_last: str | None
    ) -> list[tuple[str, Behaviour]]:
        """Return the new behaviour of each front (the proxy before a server) that the step changes. If no server was
        used yet, the step changes the front of the first NameServer or broker."""
        if self.behaviour is None:
            return []
        chosen = answered_last or name_servers[0]
        meant = {
            Target.CHOSEN: [chosen],
            Target.FIRST: name_servers[:1],
            Target.SECOND: name_servers[1:2],
            Target.OTHERS: [name for name in name_servers if name != chosen],
            Target.NAME_SERVERS: name_servers,
            Target.BROKER: [used_last or brokers[0]],
        }[self.target]
        if self.behaviour.without:  # a route without a broker is NameServers' to give
            named = replace(self.behaviour, without=frozenset(meant))
            return [(name, named) for name in name_servers]
        return [(name, self.behaviour) for name in meant]


class Role(StrEnum):
    """Tells the program, in the environment variable NEMESRV_ROLE, whether to send or to consume. A program may ignore
    NEMESRV_ROLE."""

    PRODUCER = "producer"
    CONSUMER = "consumer"


@dataclass(frozen=True, slots=True)
class Situation:
    name: str
    says: str
    for_s: float
    """How long a process runs after it works."""
    steps: tuple[SituationStep, ...] = ()
    role: Role = Role.PRODUCER
    processes: int = 1
    many: bool = False
    """`--starts` processes, each on its own stand."""
    times: int = 1
    """How often the situation is run, each time on its own stand; multiplied by `--repeats`."""
    name_servers: int | None = None
    """Number of NameServers, if not `--name-servers`."""
    by_http: bool = False
    """The list is served by HTTP, if the program takes it."""
    has_topic: bool = True
    """The brokers have the topic; otherwise the NameServers have no route of it."""
    read_only: bool = False
    """The brokers have brokerPermission=4: no queue of the route may be written."""
    is_fine: bool = False
    """The situation measures milliseconds, so no other process may start at the same time."""


def _dies(name: str, says: str, behaviour: Behaviour, *, for_s: float = AFTER_POLL_S) -> Situation:
    steps = (SituationStep(5.0, Target.CHOSEN, behaviour, after_poll=True),)
    return Situation(name, f"after a route poll the NameServer in use {says}", for_s, steps)


def _chosen(name: str, says: str, behaviour: Behaviour, *, for_s: float = 75.0) -> Situation:
    steps = (SituationStep(5.0, Target.CHOSEN, behaviour),)
    return Situation(name, f"5 s after the start the NameServer in use {says}", for_s, steps)


def _broker(
    name: str,
    says: str,
    behaviour: Behaviour | None,
    *more: SituationStep,
    for_s: float = 75.0,
    after_poll: bool = False,
) -> Situation:
    step = SituationStep(8.0, Target.BROKER, behaviour, None if behaviour else KILL, after_poll)
    when = "after a route poll" if after_poll else "8 s after the start"
    return Situation(name, f"{when} the broker in use {says}", for_s, (step, *more))


def _one_of_two_consumers(name: str, says: str, do: str) -> Situation:
    steps = (SituationStep(40.0, Target.CLIENT, do=do),)
    return Situation(name, f"one of two consumers of a group is {says} after 40 s", 90.0, steps, Role.CONSUMER, 2)


_ALL: tuple[Situation, ...] = (
    Situation("starts", "many processes start, one after the other", 0.5, many=True),
    Situation("quiet", "nothing happens", 100.0, is_fine=True),
    Situation(
        "slow",
        "every NameServer answers look-ups after 1 s",
        100.0,
        is_fine=True,
        steps=(SituationStep(None, Target.NAME_SERVERS, Behaviour(delay_ms=1000.0)),),
    ),
    Situation(
        "read_only",
        "the brokers are read-only (brokerPermission=4), so each send looks up the route, and gets the route",
        25.0,
        read_only=True,
    ),
    _dies("refused", "closes its connections and refuses new ones", REFUSES),
    _dies("syn_dropped", "closes its connections and drops SYNs", DROPS_SYNS),
    _dies("black_hole", "answers nothing on its connections, and drops SYNs", BLACK_HOLE, for_s=HANGS_S),
    _dies("silent", "accepts and never answers", SILENT, for_s=HANGS_S),
    _chosen("closed", "closes its connections once", CLOSES_ONCE, for_s=130.0),  # who goes back after 60 s has done so
    _chosen("reset", "resets its connections once", RESETS_ONCE),
    _dies("closes_each", "closes each connection as soon as it is accepted", CLOSES_EACH),
    _chosen("error_code", "answers look-ups with SYSTEM_ERROR 1", Behaviour(codes={GET_ROUTEINFO: SYSTEM_ERROR})),
    _chosen(
        "topic_not_exist", "answers look-ups with TOPIC_NOT_EXIST 17", Behaviour(codes={GET_ROUTEINFO: TOPIC_NOT_EXIST})
    ),
    Situation(
        "one_dead",
        "of two NameServers the first is silent from the beginning",
        130.0,
        steps=(SituationStep(None, Target.FIRST, SILENT),),
        name_servers=2,
    ),
    Situation(
        "one_unreachable",
        "neither of two NameServers has a route of the topic, so each send asks; 5 s after the start the NameServer in "
        "use closes its connections and refuses for 1 s, and the other NameServer drops SYNs (apache/rocketmq#7056)",
        29.0,  # three look-ups of 6 s, Go's, and before the second round of anybody's poll
        steps=(
            SituationStep(5.0, Target.OTHERS, DROPS_SYNS),
            SituationStep(5.0, Target.CHOSEN, REFUSES),
            SituationStep(6.0, Target.CHOSEN, PASSES),
        ),
        name_servers=2,
        has_topic=False,
    ),
    Situation(
        "all_gone",
        "5 s after the start each of four NameServers refuses; 65 s later the second is back",
        195.0,  # a client that tries one of four a poll comes round to it in four polls
        times=5,  # such a client shows 2 to 5 steps each time, and `next` and `list_order` need 10
        steps=(SituationStep(5.0, Target.NAME_SERVERS, REFUSES), SituationStep(70.0, Target.SECOND, PASSES)),
        name_servers=4,
    ),
    Situation("empty", "no NameServer knows a route of the topic", 15.0, has_topic=False),
    Situation(
        "list_changes",
        "the NameServer in use leaves the list by HTTP, and another NameServer joins the list",
        2 * LIST_PERIOD_S - 60.0,
        steps=(SituationStep(20.0, Target.LIST, do=NAME_SERVER_LIST),),
        by_http=True,
    ),
    _broker("broker_killed", "dies", None, for_s=AFTER_POLL_S, after_poll=True),
    _broker("broker_silent", "stops answering; its route stays", SILENT),
    _broker("broker_refuses", "refuses; its route stays", REFUSES),
    _broker("broker_unreachable", "is cut off: silence and dropped SYNs; its route stays", BLACK_HOLE),
    _broker(
        "broker_busy",
        "answers sends with SERVICE_NOT_AVAILABLE 14",
        Behaviour(codes=dict.fromkeys(SENDS, SERVICE_NOT_AVAILABLE)),
        for_s=30.0,
    ),
    # the behaviour's `without` is the broker's name, which the step fills in
    _broker(
        "route_changes",
        "leaves the route and goes on serving",
        Behaviour(without=frozenset({"*"})),
        for_s=AFTER_POLL_S,
        after_poll=True,
    ),
    _broker(
        "broker_returns",
        "dies; 30 s later it is back",
        None,
        SituationStep(38.0, Target.BROKER, do=RESTART),
        for_s=110.0,
    ),
    _one_of_two_consumers("consumer_dies", "killed", KILL),
    _one_of_two_consumers("consumer_stops", "stopped", STOP),
)

SITUATIONS: Mapping[str, Situation] = {situation.name: situation for situation in _ALL}


class RouteAnswers:
    """Distinguishes answers to route look-ups from all other observations."""

    def __init__(self) -> None:
        self._asked: set[tuple[int, int]] = set()

    def answer(self, seen: Observation) -> Answered | None:
        """Return `seen` if it is the answer to a route look-up, else None."""
        if isinstance(seen, Asked) and seen.code == GET_ROUTEINFO:
            self._asked.add((seen.connection, seen.opaque))
        elif isinstance(seen, Answered) and (seen.connection, seen.opaque) in self._asked:
            self._asked.remove((seen.connection, seen.opaque))
            return seen
        return None


def slowest_answer_ms(seen: Iterable[Observation]) -> float:
    """Return how long the slowest look-up waited for its answer, without the delay of its front. An answer passes the
    event loop several times, so it can be later than the loop ever was."""
    asked_ms: dict[tuple[int, int], float] = {}
    delay_ms: dict[str, float] = {}
    slowest_ms = 0.0
    for one in seen:
        if isinstance(one, Behaved):
            delay_ms[one.front] = one.behaviour.delay_ms
        elif isinstance(one, Asked) and one.code == GET_ROUTEINFO:
            asked_ms[one.connection, one.opaque] = one.at_ms
        elif isinstance(one, Answered) and (one.connection, one.opaque) in asked_ms:
            waited_ms = one.at_ms - asked_ms.pop((one.connection, one.opaque))
            slowest_ms = max(slowest_ms, waited_ms - delay_ms.get(one.front, 0.0))
    return slowest_ms


Seen = TypeVar("Seen", bound=Observation)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """Observations of one process in one situation. All times are milliseconds on nemesrv's clock."""

    situation: str
    number: int
    """Number of the process in the situation, from 0; two consumers of one group share a stand."""
    name_servers: tuple[str, ...]
    """The fronts' names in the order of the program's list."""
    brokers: tuple[str, ...]
    topic: str
    process: int
    began_ms: float
    at_work_ms: float | None
    """Time of the first look-up that got a route; None if no look-up got a route."""
    stopping_ms: float
    """When the process was told to stop, or ended; later observations belong to the process's end."""
    ended_ms: float
    ended: str
    """How the process ended: "stopped", "killed" by the situation, "hung"; by itself: "exit 1", "signal 11"."""
    dials_unseen: str | None
    """Why `seen` has no connects; None if `seen` has connects."""
    late_ms: float = 0.0
    """Largest lateness of nemesrv's event loop or of an answer to a look-up, or longest stop (SIGSTOP) of the process:
    events may have been earlier by up to this time."""
    label: Label | None = None
    """The client's way of choosing NameServers, by all observations; None if not determined."""
    unclear: str = ""
    """Why the client cannot be told apart from another client in the process; "" if it can."""
    log: str = ""
    """Name of the process's log."""
    last_lines: tuple[str, ...] = ()
    """The end of what the process wrote."""
    memory: int = 0
    """Resident bytes of the first process when it worked; 0: not measured."""
    seen: tuple[Observation, ...]
    """The observations of this process, in order of time."""

    @property
    def ended_by_itself(self) -> bool:
        return self.ended not in ("stopped", "killed", "hung")

    def of(self, kind: type[Seen]) -> Iterator[Seen]:
        """Return the process's observations of one kind, in order of time."""
        return (one for one in self.seen if isinstance(one, kind))

    def example(self, at_ms: float | None = None, **what: Any) -> Mapping[str, Any]:
        """Return an example for a rule: `what`, and the time since the process began."""
        when = {} if at_ms is None else {"at_ms": round(at_ms - self.began_ms, 1)}
        return {"situation": self.situation, "process": self.number, **when, **what}
