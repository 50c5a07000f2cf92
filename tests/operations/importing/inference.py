"""How often the done fault is named first: `python -m tests.operations.importing.inference --runs 100 --first 0`.

Each seed draws a cluster and one incident of one of the KINDS (or none, or two at once), records it on the virtual
clock, takes away what no log tells (`seen_in_logs`), infers, and compares with what was done. `first`: listed first.
`rank 1`: first, or of one rank with it, where by their nature the same lines speak for both. `wrong and certain`: an
episode's first hypothesis is certain and was not done. With `--missing` one server's log is not there.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario
from nemesrv.chaos.shapes import LinkExpressionError
from nemesrv.chaos.topology import Topology
from nemesrv.operations.inferring.episodes import episodes_of
from nemesrv.operations.inferring.telling import Episode
from tests.chaos.experiment.virtual.random_scenarios import random_scenario
from tests.operations.importing.seen_in_logs import seen_in_logs

Entries = list[dict[str, Any]]
PARTITIONS = ("black_hole", "packet_loss")
"""The same row of the failure-detection table: what a log has is the same where nobody dials meanwhile."""
AT_ONCE_S = 2.0


@dataclass(frozen=True, slots=True)
class Cast:
    rng: random.Random
    name_servers: list[str]
    brokers: list[str]
    clients: list[str]

    def broker(self) -> str:
        return self.rng.choice(self.brokers)

    def name_server(self) -> str:
        return self.rng.choice(self.name_servers)

    def pair(self) -> str:
        return f"{self.broker()} <-> {self.name_server()}"


Drawn = Callable[[Cast, float], Entries]


def of_node(do: str, ended_by: str, among: str, *lasts_s: float) -> Drawn:
    def entries(cast: Cast, at_s: float) -> Entries:
        node = cast.rng.choice(getattr(cast, among))
        end_s = at_s + cast.rng.uniform(*lasts_s)
        return [{"at_s": at_s, "do": do, "nodes": [node]}, {"at_s": end_s, "do": ended_by, "nodes": [node]}]

    return entries


def of_links(do: str, links: Callable[[Cast], list[str]], *lasts_s: float, **more: Any) -> Drawn:
    def entries(cast: Cast, at_s: float) -> Entries:
        which, end_s = links(cast), at_s + cast.rng.uniform(*lasts_s)
        return [{"at_s": at_s, "do": do, "links": which, **more}, {"at_s": end_s, "do": "heal", "links": which}]

    return entries


def by_hand(do: str, **about: Callable[[Cast], Any]) -> Drawn:
    return lambda cast, at_s: [{"at_s": at_s, "do": do, **{key: draw(cast) for key, draw in about.items()}}]


def _wiped(cast: Cast, at_s: float) -> Entries:
    about = {"nodes": [cast.name_server()], "broker": cast.broker()}
    end_s = at_s + cast.rng.uniform(40, 120)
    return [{"at_s": at_s, "do": "wipe_write_perm", **about}, {"at_s": end_s, "do": "add_write_perm", **about}]


def _claimed(cast: Cast, at_s: float) -> Entries:
    about = {"nodes": list(cast.name_servers), "broker": cast.broker(), "address": "10.9.9.9:10911"}
    end_s = at_s + cast.rng.uniform(60, 150)
    return [{"at_s": at_s, "do": "register", "every_s": 30, **about}, {"at_s": end_s, "do": "unregister", **about}]


def _both_killed(cast: Cast, at_s: float) -> Entries:
    nodes, end_s = cast.brokers[:2], at_s + cast.rng.uniform(20, 120)
    return [{"at_s": at_s, "do": "kill", "nodes": nodes}, {"at_s": end_s, "do": "restart", "nodes": nodes}]


KINDS: dict[str, Drawn] = {
    "broker killed": of_node("kill", "restart", "brokers", 5, 140),
    "broker stopped": of_node("stop", "restart", "brokers", 5, 140),
    "broker hung": of_node("pause", "resume", "brokers", 60, 240),
    "NameServer killed": of_node("kill", "restart", "name_servers", 5, 120),
    "NameServer hung": of_node("pause", "resume", "name_servers", 60, 240),
    "pair black hole": of_links("black_hole", lambda c: [c.pair()], 130, 260),
    "pair black hole, short": of_links("black_hole", lambda c: [c.pair()], 45, 90),
    "pair, answers lost": of_links("black_hole", lambda c: [c.pair()], 70, 200, stream="downstream"),
    "pair, packets lost": of_links("packet_loss", lambda c: [c.pair()], 70, 260),
    "pair cut": of_links("cut", lambda c: [c.pair()], 40, 200),
    "pair slow": of_links("latency", lambda c: [c.pair()], 90, 200, latency_ms=4000),
    "broker isolated": of_links("black_hole", lambda c: [f"isolate {c.broker()}"], 130, 240),
    "NameServer isolated": of_links("packet_loss", lambda c: [f"isolate {c.name_server()}"], 130, 240),
    "halves": of_links("black_hole", lambda c: ["halves"], 130, 240),
    "two blind pairs": of_links(
        "black_hole",
        lambda c: [f"{c.brokers[0]} <-> {c.name_servers[0]}", f"{c.brokers[1]} <-> {c.name_servers[1]}"],
        130,
        240,
    ),
    "permission wiped": _wiped,
    "address claimed": _claimed,
    "unregistered by hand": by_hand("unregister", nodes=lambda c: [c.name_server()], broker=lambda c: c.broker()),
    "topic deleted": by_hand("delete_topic", nodes=lambda c: [c.name_server()], topic=lambda c: "orders"),
    "clock step": lambda cast, at_s: [
        {"at_s": at_s, "do": "clock_step", "nodes": [node := cast.name_server()], "by_s": 150},
        {"at_s": at_s + 30, "do": "clock_sync", "nodes": [node]},
    ],
    "client and broker": of_links("black_hole", lambda c: [f"{c.rng.choice(c.clients)} <-> {c.broker()}"], 90, 200),
    "NameServer stopped": of_node("stop", "restart", "name_servers", 5, 120),
    "two brokers killed": _both_killed,
    "client killed": of_node("kill", "restart", "clients", 20, 120),
}
NOTHING, TWO, ANYTHING = "nothing", "two faults", "anything"
"""`anything`: one to four faults of any kind, over one another, of no length … (random_scenarios): much of that no log
can tell; what counts is that nothing wrong is certain."""


@dataclass(slots=True)
class Case:
    seed: int
    kind: str
    scenario: Scenario
    done: list[Entries] = field(default_factory=list)
    """Of each fault what begins it, and what ends it."""


def drawn(seed: int, kinds: Sequence[str]) -> Case:
    """The incident of this seed, of the kind whose turn it is."""
    rng = random.Random(f"{seed} inference")
    kind = kinds[seed % len(kinds)]
    if kind == ANYTHING:
        scenario = random_scenario(seed)
        begun = [entry.model_dump(mode="json") for entry in scenario.timeline]
        return Case(seed, kind, scenario, [[_plain(one)] for one in begun if one["do"] not in ("heal", "resume")])
    cluster: dict[str, Any] = {
        "name_servers": rng.randint(2, 3),
        "brokers": 3 if kind == "clock step" else rng.randint(2, 3),
        "profile": "5.x"
        if kind == "clock step"
        else "4.9"
        if kind in ("address claimed", "pair slow")
        else rng.choice(("4.9", "4.9", "5.x")),
    }
    workload = {"producers": rng.randint(1, 2), "consumers": rng.randint(1, 2), "client_starts": 0, "sends_per_s": 1}
    cast = Cast(
        rng,
        [f"ns-{number}" for number in range(cluster["name_servers"])],
        [f"broker-{chr(ord('a') + number)}" for number in range(cluster["brokers"])],
        [f"{kind}-{n}" for kind in ("producer", "consumer") for n in range(workload[f"{kind}s"])],
    )
    at_s = rng.uniform(40, 100)
    if kind == NOTHING:
        done: list[Entries] = []
    elif kind == TWO:
        done = _two(cast, at_s)
    else:
        done = [KINDS[kind](cast, at_s)]
    timeline = sorted((entry for entries in done for entry in entries), key=lambda entry: float(entry["at_s"]))
    document = {
        "cluster": cluster,
        "workload": workload,
        "timeline": [{**entry, "at_s": round(entry["at_s"], 3)} for entry in timeline],
        "settle_s": round(rng.uniform(80, 160), 3),
        "steady_s": 60,
        "checks": ["routes_are_true"],
    }
    return Case(seed, kind, parse(document, file=f"inference-{seed}.yaml"), done)


def _plain(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A timeline's entry as it is written in a file."""
    plain = {key: value for key, value in entry.items() if value not in ((), [], None)}
    return plain | {"do": "stop"} if plain["do"] == "restart" else plain


