"""Whether doctor and import are as sure as they are right: `python -m tests.operations.importing.calibration`.

Statements are judged against what was true: the answers of `doctor` on posted logs (tests/chaos/logs/wild), on made
logs of each cause, and on distorted logs of recorded incidents (proof.py), and the first hypotheses of `import` on
these. What doctor leans to where it says `unknown` counts as an unsure claim; of posted logs that were collected to
be answered unseen, what was said then counts, not what is said since.
Printed are, by how sure they claim to be, how many were right, and by `--fit` what telling.DOUBT and RIVALS
should be. `certain` is held to 99 of 100.
"""

import argparse
import math
import random
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nemesrv.chaos.errors import HarnessError
from nemesrv.operations.cluster.doctor import diagnosed
from nemesrv.operations.inferring.episodes import episodes_of
from nemesrv.operations.inferring.said import CAUSES
from nemesrv.operations.inferring.telling import DOUBT, LIKELY_AT_MOST, score_of
from nemesrv.operations.logs_to_rows.reconstruct import reconstruct
from tests.chaos.logs.corpus import cases
from tests.operations.made_logs import (
    BROKER_A,
    NS_0,
    NS_1,
    Logs,
    Said,
    boot,
    broker,
    client,
    dropped,
    heard,
    logs_of,
    name_server,
    no_route,
    read_logs,
    written,
)  # fmt: skip

from . import distortion
from .proof import names_of
from .recording import KINDS, STANDING, drawn, recorded
from .truth import done, is_true, truly_done
from .writing import sources_of

SAYS = 4.0
"""Nats from which on a line that is there once names its cause."""
BINS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


@dataclass(frozen=True, slots=True)
class Claim:
    by: str
    about: str
    """The case, and what was true of it."""
    said: str
    certainty: str
    score: float
    is_right: bool
    share: float = 0.0
    others: float = 0.0
    """What doctor's score was made of: the share of all likelihood, and that of all other causes."""


# --- made logs: what is put into, or left out of, the logs of a small cluster that is well


Made = Callable[[random.Random], Logs]


def _into_broker(*texts: str) -> Made:
    def logs(rng: random.Random) -> Logs:
        times = sorted(rng.uniform(100, 590) for _ in range(rng.choice((1, 2, 5, 40, 400))))
        said = [(at_s, rng.choice(texts)) for at_s in times]
        beside = [(rng.uniform(300, 590), _no_answer(NS_1)) for _ in range(rng.choice((0, 0, 1, 5)))]
        return logs_of(broker_a=broker("broker-a", BROKER_A, f"{NS_0};{NS_1}", *said, *beside), producer=client())

    return logs


def _outright(*texts: str) -> Made:
    """A broker that is well but for these lines."""

    def logs(rng: random.Random) -> Logs:
        said = [(rng.uniform(100, 590), rng.choice(texts)) for _ in range(rng.choice((1, 3, 30)))]
        return logs_of(broker_a=broker("broker-a", BROKER_A, f"{NS_0};{NS_1}", *said), producer=[])

    return logs


def _no_answer(server: str) -> str:
    return (
        f"registerBroker Exception, {server}\norg.apache.rocketmq.remoting.exception.RemotingTimeoutException: wait "
        f"response on the channel <{server}> timeout, 6000(ms)\n\tat org.apache.rocketmq.broker.out.BrokerOuterAPI.a"
    )


def _only(*texts: str) -> Made:
    """A process that says this at its start and no more."""
    return lambda rng: {"nohup.log": [(1.0 + number, text) for number, text in enumerate(texts)]}


def _asleep(rng: random.Random) -> Logs:
    from_s, for_s = rng.uniform(200, 400), rng.uniform(300, 3_000)

    def shifted(said: Sequence[Said]) -> list[Said]:
        return [(at_s if at_s < from_s else at_s + for_s, text) for at_s, text in said]

    wakes = dropped(from_s + rng.uniform(0.5, 5.0))
    servers = [shifted([*name_server(at), *wakes, *heard(from_s + 20, from_s + 25)]) for at in (NS_0, NS_1)]
    return logs_of(*servers, broker_a=shifted(broker(until_s=900)), producer=[])


def _before(said: Sequence[Said], at_s: float) -> list[Said]:
    return [one for one in said if one[0] < at_s]


