"""The topics of a scenario: its own, others by name or by a pattern, and which client uses which, in which group."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Protocol

from ..errors import ScenarioError, nearest
from ..topology import CONSUMER_GROUP, NodeKind, Topology

TOPICS_MAX = 20_000
_RANGE = re.compile(r"^(?P<before>.*)\{(?P<first>\d+)\.\.(?P<last>\d+)\}(?P<after>.*)$")
_TOPIC = re.compile(r"[A-Za-z0-9%|_-]{1,127}")


class Queues(Protocol):
    @property
    def queues(self) -> int: ...


class Topics(Protocol):
    """A workload."""

    @property
    def topic(self) -> str: ...
    @property
    def queues(self) -> int: ...
    @property
    def topics(self) -> Mapping[str, Queues]: ...


class Uses(Protocol):
    """An entry of `nodes:`."""

    @property
    def topic(self) -> str | None: ...
    @property
    def group(self) -> str | None: ...


def all_topics(workload: Topics, file: str) -> dict[str, int]:
    """Topic to queues, the workload's own first. ScenarioError for what is no name, stands twice, or is too many."""
    found = {workload.topic: workload.queues}
    for pattern, topic in workload.topics.items():
        place = f"workload.topics.{pattern}"
        for name in _names(pattern, place, file):
            if not _TOPIC.fullmatch(name):
                allowed = "letters, digits, %, |, _ and -, up to 127 of them, and {1..2000} for a range"
                raise ScenarioError(file, place, repr(name), allowed)
            if name in found:
                raise ScenarioError(file, place, name, "each topic once")
            if len(found) == TOPICS_MAX:
                raise ScenarioError(file, place, f"more than {TOPICS_MAX} topics", f"up to {TOPICS_MAX} in all")
            found[name] = topic.queues
    return found


def _names(pattern: str, place: str, file: str) -> Iterator[str]:
    match = _RANGE.match(pattern)
    if match is None:
        yield pattern
        return
    first, last = int(match["first"]), int(match["last"])
    if first > last:
        raise ScenarioError(file, place, f"{first}..{last}", "a range that ascends, such as {1..2000}")
    for number in range(first, last + 1):
        yield f"{match['before']}{number}{match['after']}"


def topic_of(node: Uses | None, topic: str) -> str:
    """The topic of a client, `topic` being the workload's."""
    return node.topic if node is not None and node.topic is not None else topic


def group_of(node: Uses | None, topic: str) -> str:
    """The group of a consumer: its own, or one for each topic."""
    if node is not None and node.group is not None:
        return node.group
    own = topic_of(node, topic)
    return CONSUMER_GROUP if own == topic else f"{CONSUMER_GROUP}-{own}"


def check_topics(
    nodes: Mapping[str, Uses], topology: Topology, topic: str, topics: Mapping[str, int], *, file: str
) -> None:
    """ScenarioError for a client of a topic that is none, and for a group whose consumers read different topics."""
    for name, node in nodes.items():
        kind = topology.kinds[name]
        if node.topic is not None and kind not in (NodeKind.PRODUCER, NodeKind.CONSUMER):
            raise ScenarioError(file, f"nodes.{name}.topic", node.topic, "said of a producer or consumer only")
        if node.group is not None and kind is not NodeKind.CONSUMER:
            raise ScenarioError(file, f"nodes.{name}.group", node.group, "said of a consumer only")
        if node.topic is not None and node.topic not in topics:
            few = ", ".join([*topics][:8]) + (", …" if len(topics) > 8 else "")
            allowed = f"a topic of workload.topic or workload.topics ({few}){nearest(node.topic, topics)}"
            raise ScenarioError(file, f"nodes.{name}.topic", repr(node.topic), allowed)
    reads: dict[str, tuple[str, str]] = {}
    for consumer in topology.of(NodeKind.CONSUMER):
        group, own = group_of(nodes.get(consumer), topic), topic_of(nodes.get(consumer), topic)
        other, before = reads.setdefault(group, (consumer, own))
        if before != own:
            allowed = f"a group of its own: {other} of {group} reads {before}, and all of a group read the same"
            raise ScenarioError(file, f"nodes.{consumer}.topic", own, allowed)