def _two(cast: Cast, at_s: float) -> list[Entries]:
    """Two faults of different nodes, one behind or beside the other."""
    first, second = cast.brokers[0], cast.name_servers[-1]
    later_s = at_s + cast.rng.choice((cast.rng.uniform(5, 60), cast.rng.uniform(150, 250)))
    one = [
        {"at_s": at_s, "do": "kill", "nodes": [first]},
        {"at_s": at_s + cast.rng.uniform(20, 100), "do": "restart", "nodes": [first]},
    ]
    link = f"{cast.brokers[1]} <-> {second}"
    other = [
        {"at_s": later_s, "do": "black_hole", "links": [link]},
        {"at_s": later_s + cast.rng.uniform(130, 200), "do": "heal", "links": [link]},
    ]
    return [one, other]


@dataclass(slots=True)
class Judged:
    case: Case
    first: bool
    """Every fault is the first hypothesis of some episode; where nothing was done, nothing is told."""
    rank_one: bool
    wrong_certain: list[str]
    beside: list[str]
    """Episodes that are no fault that was done."""
    in_bounds: list[bool]
    told: list[str]


def same(
    done: Mapping[str, Any], timeline: Sequence[Mapping[str, Any]], topology: Topology, *, in_part: bool = False
) -> bool:
    """Whether a hypothesis is what was done: the fault, and on whom, as far as anybody's log could show it.

    `in_part`: where several faults of links run into one another, on some of these links at least.
    """
    if not timeline:
        return False
    said = timeline[0]
    if done["do"] != said["do"] and not {done["do"], said["do"]} <= set(PARTITIONS):
        return False
    if "links" not in done:
        keys = ("nodes", "broker", "topic", "address")
        return all(_set(done.get(key)) == _set(said.get(key)) for key in keys)
    if (done.get("stream") == "downstream") != (said.get("stream") == "downstream") or "links" not in said:
        return False
    was, is_ = (_servers(entry["links"], topology) for entry in (done, said))
    everything = _links(done["links"], topology)
    if in_part:
        return bool(_links(said["links"], topology) & everything)
    return is_ == was and _links(said["links"], topology) <= everything