def _moved(rng: random.Random) -> Logs:
    at_s, to = rng.uniform(200, 300), f"10.0.2.{rng.randint(20, 90)}:10911"
    names = f"{NS_0};{NS_1}"
    old = _before(broker(), at_s)
    new = [(at_s + 60 + when, text) for when, text in broker("broker-a", to, names, until_s=300)]
    servers = [
        [*_before(name_server(at), at_s), *dropped(at_s + 1), *heard(at_s + 70, at_s + 370, address=to)]
        for at in (NS_0, NS_1)
    ]
    return logs_of(*servers, broker_a=[*old, *new], producer=client())


def _never(rng: random.Random) -> Logs:
    lasts_s = rng.choice((200.0, 900.0, 7_200.0))
    noise = "NETTY SERVER PIPELINE: channelActive, the channel[10.0.9.9:4711]"
    return {"namesrv.log": [*boot(0, NS_0), *((rng.uniform(5, lasts_s), noise) for _ in range(12)), (lasts_s, noise)]}


def _wrong_order(rng: random.Random) -> Logs:
    """Both NameServers are stopped, then the broker, whose last registration and leave meet nobody."""
    at_s = rng.uniform(300, 500)
    hook = "Shutdown hook was invoked, 1 times."
    servers = [[*_before(name_server(at), at_s), (at_s + number, hook)] for number, at in enumerate((NS_0, NS_1))]
    stops_s = at_s + rng.uniform(20, 120)
    failed = [(at_s + 10, f"registerBroker Exception, {server}\n{_refused(server)}") for server in (NS_0, NS_1)]
    over = [
        (stops_s, "Shutdown hook was invoked, 1"),
        (stops_s + 1, "Shutdown hook over, consuming total time(ms): 900"),
    ]
    return logs_of(*servers, broker_a=[*_before(broker(), at_s), *failed, *over], producer=[])


def _refused(server: str) -> str:
    return f"org.apache.rocketmq.remoting.exception.RemotingConnectException: connect to <{server}> failed"


def _behind_nat(rng: random.Random) -> Logs:
    """The broker registers a container's address, and is well; a client cannot connect to it."""
    at = f"172.{rng.randint(17, 20)}.0.{rng.randint(2, 9)}:10911"
    times = sorted(rng.uniform(100, 590) for _ in range(rng.choice((1, 3, 30))))
    sends = [(at_s, f"sendKernelImpl exception, resend at once\n{_refused(at)}") for at_s in times]
    servers = [[*boot(0, server), *heard(10, 600, address=at)] for server in (NS_0, NS_1)]
    return logs_of(*servers, broker_a=broker("broker-a", at), producer=[*client(), *sends])


def _not_created(rng: random.Random) -> Logs:
    times = [rng.uniform(100, 590) for _ in range(rng.randint(1, 9))]
    return {"rocketmq_client.log": [*client()[:3], *((at_s, no_route("TBW102")) for at_s in times)]}


def _well(rng: random.Random) -> Logs:
    return logs_of(producer=client() if rng.random() < 0.5 else [], broker_a=broker(until_s=rng.uniform(60, 600)))


def _visits(rng: random.Random) -> Logs:
    at_s = rng.uniform(60, 300)
    visit = [(at_s + when, text) for when, text in client()][:3]
    return logs_of(producer=[(at_s, text) for _, text in visit])


def _topic(rng: random.Random) -> Logs:
    return logs_of(producer=client(*(rng.uniform(100, 590) for _ in range(rng.randint(1, 5))), topic="ordres"))


def _set_back(rng: random.Random) -> Logs:
    """A broker whose clock is set back by minutes in the middle, and runs on."""
    at_s, by_s = rng.uniform(250, 400), rng.uniform(90, 3_000)
    said = sorted([*broker(until_s=900)], key=lambda one: one[0])
    shifted = tuple((when if when < at_s else when - by_s, text) for when, text in said)
    servers = [[*boot(0, at), *heard(10, 900)] for at in (NS_0, NS_1)]
    return logs_of(*servers, broker_a=shifted, producer=[])


def _wrong_list(rng: random.Random) -> Logs:
    """A broker whose only NameServer is an address at which none listens."""
    wrong = f"10.9.{rng.randint(1, 9)}.{rng.randint(1, 9)}:9876"
    said = [
        (5.0, f"namesrvAddr={wrong}"),
        (5.0, f"The broker[broker-a, {BROKER_A}] boot success. serializeType=JSON and name server is {wrong}"),
    ]
    times = [10.0 + 30 * number for number in range(rng.randint(2, 20))]
    return {"broker.log": [*said, *((at, f"registerBroker Exception, {wrong}\n{_refused(wrong)}") for at in times)]}


