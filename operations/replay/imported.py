"""Makes a scenario from an import. The scenario has the topology, timers and faults of incident.json, and covers the
time of the incident.

incident.json ─► nodes under a scenario's names ─► timers that differ ─► timelines of the chosen hypotheses
history rows  ─► phases, lists in use, topics
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from ...chaos.errors import ScenarioError
from ...chaos.faults.kinds import FAULTS
from ...chaos.history.schema import Row, object_of
from ...chaos.history.transitions import is_system, later_lists_of, lists_of
from ...chaos.oracle.timers import Timers
from ...chaos.oracle.world import World
from ...chaos.reports.ci import INCIDENT
from ...chaos.scenarios.model import CHECK_NAMES
from ...chaos.settings.catalogue import settings_for
from ...chaos.settings.setting import GROUPS
from ...chaos.topology import broker_node
from .incident_file import Entry, Incident, IncidentEpisode, IncidentHypothesis, read_incident
from .original import PHASES_NOT_KEPT, Original, compared_to_ms, exactness
from .phases import phases_in

LEAD_S = 60.0
"""Steady time before the first fault."""
TOGETHER_MS = 3_600_000.0
"""Episodes that begin within this time after the first are replayed in one run."""
_STARTS_S = 35.0
"""The first part of a replay's timeline that is not compared: clients take their first routes and send their first
heartbeats, as the original's did long before."""
_AHEAD_S = 10.0
"""Comparing begins this long before the first fault."""
_SETTLE_S = 150.0
"""On the virtual clock a replay goes on for so long, for `nemesrv check`; that part is not compared."""
_AFTER_S = 160.0
"""The longest after the last fault's end: E + R + C, within which every effect shows."""
_TIMERS: Mapping[str, tuple[str, str]] = {
    "registration_period": ("brokers", "R"),
    "registration_timeout": ("brokers", "B"),
    "expiry": ("name_servers", "E"),
    "scan": ("name_servers", "S"),
    "idle": ("name_servers", "I"),
    "route_poll": ("clients", "P"),
    "request_timeout": ("clients", "A"),
    "connect_timeout": ("clients", "C"),
    "heartbeat": ("clients", "H"),
}
_FITTED_MS = 1_500.0
"""A fitted timer this near to the default is the default, because stamps have whole seconds."""
_NAME = re.compile(r"[A-Za-z0-9_.|%:/-]+")
_WITH_NAMES = ("nodes", "links", "broker", "name_servers", "address")
"""Keys of a timeline's entry that name nodes."""
_SHOWN = {"fault", "certainty", "sentence"}
_BOOTS_MS = 2_000.0, 300_000.0
"""A restarted broker of Apache's takes up to this long to boot and register; a replay's registers at once. A longer
time has another cause."""
UNNAMED_TOPIC = "orders"
_MOST_BROKERS, _MOST_NAME_SERVERS, _MOST_CLIENTS = 26, 9, 60


class _Chosen(NamedTuple):
    number: int
    episode: IncidentEpisode
    hypothesis: IncidentHypothesis
    place: int
    """Number of the hypothesis in its episode, from 1."""

    @property
    def at(self) -> str:
        """The key of the fault's timeline in incident.json."""
        return f"episodes.{self.number - 1}.hypotheses.{self.place - 1}.timeline"


