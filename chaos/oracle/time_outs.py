"""How long each wait of a node may take before it times out, by the node's settings.

| wait                              | for                                                                            |
|-----------------------------------|--------------------------------------------------------------------------------|
| connect                           | C                                                                              |
| send, with all its tries          | T; one try but the last sendMsgMaxTimeoutPerRequest, if that is less (5.3.3)   |
| 105 of a NameServer               | A, its choice and the connect included; a client whose profile asks the next   |
|                                   | entry of its list after a silent one: A at each                                |
| 34, 35, 38, 29, 30 of a broker    | A; 30 of a producer, which probes, 200 ms                                      |
| 14, 36 of a broker                | 5 s                                                                            |
| 11, held up to 15 s at the broker | 30 s (`consumerTimeoutMillisWhenSuspend`)                                      |
| 103, 322 of a NameServer          | B; 104: 3 s                                                                    |
| next pull, put off                | after an error pullTimeDelayMillsWhenException; 50 ms while too much is in     |
|                                   | flight; 20 ms after code 2 of 5.x; 10 s after a wrong offset (4.9); 500 ms     |
|                                   | before the first (5.x)                                                         |
| held pull                         | as long as it asked, then until the next check: 5 s, or shortPollingTimeMills  |
| silent client                     | 120 s, then until the next scan: 10 s                                          |
| broker that was slow or failed    | notAvailableDuration, by latencyMax                                            |

Upstream: `NettyRemotingClient`, `DefaultMQProducerImpl`, `MQClientAPIImpl`, `DefaultMQPushConsumerImpl`,
`PullRequestHoldService`, `ClientHousekeepingService`, `LatencyFaultToleranceImpl`.

How a synchronous send is tried again, by its producer's own settings.

| one try ended with                                    | then                                                        |
|-------------------------------------------------------|-------------------------------------------------------------|
| SEND_OK                                               | the send is over                                            |
| stored, but not as safely (10, 11, 12)                | the same, unless retryAnotherBrokerWhenNotStoreOK           |
| no connection, no answer, no address                  | the next try, while there is time (T) and one is left       |
| codes 17, 14, 1, 16, 204, 205 (5.x: 2, 1500, too)     | the next try, likewise                                      |
| any other code                                        | the send is over                                            |

A send has 1 + retryTimesWhenSendFailed tries, and sendMsgTimeout for all of them together: whoever waited for an answer
as long as that has no time for another try. Upstream: `DefaultMQProducerImpl.sendDefaultImpl`.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

from ...remoting.codes import ResponseCode
from ...remoting.node.profile import Profile
from .client_profiles import Outcome
from .lists import fetches
from .timers import UNREGISTER_MS, Schedule
from .world import World

CONNECT, SEND = "connect", "send"
POLL, HEARTBEAT, PERSIST = "updateTopicRouteInfoFromNameServer", "sendHeartbeatToAllBroker", "persistAllConsumerOffset"
REBALANCE = "doRebalance"
OFFSET_CALL_MS = 5_000.0
"""Of calls about consumer offsets (`RemoteBrokerOffsetStore`, `MQClientAPIImpl`): no setting's."""
PULL_CALL_MS = 30_000.0
"""`consumerTimeoutMillisWhenSuspend`: no setting's."""
SUSPEND_MS = 15_000.0
"""`BROKER_SUSPEND_MAX_TIME_MILLIS`: no setting's."""
CLIENT_EXPIRED_MS = 120_000.0
"""`ClientManager.CHANNEL_EXPIRED_TIMEOUT`: no setting's."""
FAILURE_MS = {Profile.V4_9: 30_000.0, Profile.V5_X: 10_000.0}
"""The latency that a failed attempt counts as."""
_BY_API = ("GET_ROUTEINFO_BY_TOPIC", "HEART_BEAT", "UNREGISTER_CLIENT", "GET_CONSUMER_LIST_BY_GROUP")
ILLEGAL_OFFSET_MS = 10_000.0
"""How long a consumer of 4.9 waits after code 21 before the consumer gives the queue up: no setting's."""
_DELAYS_MS = {"flow_control": 50.0, "broker_flow_control": 20.0, "illegal_offset": ILLEGAL_OFFSET_MS}