def _two_of_one_name(rng: random.Random) -> Logs:
    """Two masters of one name take turns at both NameServers."""
    other = f"10.0.2.{rng.randint(20, 90)}:10911"
    said = "cluster [C] brokerName [broker-a] master address change from {} to {}"
    phase = rng.uniform(3, 27)
    turns = [
        (at_s, said.format(*addresses))
        for number in range(15)
        for at_s, addresses in ((40 + 30 * number, (other, BROKER_A)), (40 + 30 * number + phase, (BROKER_A, other)))
    ]
    servers = [[*boot(0, at), *heard(10, 11), *turns] for at in (NS_0, NS_1)]
    return logs_of(*servers, producer=client())


def _of_another_cluster(rng: random.Random) -> Logs:
    """A client's second NameServer is that of another cluster, where its topic is not."""
    foreign = f"10.7.2.{rng.randint(1, 9)}:10911"
    there = [(at_s, text.replace("cluster [C]", "cluster [D]")) for at_s, text in heard(10, 600, "broker-x", foreign)]
    ours = [*broker("broker-a", BROKER_A, NS_0), (5.0, "brokerClusterName=C")]
    asked = client(*(rng.uniform(100, 590) for _ in range(rng.randint(1, 5))), at=NS_1)
    return logs_of(ns_1=[*boot(0, NS_1), *there], broker_a=ours, producer=asked)


def _strangers(rng: random.Random) -> Logs:
    """A health check by HTTP at a broker's port."""
    said = (
        "NETTY SERVER PIPELINE: exceptionCaught exception.\nio.netty.handler.codec.TooLongFrameException: Adjusted "
        f"frame length exceeds 16777216: {rng.choice((1195725860, 369295620, 1347375960))} - discarded"
    )
    times = [rng.uniform(20, 590) for _ in range(rng.choice((1, 5, 50)))]
    return logs_of(broker_a=broker("broker-a", BROKER_A, f"{NS_0};{NS_1}", *((at, said) for at in times)), producer=[])


MADE: dict[str, tuple[Made, Sequence[str]]] = {
    "disk full": (
        _into_broker(
            "putMessage failed\njava.io.IOException: No space left on device",
            "service not available now, maybe disk full, CL:  0.95 CQ:  0.95 INDEX:  0.95, maybe your broker machine "
            "memory too small.",
            "physic disk maybe full soon, so reclaim space, 0.93, storePathPhysic=/data/store/commitlog",
        ),
        ["disk-full"],
    ),
    "disk fills": (
        _into_broker("physic disk maybe full soon, so reclaim space, 0.78, storePathPhysic=/data/store/commitlog"),
        ["nothing", "name-server-gives-no-answer", "link-failed", "unknown"],
    ),
    "read-only": (_into_broker("flush\njava.io.IOException: Read-only file system"), ["disk-read-only"]),
    "out of memory": (_into_broker("x\njava.lang.OutOfMemoryError: Java heap space"), ["out-of-memory"]),
    "no permission": (_into_broker("the broker[10.0.2.1] sending message is forbidden"), ["no-permission"]),
    "port taken": (_only("start\njava.net.BindException: Address already in use"), ["port-taken"]),
    "store in use": (_only("start\njava.lang.RuntimeException: Lock failed,MQ already started"), ["store-in-use"]),
    "no NameServer given": (
        _only("The broker[broker-a, 10.0.2.1:10911] boot success. serializeType=JSON"),
        ["no-name-server-given"],
    ),
    "start failed": (
        _only("load file /data/store/commitlog/0000 error\njava.io.IOException: Map failed"),
        ["start-failed", "out-of-memory"],
    ),
    "list illegal": (
        _only('The Name Server Address[ns-1:9876;ns-2:9876 ] illegal, please set it as follows, "127.0.0.1:9876"'),
        ["name-server-address-illegal"],
    ),
    "behind NAT": (_behind_nat, ["broker-address-not-reached"]),
    "wrong order": (_wrong_order, ["stopped-in-order"]),
    "not created": (_not_created, ["auto-create-off", "topic-is-nowhere"]),
    "host asleep": (_asleep, ["host-stood-still"]),
    "address moved": (_moved, ["address-changed"]),
    "no broker ever": (_never, ["no-broker-registered"]),
    "no such topic": (_topic, ["topic-is-nowhere", "topics-are-not-created"]),
    "clock set back": (_set_back, ["clock-set"]),
    "wrong NameServer": (_wrong_list, ["name-server-not-reached"]),
    "two of one name": (_two_of_one_name, ["another-broker-has-the-name"]),
    "another cluster's": (_of_another_cluster, ["name-server-of-another-cluster"]),
    "strangers": (_strangers, ["not-rocketmq", "nothing"]),
    "well": (_well, ["nothing"]),
    "a visit": (_visits, ["nothing"]),
}