def imported(
    folder: Path, rows: list[Row], hypotheses: Mapping[int, int], episodes: Sequence[int], *, virtual: bool = True
) -> Original:
    """Return the incident in this folder as a scenario. Raises ScenarioError if no fault is known, or if a chosen
    episode or hypothesis does not exist. Timer phases are set only if the replay is `virtual`."""
    file = folder / INCIDENT
    incident = read_incident(file)
    world = World.of_rows(rows)
    notes: list[str] = []
    chosen = _chosen(incident, hypotheses, episodes, str(file), notes)
    wanted = {name for one in chosen for name in (*_named(one.hypothesis.timeline), *one.hypothesis.nodes)}
    names = _Names.of(incident, world, wanted, str(file), notes)
    first_ms = min(min(_at_ms(one), default=one.episode.from_ms) for one in chosen)
    ends_ms = compared_to_ms(rows, world)
    last_ms = max(max((*_at_ms(one), one.episode.from_ms, one.episode.to_ms or ends_ms)) for one in chosen)
    exact_ms = max((one.hypothesis.bounds_ms[0] or 0.0 for one in chosen if one.hypothesis.bounds_ms), default=0.0)
    from_ms = math.floor(first_ms / 1000) * 1000.0 - 1000 * LEAD_S
    to_ms = min(max(ends_ms, last_ms + 1_000), last_ms + 1000 * _AFTER_S)
    timeline, places = _timeline(chosen, from_ms, to_ms, names, rows, notes)
    nodes = names.nodes(incident, world, rows, from_ms)
    for one in chosen:
        for node, own in one.hypothesis.nodes.items():
            nodes[names.ours.get(node, node)] = {**nodes.get(names.ours.get(node, node), {}), **names.translated(own)}
    document = {
        "name": f"replay-of-{_word(folder)}",
        "description": " ".join(one.hypothesis.sentence for one in chosen)[:490],
        "cluster": names.counts() | {"profile": str(world.timers.profile)},
        **_config(incident, world),
        "nodes": nodes,
        "workload": names.workload(rows, to_ms - from_ms, notes),
        "timeline": timeline,
        "settle_s": max(
            _SETTLE_S if virtual else 1.0,
            math.ceil((to_ms - from_ms) / 1000 - max((entry["at_s"] for entry in timeline), default=0)),
        ),
        "checks": list(CHECK_NAMES),
        "seed": 1,
    }
    if virtual:
        phases = phases_in(rows, world, from_ms)
        document["phases"] = {names.ours[node]: phase for node, phase in phases.items() if node in names.ours}
    else:
        notes.append(PHASES_NOT_KEPT)
    bounds = {one.source: one.bound_ms for one in incident.sources}
    exact = exactness(rows)
    return Original(
        folder=folder,
        rows=rows,
        world=world,
        document=document,
        from_ms=from_ms,
        begun=_begun(incident.origin, from_ms),
        compared_ms=max(from_ms + 1000 * _STARTS_S, first_ms - exact_ms - 1000 * _AHEAD_S),
        to_ms=to_ms,
        names={ours: theirs for theirs, ours in names.ours.items() if ours != theirs},
        clients={one.id: node for node, one in incident.topology.clients.items() if one.id},
        exact={node: max(exact.get(node, 0.0), bounds.get(node, 0.0)) for node in {*exact, *bounds}},
        imported=True,
        notes=notes,
        places=places,
        chosen=[
            {"episode": one.number, "place": one.place, **one.hypothesis.model_dump(include=_SHOWN)} for one in chosen
        ],
    )


def _begun(origin: str, from_ms: float) -> str:
    """Return the moment of `from_ms`; "" for an incident.json without an origin."""
    return (datetime.fromisoformat(origin) + timedelta(milliseconds=from_ms)).isoformat() if origin else ""


def _word(folder: Path) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", folder.resolve().name).strip("-")[:80] or "incident"


# -- which faults


def _chosen(
    incident: Incident, hypotheses: Mapping[int, int], episodes: Sequence[int], file: str, notes: list[str]
) -> list[_Chosen]:
    count = len(incident.episodes)
    for option, numbers in (("--hypothesis", hypotheses), ("--episode", episodes)):
        for number in numbers:
            if number > count:
                allowed = f"an episode from 1 to {count}" if count else f"nothing: {file} has no episodes"
                raise ScenarioError(option, "", str(number), allowed)
    found: list[_Chosen] = []
    for number, episode in enumerate(incident.episodes, start=1):
        if (episodes and number not in episodes) or (episode.follows and number not in {*episodes, *hypotheses}):
            continue
        said = hypotheses.get(number)
        if said is not None and said > len(episode.hypotheses):
            allowed = f"one of the {len(episode.hypotheses)} hypotheses of episode {number} in {file}, counted from 1"
            raise ScenarioError("--hypothesis", "", f"{number}={said}", allowed)
        place = said or 1
        taken = episode.hypotheses[place - 1] if episode.hypotheses else None
        if taken is None or not (taken.timeline or taken.nodes):
            why = "has no fault that explains it"
            if taken is not None and taken.fault == "switch":
                why = f"is a change of roles that nobody did by hand ({taken.sentence})"
            notes.append(f"Episode {number} {why}, so nothing is done for it.")
            continue
        found.append(_Chosen(number, episode, taken, place))
    named = {*hypotheses, *episodes}
    sure = [one for one in found if one.hypothesis.certainty != "unsure" or one.number in named]
    for one in found:
        if one.hypothesis.certainty == "unsure":
            left = "" if one in sure or not sure else ", so it is left out (--episode)"
            notes.append(f"Of episode {one.number} the fault is not sure{left}: {one.hypothesis.sentence}")
    found = sure or found
    if not found:
        allowed = "an episode with a hypothesis and its timeline: without a fault there is nothing to replay"
        raise ScenarioError(file, "episodes", "none", allowed)
    near = [one for one in found if one.episode.from_ms - found[0].episode.from_ms <= TOGETHER_MS]
    if len(near) < len(found):
        later = ", ".join(str(one.number) for one in found if one not in near)
        notes.append(f"More than an hour later, and left out: episode {later} (--episode replays one of them).")
    return near