def client_tasks(world: World, node: str, kind: str) -> tuple[Schedule, ...]:
    """What one thread of a client does at fixed rates; doRebalance has its own, which waits Qr after each round."""
    timers = world.timers_of(node)
    commit_ms = world.number(node, "persistConsumerOffsetInterval") if kind == "consumer" else 5_000.0
    row = "MQClientInstance: {} at a fixed rate, one thread for all"
    return (
        Schedule(POLL, "P", 10.0, timers.P_ms, row.format("polls each P"), shared=True),
        Schedule(HEARTBEAT, "H", 1_000.0, timers.H_ms, row.format("heartbeats each H"), shared=True),
        Schedule(PERSIST, "persistConsumerOffsetInterval", 10_000.0, commit_ms, row.format("commits"), shared=True),
        *fetches(world, node, row.format("fetches its list each N")),
    )


class Wait(NamedTuple):
    """For how long, and the setting that says so."""

    ms: float
    symbol: str


def time_out(world: World, node: str, kind: str, what: str) -> Wait | None:
    """Of a wait that ran out (`timed_out` rows, column f); None if it is not known here."""
    timers = world.timers_of(node)
    known = {CONNECT: Wait(timers.C_ms, "C")}
    if kind == "broker":
        known |= dict.fromkeys(("REGISTER_BROKER", "QUERY_DATA_VERSION"), Wait(timers.B_ms, "B"))
        known["UNREGISTER_BROKER"] = Wait(UNREGISTER_MS, "3 s")
        return known.get(what)
    of_api, is_producer = Wait(timers.A_ms, "A"), kind == "producer"
    offsets = ("GET_MAX_OFFSET", "SEARCH_OFFSET_BY_TIMESTAMP")
    known |= dict.fromkeys(_BY_API, of_api) | dict.fromkeys(offsets, Wait(200.0, "200 ms") if is_producer else of_api)
    known |= {SEND: Wait(timers.T_ms, "T")} if is_producer else {}
    known["QUERY_CONSUMER_OFFSET"] = Wait(OFFSET_CALL_MS, "5 s")
    known |= {"CONSUMER_SEND_MSG_BACK": Wait(5_000.0, "5 s"), "PULL_MESSAGE": Wait(PULL_CALL_MS, "30 s")}
    return known.get(what)


def look_up(world: World, client: str, entries: int) -> Wait:
    """The longest that a look-up takes which asked so many entries of the client's list."""
    timers = world.timers_of(client)
    if Outcome.NO_ANSWER in world.client_profile_of(client).retries:
        each = "C" if timers.C_ms > timers.A_ms else "A"  # of each entry a dial or an answer may not come
        return Wait(max(timers.A_ms, timers.C_ms) * max(entries, 1), f"{entries}·{each}")
    return Wait(max(timers.A_ms, timers.C_ms * entries), f"A, or {entries}·C")


class Avoidance(NamedTuple):
    """When producers avoid a broker, with sendLatencyFaultEnable."""

    slow_ms: float
    longest_ms: float


def tries(world: World, producer: str) -> int:
    """How many tries a send has: one, where a key chooses its queue (`sendSelectImpl`)."""
    return 1 if world.workload.get("ordered") else 1 + int(str(world.setting(producer, "retryTimesWhenSendFailed")))


def pull_delay(world: World, consumer: str, why: str) -> Wait | None:
    """For how long a queue's next pull is put off (`pull_delayed` rows)."""
    if why == "exception":
        name = "pullTimeDelayMillsWhenException"
        return Wait(world.number(consumer, name), name)
    delay_ms = _DELAYS_MS.get(why)
    return None if delay_ms is None else Wait(delay_ms, f"{delay_ms:g} ms")


def check_periods(world: World, broker: str, from_ms: float = -math.inf, to_ms: float = math.inf) -> list[Wait]:
    """How long after one check of held pulls the next may begin, by what the broker had in that time; the longest
    last."""
    is_long, name = world.values(broker, "longPollingEnable", from_ms, to_ms), "shortPollingTimeMills"
    found = {Wait(5_000.0, "5 s")} if any(is_long) else set()
    if not all(is_long):
        found |= {Wait(short_ms, name) for short_ms in world.numbers(broker, name, from_ms, to_ms)}
    return sorted(found)


def wakes(world: World, broker: str, from_ms: float = -math.inf, to_ms: float = math.inf) -> Wait:
    """For how long a message may lie in a queue before the pulls that wait for it are answered: without
    longPollingEnable until the next check (`DefaultMessageStore.ReputMessageService`)."""
    if all(world.values(broker, "longPollingEnable", from_ms, to_ms)):
        return Wait(0.0, "at once")
    return check_periods(world, broker, from_ms, to_ms)[-1]