SAID = {
    name: said
    for name, about in CAUSES.items()
    if name[0] != "-"
    and name not in ("nothing", "no-name-server-given")  # of a start that is another, and what peers are
    and (said := [one.has for one in about.says if one.pattern.pattern == re.escape(one.has) and one.weight >= SAYS])
}
"""Causes that a line says outright, and such lines: of each, logs are made from the table."""
MADE = {**MADE, **{f"says {name}": (_outright(*said), [name]) for name, said in SAID.items()}}

RECORDED: Mapping[str, Sequence[str]] = {
    "host stood still": ["host-stood-still"],
    "address changed": ["address-changed"],
    "wrong order": ["stopped-in-order"],
    "unregistered by hand": ["unregistered-by-hand"],
    "nothing": ["nothing"],
    "disk full": ["disk-full"],
    "port taken": ["port-taken"],
    "behind NAT": ["broker-address-not-reached"],
    "auto-create off": [
        "auto-create-off",
        "topic-is-nowhere",
        "topics-are-not-created",
        "topic-deleted",
        "topic-is-not-at-this-name-server",
    ],
    "crash": ["process-ended"],
    "clean stop": ["stopped-in-order"],
    "hang": ["process-stood-still"],
    "pair partition": ["link-failed", "broker-is-not-registered"],
    "one-way partition": ["link-failed", "broker-is-not-registered"],
    "host lost": ["host-lost", "link-failed"],  # it is gone from the network first, which is all that others see
    "NameServer restarted": ["process-ended", "stopped-in-order", "name-server-is-empty"],
    "list changed": ["list-changed", "no-broker-lists-this-name-server", "client-is-at-other-name-servers"],
    "write permission wiped": ["no-permission-to-write"],
    "address claimed": ["another-broker-has-the-name"],
}


def answered(by: str, about: str, place: Path, right: Callable[[str], bool]) -> Iterator[Claim]:
    """What doctor claims of the logs there, or leans to; nothing, where it does neither."""
    try:
        answer = diagnosed([place]).answer
    except HarnessError:
        return
    name, certainty, score, rest = answer.name, answer.certainty, answer.score, [*answer.others]
    if name == "unknown" and rest:
        name, score = rest[0].name, rest.pop(0).score
    if name != "unknown":
        yield Claim(by, about, name, certainty, score, right(name), answer.share, sum(one.share for one in rest))


def posted(*, set_aside: bool | None) -> Iterator[Claim]:
    for case in cases(set_aside=set_aside):
        about = f"{case.name} ({case.true})"
        name, certainty, score = case.first
        if not case.collection:
            yield from answered("doctor, posted", about, case.folder, case.is_right)
        elif name not in ("", "unknown"):
            share = score * DOUBT / (score * DOUBT + 1 - score)  # from which score_of makes that score
            yield Claim("doctor, unseen", about, name, certainty, score, case.is_right(name), share)


def first_sight(collection: int) -> tuple[int, int]:
    """Of its logs that show a cause, how many were given the true one unseen, and how many there are."""
    told = [one for one in cases() if one.collection == collection and one.shown and one.true != "unknown"]
    return sum(one.is_right(one.first[0]) for one in told), len(told)


POSTED = ("doctor, posted", "doctor, unseen")


def _likelihood(one: Claim, doubt: float, rivals: float) -> float:
    said = min(LIKELY_AT_MOST, score_of(one.share, one.others, doubt, rivals))
    return math.log(said if one.is_right else 1 - said)


def fitted(claims: Iterable[Claim]) -> tuple[float, float]:
    """DOUBT and RIVALS that make doctor's claims likeliest, posted ones counting as much as all others together."""
    told = [one for one in claims if one.by.startswith("doctor") and one.certainty != "certain"]
    by_kind = Counter(one.by in POSTED for one in told)
    weights = {True: 1.0, False: (by_kind[True] or by_kind[False]) / max(by_kind[False], 1)}

    def likelihood(doubt: float, rivals: float) -> float:
        total = -(math.log(doubt) ** 2 + math.log(rivals) ** 2) / 2  # both are 1 where likelihoods are what they claim
        return total + sum(weights[one.by in POSTED] * _likelihood(one, doubt, rivals) for one in told)

    tried = [(one / 10, other / 10) for one in range(1, 31) for other in range(1, 11)]
    return max(tried, key=lambda one: likelihood(*one))