def _at_ms(one: _Chosen) -> list[float]:
    return [1000.0 * entry.at_s for entry in one.hypothesis.timeline]


def _named(timeline: Iterable[Entry]) -> set[str]:
    values = [said.get(key) for entry in timeline for said in [entry.model_dump()] for key in _WITH_NAMES]
    texts = [text for value in values for text in (value if isinstance(value, list | tuple) else [value])]
    return {name for text in texts if text is not None for name in _NAME.findall(str(text))}


def _timeline(
    chosen: Sequence[_Chosen], from_ms: float, to_ms: float, names: _Names, rows: Sequence[Row], notes: list[str]
) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """The entries in order of time, under scenarios' names, with their places in incident.json. A fault without an end
    lasts until comparing ends."""
    entries = [
        (said | {"at_s": round(float(said["at_s"]) - from_ms / 1000, 3)}, f"{one.at}.{at}")
        for one in chosen
        for at, entry in enumerate(one.hypothesis.timeline)
        for said in _booted(entry.model_dump(), rows, notes)
    ]
    entries.sort(key=lambda one: float(one[0]["at_s"]))
    told = [names.translated(entry) for entry, _ in entries]
    ends_s = round((to_ms - from_ms) / 1000, 3)
    links, ended = False, {"restart": dict[str, None](), "resume": dict[str, None]()}
    for entry in told:
        do, nodes = entry["do"], entry.get("nodes") or ()
        links = bool(entry.get("links") or (entry.get("faults") if do == "heal" else links))
        if do in ended:
            ended = {by: {node: None for node in of if node not in nodes} for by, of in ended.items()}
        elif (ended_by := getattr(FAULTS.get(do), "ended_by", "")) in ended:
            ended[ended_by] |= dict.fromkeys(nodes)
    told += [{"at_s": ends_s, "do": do, "nodes": [*nodes]} for do, nodes in ended.items() if nodes]
    told += [{"at_s": ends_s, "do": "heal"}] if links else []
    return told, {at: place for at, (_, place) in enumerate(entries)}


def _booted(entry: dict[str, Any], rows: Sequence[Row], notes: list[str]) -> list[dict[str, Any]]:
    """Return the entry; a restart of brokers becomes a restart per broker, at the broker's first registration."""
    if entry["do"] != "restart":
        return [entry]
    found, at_once = [], []
    for node in entry.get("nodes") or ():
        came_ms = _first_registration(str(node), rows, 1000 * float(entry["at_s"]))
        if came_ms is None:
            at_once.append(node)
            continue
        took_s = came_ms / 1000 - float(entry["at_s"])
        notes.append(f"{node} registered {took_s:.0f} s after it was started again: the replay starts it then.")
        found.append({**entry, "nodes": [node], "at_s": came_ms / 1000})
    return [{**entry, "nodes": at_once}, *found] if at_once or not found else found


def _first_registration(broker: str, rows: Sequence[Row], started_ms: float) -> float | None:
    """The time of a broker's first registration, if it is late enough to matter and early enough to belong to the
    boot."""
    least_ms, most_ms = _BOOTS_MS
    later = (row for row in rows if row["event"] == "registration" and row["time_ms"] > started_ms)
    its = (row for row in later if not row["code"] and broker_node(row["broker_name"], row["broker_id"]) == broker)
    first_ms = min((float(row["time_ms"]) for row in its), default=math.inf)
    return first_ms if least_ms < first_ms - started_ms <= most_ms else None