def _set(value: object) -> frozenset[object]:
    return frozenset(value) if isinstance(value, list | tuple) else frozenset({value})


def _links(expressions: Iterable[str], topology: Topology) -> set[tuple[str, str]]:
    hidden = ("prober", "admin")
    found = set()
    for text in expressions:
        try:
            found |= {*topology.parse_links(text)}
        except LinkExpressionError:  # `clients <-> chosen`, which only a run can tell
            found |= {link for link in topology.links if link.peer.startswith("ns-")}
    return {(link.node, link.peer) for link in found if link.node not in hidden}


def _servers(expressions: Iterable[str], topology: Topology) -> set[tuple[str, str]]:
    """Those of brokers to NameServers: what every log of servers shows."""
    return {(node, peer) for node, peer in _links(expressions, topology) if node.startswith("broker")}


def judged(case: Case, folder: Path, *, missing: str | None = None) -> Judged:
    record_virtual(case.scenario, case.seed, folder)
    return compared(case, read_rows(folder), missing=missing)


def compared(case: Case, rows: Sequence[dict[str, Any]], *, missing: str | None = None) -> Judged:
    topology = case.scenario.topology()
    origin_s = next(
        (row["time_ms"] / 1000 for row in rows if row["event"] == "phase" and row["phase"] == "steady"), 0.0
    )
    episodes = episodes_of(seen_in_logs(rows, missing=() if missing is None else (missing,))).episodes
    firsts = ranked = 0
    bounds: list[bool] = []
    beside = list(episodes)
    for entries in case.done:
        hit = [one for one in episodes if any(same(entries[0], h.timeline, topology) for h in _rank_one(one))]
        beside = [one for one in beside if one not in hit]
        ranked += bool(hit)
        exactly = [one for one in hit if same(entries[0], one.hypotheses[0].timeline, topology)]
        firsts += bool(exactly)
        if exactly:
            hypothesis = exactly[0].hypotheses[0]
            half_s = (hypothesis.bounds_ms[0] or 0.0) / 1000 + AT_ONCE_S
            bounds.append(abs(hypothesis.timeline[0]["at_s"] - origin_s - entries[0]["at_s"]) <= half_s)
    wrong = [
        one.hypotheses[0].sentence
        for one in episodes
        if one.hypotheses[0].certainty == "certain"
        and not any(
            same(entries[0], one.hypotheses[0].timeline, topology, in_part=case.kind == ANYTHING)
            for entries in case.done
        )
    ]
    nothing = not case.done and not episodes
    return Judged(
        case,
        first=nothing or (bool(case.done) and firsts == len(case.done)),
        rank_one=nothing or (bool(case.done) and ranked == len(case.done)),
        wrong_certain=wrong,
        beside=[_told(one) for one in beside],
        in_bounds=bounds,
        told=[_told(one) for one in episodes],
    )