def made(each: int, folder: Path) -> Iterator[Claim]:
    for name, (logs, right) in MADE.items():
        for seed in range(each):
            place = written(folder / f"{name}-{seed}", logs(random.Random(f"{name} {seed}")))
            yield from answered("doctor, made", f"{name} {seed}", place, lambda said, right=right: said in right)


def recordings(seeds: Iterable[int], folder: Path, level: str, kinds: Mapping[str, Any] = KINDS) -> Iterator[Claim]:
    for seed in seeds:
        incident = drawn(seed, kinds)
        own = folder / f"{incident.kind}-{seed}"
        run = recorded(incident, own / "run")
        of, sources = sources_of(run, slf4j=["producer-1"])
        how = level if incident.scenario.timeline else "clocks"  # what is cut is cut around a fault
        distortion.drawn(seed, of, sources, how).written(own / "logs", of, sources)
        about = f"{incident.kind} {seed}"
        named = RECORDED[incident.kind]
        yield from answered("doctor, recorded", about, own / "logs", lambda said, named=named: said in named)
        if kinds is not KINDS:
            continue
        found = reconstruct(read_logs([own / "logs"]).lines)
        names, nodes = names_of(found.topology, of.addresses), [*of.kinds]
        true = truly_done(incident.scenario, nodes)
        for episode in episodes_of(found.rows).episodes:
            one = episode.hypotheses[0]
            said = done(one.timeline, nodes, names)
            right = is_true(said, true) or not said
            yield Claim("import, recorded", about, one.sentence, one.certainty, episode.score, right)


def table(claims: Sequence[Claim]) -> Iterator[str]:
    """Of each claim to be so sure, how many were right, by who claims it."""
    counted: dict[tuple[str, str], Counter[bool]] = defaultdict(Counter)
    for one in claims:
        for by in (one.by, "all"):
            counted[_bin(one), by][one.is_right] += 1
    columns = [*dict.fromkeys(one.by for one in claims), "all"]
    yield f"| said | on average | {' | '.join(columns)} |"
    yield f"|---|{'---:|' * (len(columns) + 1)}"
    for name in sorted({name for name, _ in counted}):
        cells = [counted[name, by] for by in columns]
        right = " | ".join(f"{one[True]} of {one.total()}" if one else "" for one in cells)
        said = [one.score for one in claims if _bin(one) == name]
        yield f"| {name} | {sum(said) / len(said):.2f} | {right} |"


def _bin(one: Claim) -> str:
    if one.certainty == "certain":
        return "certain"
    low = max((edge for edge in BINS if edge <= one.score), default=0.0)
    high = min((edge for edge in BINS if edge > one.score), default=1.0)
    return f"{one.certainty} {low:.2f} to {high:.2f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when of the certain 99 in 100 are right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=20, help="made logs of each cause")
    parser.add_argument("--incidents", type=int, default=50, help="recorded incidents, of ten kinds in turn")
    parser.add_argument("--level", choices=distortion.LEVELS, default="all")
    parser.add_argument("--set-aside", action="store_true", help="posted logs: those set aside, too")
    parser.add_argument("--fit", action="store_true", help="what telling.DOUBT and RIVALS should be")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        claims = [
            *posted(set_aside=None if asked.set_aside else False),
            *made(asked.each, Path(temporary, "made")),
            *recordings(range(asked.incidents), Path(temporary, "recorded"), asked.level),
            *recordings(range(asked.incidents * 9 // 10), Path(temporary, "standing"), asked.level, STANDING),
        ]
    for one in claims:
        if not one.is_right:
            print(f"{one.by}: {one.about}: {one.certainty} {one.score:.2f} {one.said}")
    print("\n" + "\n".join(table(claims)))
    for number in sorted({one.collection for one in cases()} - {0}):
        right, of = first_sight(number)
        print(f"collection {number}: the true cause first in {right} of {of}, unseen")
    if asked.fit:
        print(f"fitted: DOUBT, RIVALS = {fitted(claims)}")
    sure = [one.is_right for one in claims if one.certainty == "certain"]
    return int(sum(sure) < 0.99 * len(sure))


if __name__ == "__main__":
    sys.exit(main())
