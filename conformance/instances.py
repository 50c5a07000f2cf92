"""Separates the observations of a program's clients. A process can have several clients, each with a NameServer.

    observations of a process ─► fronts/instances.py ─► a part for each of its clients ─► clients by their topics

A client is named after the topics whose routes it queries, which are the same in every situation. A client with too few
observations for a name is ignored.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..chaos.fronts.instances import Instance, Instances, ids_of
from ..chaos.fronts.observed import Answered, Asked, Behaved, Dialled, Happened, Observation, Opened, Reported
from .situations import SITUATIONS, RouteAnswers, Target, Watched

Part = tuple[frozenset[str], Watched]
SELDOM = 4
"""A set of topics that is this many times rarer than another set belongs to no client."""
ONLY = ""
"""Name of a program's only client."""


def clients_of(watched: Sequence[Watched]) -> dict[str, list[Watched]]:
    """Return the observations by client name; the name is ONLY if no process has clients with different topics. A
    process's heartbeats show how many clients the process has."""
    clients = clients_in(watched)
    split = [parts_of(one, clients) for one in watched]
    if all(len(parts) == 1 for parts in split):
        return {ONLY: [*watched]}
    parts = [part for of in split for part in of]
    kinds = _kinds(parts)
    if len(kinds) < 2:
        return {ONLY: [one for _, one in parts]}
    names = {kind: ", ".join(sorted(kind)) for kind in kinds}
    found: dict[str, list[Watched]] = {name: [] for name in names.values()}
    for topics, one in parts:
        kind = _kind_of(topics, kinds)
        if kind is not None:
            found[names[kind]].append(one)
    return found


def clients_in(watched: Sequence[Watched]) -> int:
    """Return how many clients a process of the program has, by the clientIDs in heartbeats: the largest number of all
    processes; 0 without heartbeats."""
    return max((len({found for asked in one.of(Asked) for found in ids_of(asked)}) for one in watched), default=0)


def _kinds(parts: Sequence[Part]) -> list[frozenset[str]]:
    """Return the sets of topics that single clients ask for. A set that was seen only once comes from two clients that
    were taken for one."""
    lasting = [topics for topics, one in parts if topics and not one.unclear and not SITUATIONS[one.situation].many]
    seen = Counter(lasting or [topics for topics, _ in parts if topics])
    most = max(seen.values(), default=0)
    return [topics for topics, times in seen.items() if SELDOM * times >= most]


def _kind_of(topics: frozenset[str], kinds: Sequence[frozenset[str]]) -> frozenset[str] | None:
    if topics in kinds:
        return topics
    common = Counter({kind: len(kind & topics) for kind in kinds})
    (first, most), (_, second) = common.most_common(2)
    return first if most > second else None


def parts_of(watched: Watched, clients: int) -> list[Part]:
    """Return topics and observations of each client of the process, except clients that did not use the NameServer that
    the situation disturbs."""
    instances: list[Instance] = []
    seen: dict[int, list[Observation]] = {}

    def came(instance: Instance) -> None:
        instances.append(instance)
        seen[instance.number] = []

    def saw(instance: Instance, one: Observation) -> None:
        seen[instance.number].append(one)

    found = Instances(came, saw, lambda _one, _at_ms: None, watched.name_servers, clients=clients)
    for one in watched.seen:
        found.see(replace(one, process=watched.process) if isinstance(one, Opened | Dialled) else one)
    found.end(watched.ended_ms)
    fronts = {*watched.name_servers}
    askers = [each for each in instances if any(getattr(one, "front", None) in fronts for one in seen[each.number])]
    if len(askers) < 2:
        return [(frozenset(askers[0].topics if askers else ()), watched)]
    shared = [one for one in watched.seen if isinstance(one, Behaved | Happened | Reported)]
    parts = []
    for each in askers:
        alone = [one for one in seen[each.number] if not isinstance(one, Behaved)]
        part = tuple(sorted((*shared, *alone), key=lambda one: one.at_ms))
        if _is_met(watched, part):
            at_work_ms = next((one.at_ms for one in _look_ups(part) if one.code == 0), None)
            own = replace(watched, seen=part, unclear=each.unclear, at_work_ms=at_work_ms)
            parts.append((frozenset(each.topics), own))
    return parts


def _look_ups(part: Sequence[Observation]) -> Iterator[Answered]:
    return filter(None, map(RouteAnswers().answer, part))


def fails_chosen(situation: str) -> bool:
    """Whether the situation disturbs only the NameServer in use, which is one client's of several."""
    met = {step.target for step in SITUATIONS[situation].steps if step.at_s is not None}
    return Target.CHOSEN in met and Target.OTHERS not in met


def _is_met(watched: Watched, part: Sequence[Observation]) -> bool:
    """Whether the situation affects this client, if it affects only the NameServer in use."""
    if not fails_chosen(watched.situation):
        return True
    since_ms, fronts = watched.at_work_ms or watched.began_ms, watched.name_servers
    broken = next(
        (one for one in part if isinstance(one, Behaved) and one.at_ms >= since_ms and one.front in fronts), None
    )
    if broken is None:
        return True
    before = [one.front for one in _look_ups(part) if one.at_ms <= broken.at_ms]
    return not before or before[-1] == broken.front