def _rank_one(episode: Episode) -> list[Any]:
    return [one for one in episode.hypotheses if one.rank == 1]


def _told(episode: Episode) -> str:
    one = episode.hypotheses[0]
    return f"{one.certainty} {one.score:.2f} {one.sentence}"


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when nothing wrong was certain and at least 90 % were named first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="seed of the first")
    parser.add_argument("--kind", action="append", choices=[*KINDS, NOTHING, TWO, ANYTHING], help="only this kind")
    parser.add_argument("--missing", action="store_true", help="one server's log, drawn, is not there")
    parser.add_argument("--out", type=Path, help="keep the run folders here")
    asked = parser.parse_args(arguments)
    kinds = asked.kind or [*KINDS, NOTHING, TWO]
    found: dict[str, list[Judged]] = defaultdict(list)
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        for seed in range(asked.first, asked.first + asked.runs):
            case = drawn(seed, kinds)
            servers = [n for n in case.scenario.topology().kinds if n.startswith(("ns-", "broker-"))]
            missing = random.Random(f"{seed} missing").choice(servers) if asked.missing else None
            one = judged(case, (asked.out or Path(temporary)) / str(seed), missing=missing)
            found[case.kind].append(one)
            if one.wrong_certain or (case.kind != ANYTHING and (not one.rank_one or one.beside)):
                done = "; ".join(f"{e[0]['do']} {e[0].get('nodes') or e[0].get('links')}" for e in case.done)
                without = f", without {missing}'s log" if missing else ""
                print(f"seed {seed} ({case.kind}: {done}{without})")
                for text in one.told:
                    print(f"    {text}")
    _print_table(found, time.monotonic() - began_s)
    everything = [one for some in found.values() for one in some]
    told = [one for one in everything if one.case.kind != ANYTHING]
    named = sum(one.rank_one for one in told) / len(told) if told else 1.0
    return int(named < 0.9 or any(one.wrong_certain for one in everything))


def _print_table(found: Mapping[str, Sequence[Judged]], took_s: float) -> None:
    print("| kind | runs | first | rank 1 | start within its bounds | wrong and certain | told beside it |")
    print("|---|---|---|---|---|---|---|")
    rows = [*found.items(), ("all", [one for some in found.values() for one in some])]
    for kind, some in rows:
        total: Counter[str] = Counter()
        for one in some:
            total["first"] += one.first
            total["rank"] += one.rank_one
            total["wrong"] += len(one.wrong_certain)
            total["beside"] += len(one.beside)
            total["in"] += sum(one.in_bounds)
            total["of"] += len(one.in_bounds)
        within = f"{total['in']} of {total['of']}"
        cells = (kind, len(some), total["first"], total["rank"], within, total["wrong"], total["beside"])
        print("| " + " | ".join(map(str, cells)) + " |")
    print(f"{took_s:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