# -- who there is


class _Names(NamedTuple):
    ours: Mapping[str, str]
    """Import's name to scenario's name."""
    clusters: Mapping[str, str]
    """Master to its cluster, by the scenario's names."""
    producers: int
    consumers: int
    lacks: tuple[str, ...]
    """The kinds of clients of which no log is there: the replay has one of each all the same."""

    @classmethod
    def of(cls, incident: Incident, world: World, wanted: set[str], file: str, notes: list[str]) -> _Names:
        topology = incident.topology
        servers = list(topology.name_servers) or [node.name for node in world.of_kind("name_server")]
        masters = list(topology.brokers) or [node.name for node in world.of_kind("broker")]
        if not servers or not masters:
            key = "topology.name_servers" if not servers else "topology.brokers"
            raise ScenarioError(file, key, "none", "at least one: a scenario has NameServers and brokers")
        clients = {name: one.kind for name, one in topology.clients.items()}
        servers = _most(servers, _MOST_NAME_SERVERS, wanted, "NameServers", notes)
        masters = _most(masters, _MOST_BROKERS, wanted, "brokers", notes)
        picked = _most([*clients], _MOST_CLIENTS, wanted, "clients", notes)
        ours = {name: f"ns-{at}" for at, name in enumerate(_kept(servers, "ns-"))}
        letters = _kept(masters, "broker-")
        ours |= {name: f"broker-{chr(ord('a') + at)}" for at, name in enumerate(letters)}
        for master in masters:
            for id_ in topology.brokers.get(master, {}):
                if id_ != "0":
                    ours[f"{master}/{id_}"] = f"{ours[master]}/{id_}"
        consumers = _kept([name for name in picked if clients[name] == "consumer"], "consumer-")
        producers = _kept([name for name in picked if clients[name] != "consumer"], "producer-")
        ours |= {name: f"producer-{at}" for at, name in enumerate(producers)}
        ours |= {name: f"consumer-{at}" for at, name in enumerate(consumers)}
        clusters = {
            ours[name]: cluster
            for cluster, of in topology.clusters.items()
            for name in of
            if name in ours and len(topology.clusters) > 1
        }
        lacks = tuple(kind for kind, of in (("producer", producers), ("consumer", consumers)) if not of)
        return cls(ours, clusters, len(producers) or 1, len(consumers) or 1, lacks)

    def translated(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        found = dict(entry)
        for key in _WITH_NAMES:
            value = found.get(key)
            if isinstance(value, str):
                found[key] = self._text(value)
            elif isinstance(value, list | tuple):
                found[key] = [self._text(one) if isinstance(one, str) else one for one in value]
        return found

    def _text(self, text: str) -> str:
        return _NAME.sub(lambda found: self.ours.get(found[0], found[0]), text)

    def counts(self) -> dict[str, Any]:
        kinds = Counter(name.partition("-")[0] for name in self.ours.values() if "/" not in name)
        return {"name_servers": kinds["ns"], "brokers": kinds["broker"]}

    def nodes(self, incident: Incident, world: World, rows: list[Row], from_ms: float) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        said = world.run.get("nodes") or {}
        every = [name for name in self.ours.values() if name.startswith("ns-")]
        in_use, later = lists_of(rows, from_ms), later_lists_of(rows, from_ms)
        for theirs, ours in self.ours.items():
            own: dict[str, Any] = {}
            client = incident.topology.clients.get(theirs)
            listed = in_use.get(theirs) or [*(client.name_servers if client is not None else ())]
            listed = listed or [*((said.get(theirs) or {}).get("name_servers") or ())]
            entries = [*dict.fromkeys(self.ours.get(entry, entry) for entry in listed)][:_MOST_NAME_SERVERS]
            is_client = ours.startswith(("producer-", "consumer-"))
            if is_client and len(entries) == 1 and theirs not in said:  # only whom it chose is known
                entries += [name for name in every if name not in entries]
            if any(entry in every for entry in entries):
                if is_client:
                    own |= {"name_servers": entries, "in_order": True}
                    orders = [[self.ours.get(entry, entry) for entry in order] for order in later.get(theirs, ())]
                    if orders and all(sorted(order) == sorted(entries) for order in orders):
                        own["later_orders"] = orders
                elif ours.startswith("broker-") and set(entries) != set(every):
                    own["name_servers"] = entries
            if ours in self.clusters:
                own["cluster_name"] = re.sub(r"[^A-Za-z0-9%|_-]", "-", self.clusters[ours])
            if own or "/" in ours:
                found[ours] = own
        return found

    def _made_up(self, topic: str, *, named: bool) -> Iterator[str]:
        """Return what logs do not say about clients and topics, and the values used instead."""
        if self.lacks:
            lacks = "" if named else ", and no log names a topic"
            whose = "which NameServers and brokers name" if named else "made up"
            none, added = " or ".join(self.lacks), " and ".join(f"one {kind}" for kind in self.lacks)
            were = "were" if len(self.lacks) > 1 else "was"
            yield (
                f"No log of a {none} is there{lacks}: {added} of {topic}, {whose}, {were} added, so that sends and "
                "pulls are seen. The similarity counts no transition of theirs."
            )
        elif not named:
            yield f"No log names a topic: {topic}, made up, stands for those of these clients."

    def workload(self, rows: Sequence[Row], lasts_ms: float, notes: list[str]) -> dict[str, Any]:
        used: Counter[str] = Counter()
        queues: Counter[tuple[str, int]] = Counter()
        brokers = set(self.ours)
        for row in rows:
            topic = row.get("topic")
            if row["event"] not in ("route", "route_changed", "topic") or is_system(topic, brokers):
                continue
            value = object_of(row.get("value"))
            used[str(topic)] += 5 if row["event"] == "route_changed" else 1
            for of in (value.get("queues") or {}).values():
                if isinstance(of, list) and len(of) > 1 and isinstance(of[1], int):
                    queues[str(topic), of[1]] += 1
        topic = used.most_common(1)[0][0] if used else UNNAMED_TOPIC
        notes.extend(self._made_up(topic, named=bool(used)))
        of_topic = [(count, n) for (name, n), count in queues.items() if name == topic]
        sends_per_s = 4 if lasts_ms <= 900_000 and self.producers <= 8 else 1
        notes.append(
            f"Logs do not say how much was sent: each producer of the replay sends {sends_per_s} messages a second "
            "(--set workload.sends_per_s=N)."
        )
        return {
            "topic": re.sub(r"[^A-Za-z0-9%|_-]", "-", topic)[:127],
            "queues": min(64, max(1, max(of_topic)[1])) if of_topic else 4,
            "producers": self.producers,
            "consumers": self.consumers,
            "sends_per_s": sends_per_s,
            "client_starts": 0,
        }


def _kept(names: Sequence[str], stem: str) -> list[str]:
    """Return the names in a scenario's order if they are exactly a scenario's names; else unchanged."""
    wanted = [f"{stem}{at if stem != 'broker-' else chr(ord('a') + at)}" for at in range(len(names))]
    return wanted if set(names) == set(wanted) else [*names]


def _most(names: list[str], most: int, wanted: set[str], what: str, notes: list[str]) -> list[str]:
    if len(names) <= most:
        return names
    first = [name for name in names if name in wanted]
    kept = set([*first, *(name for name in names if name not in wanted)][:most])
    notes.append(f"A scenario has at most {most} {what}: {len(names) - most} of {len(names)} are left out.")
    return [name for name in names if name in kept]


def _config(incident: Incident, world: World) -> dict[str, Any]:
    """Return the settings that differ from the dialect's defaults, by RocketMQ's names."""
    default = Timers.for_profile(world.timers.profile)
    config: dict[str, dict[str, Any]] = {}
    for word, timer in incident.timers.items():
        if timer.by == "default" or word not in _TIMERS:
            continue
        group, symbol = _TIMERS[word]
        usual = getattr(default, f"{symbol}_ms")
        if abs(timer.ms - usual) <= (_FITTED_MS if timer.by == "fitted" else 0):
            continue
        for setting in settings_for(*GROUPS[group]).values():
            if setting.symbol == symbol and world.timers.profile in setting.profiles:
                factor = 1000 if setting.name.endswith("Seconds") else 1
                config.setdefault(group, {})[setting.name] = round(timer.ms / factor)
    return {"config": config} if config else {}