def held_ms(world: World, broker: str, asked_ms: float = SUSPEND_MS) -> float:
    """For how long a broker at least holds a pull that finds no message: by its wall clock, which nobody must set."""
    if world.clocks.get(broker):
        return 0.0
    if all(world.values(broker, "longPollingEnable")):
        return asked_ms
    return min(asked_ms, *world.numbers(broker, "shortPollingTimeMills"))


def isolation_ms(world: World, producer: str, latency_ms: float, *, failed: bool) -> float:
    """For how long an attempt that took so long, or failed, has its broker avoided."""
    counted_ms = FAILURE_MS[world.timers.profile] if failed else latency_ms
    reached = [level.longest_ms for level in _levels(world, producer) if counted_ms >= level.slow_ms]
    return reached[-1] if reached else 0.0


def avoids(world: World, producer: str) -> bool:
    """Whether it avoids brokers that were slow or failed (sendLatencyFaultEnable)."""
    return bool(world.workload.get("latency_fault") or world.setting(producer, "sendLatencyFaultEnable"))


def avoidance(world: World) -> Avoidance | None:
    """From which latency on any of the producers avoids a broker, and how long at most; None: none of them does."""
    producers = [one.name for one in world.of_kind("producer") if avoids(world, one.name)]
    found = [level for producer in producers for level in _levels(world, producer) if level.longest_ms > 0]
    if not found:
        return None
    return Avoidance(min(one.slow_ms for one in found), max(one.longest_ms for one in found))


def _levels(world: World, producer: str) -> list[Avoidance]:
    said = (world.setting(producer, name) for name in ("latencyMax", "notAvailableDuration"))
    latencies, isolations = (one if isinstance(one, tuple | list) else () for one in said)
    return [Avoidance(float(slow), float(longest)) for slow, longest in zip(latencies, isolations, strict=True)]


STORED = (
    int(ResponseCode.FLUSH_DISK_TIMEOUT),
    int(ResponseCode.SLAVE_NOT_AVAILABLE),
    int(ResponseCode.FLUSH_SLAVE_TIMEOUT),
)
_AGAIN = (
    ResponseCode.TOPIC_NOT_EXIST,
    ResponseCode.SERVICE_NOT_AVAILABLE,
    ResponseCode.SYSTEM_ERROR,
    ResponseCode.NO_PERMISSION,
    ResponseCode.NO_BUYER_ID,
    ResponseCode.NOT_IN_CURRENT_UNIT,
)
_AGAIN_5_X = (ResponseCode.SYSTEM_BUSY, ResponseCode.GO_AWAY)
TOO_MANY = "one try too many"
SELECTED = "selected, and tried again"
STORED_BEFORE = "tried again though stored"
ENDED_BEFORE = "tried again after a final answer"
OUT_OF_TIME = "tried again after its time-out"
NOT_STORED = "reported as sent wrongly"


class SendRules(NamedTuple):
    """Of one producer."""

    tries: int
    time_ms: float
    again: tuple[int, ...]
    """The codes after which it tries again."""
    stored_again: bool
    """Whether it does so after an answer that says that it is stored."""
    selected: bool
    """Whether a key chooses the queue: one try, whatever comes (`sendSelectImpl`)."""

    def ends(self, code: int | None) -> bool:
        """Whether a try that ended with this code, or without any, is the send's last."""
        if code is None:
            return False
        return not self.stored_again if code in STORED else code not in self.again

    def odd(self, attempt: int, *, before: str, code: int | None, ran_out: bool) -> str | None:
        """What is wrong with this try, by how the one before ended and whether it took all the send's time."""
        if self.selected:
            return SELECTED
        if before == "ok" or (code in STORED and not self.stored_again):
            return STORED_BEFORE
        if self.ends(code):
            return ENDED_BEFORE
        if ran_out:
            return OUT_OF_TIME
        return TOO_MANY if attempt >= self.tries else None


def send_rules(world: World) -> Mapping[str, SendRules]:
    """By producer, of ours."""
    codes = _AGAIN if world.timers.profile is Profile.V4_9 else (*_AGAIN, *_AGAIN_5_X)
    return {
        node.name: SendRules(
            tries=tries(world, node.name),
            time_ms=world.timers_of(node.name).T_ms,
            again=tuple(map(int, codes)),
            stored_again=bool(world.setting(node.name, "retryAnotherBrokerWhenNotStoreOK")),
            selected=bool(world.workload.get("ordered")),
        )
        for node in world.ours("producer")
    }
