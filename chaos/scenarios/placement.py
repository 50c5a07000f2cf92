"""`placement:` of a scenario: the host of each node on a Ray cluster.

    placement:                              by default every host takes part, and nodes of a kind are on hosts in turn
      hosts: [a, b, c]                      only these, in this order; faults can name them then (`lose_host`)
      spread: true                          false: nodes that are not placed are on the first host
      ns-0: {host: a}                       one node, or a group: on this host
      brokers: {labels: {disk: ssd}}        in turn on the hosts whose Ray nodes have these labels
      producers: {resources: {load: 1}}     or have at least so much of these Ray resources

The first host is the first entry of `hosts`, by default the driver's host. The prober and the admin are on the first
host if no place of their own is given. Proxies of outside clients are on the driver's host.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from ..errors import ScenarioError
from ..faults.fault import Strict
from ..topology import NodeKind, Topology, broker_id, broker_name

HostName = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,63}$")]
_FIRST = (NodeKind.PROBER, NodeKind.ADMIN)


class PlaceModel(Strict):
    """A place for a node: exactly one of a host, labels, or resources."""

    host: HostName | None = None
    labels: dict[str, str] = Field({})
    resources: dict[str, Annotated[float, Field(gt=0, strict=True)]] = Field({})

    @model_validator(mode="after")
    def _says_one(self) -> PlaceModel:
        if (self.host is not None) + bool(self.labels) + bool(self.resources) != 1:
            raise ValueError("a place is one of `host: NAME`, `labels: {NAME: VALUE}` and `resources: {NAME: NUMBER}`")
        return self


class PlacementModel(Strict):
    hosts: tuple[HostName, ...] = Field((), max_length=64)
    spread: bool = True
    nodes: dict[str, PlaceModel] = Field({})
    """By node or group; in YAML they are beside `hosts` and `spread`."""

    @model_validator(mode="before")
    @classmethod
    def _parted(cls, document: Any) -> Any:
        if not isinstance(document, dict) or "nodes" in document:
            return document
        own = {key: value for key, value in document.items() if key in ("hosts", "spread")}
        return {**own, "nodes": {key: value for key, value in document.items() if key not in own}}

    @model_serializer(mode="wrap")
    def _joined(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        said = handler(self)
        places = {
            name: {key: value for key, value in place.items() if value} for name, place in said.pop("nodes").items()
        }
        return {**said, **places}

    @property
    def is_static(self) -> bool:
        """Whether the scenario alone says which node is on which host."""
        return bool(self.hosts) and all(place.host is not None for place in self.nodes.values())


class Offer(NamedTuple):
    """A host with the labels and resources of its Ray node."""

    name: str
    labels: Mapping[str, str] = {}
    resources: Mapping[str, float] = {}


def placed(topology: Topology, placement: PlacementModel, offers: Sequence[Offer], *, file: str) -> dict[str, str]:
    """Return the host of each node, except outside clients. `offers` are the hosts of the Ray cluster, the driver's
    host first. Raises ScenarioError if no host fits a node's place."""
    there = {offer.name: offer for offer in offers}
    for index, name in enumerate(placement.hosts):
        if name not in there:
            raise ScenarioError(file, f"placement.hosts.{index}", name, _one_of(there))
    used = [there[name] for name in placement.hosts] or list(offers)
    at = {name: place for group, place in placement.nodes.items() for name in topology.members(group)}
    at |= {name: place for name, place in placement.nodes.items() if name in topology.kinds}  # a node's own comes first
    found: dict[str, str] = {}
    turns: dict[object, int] = {}
    for name, kind in topology.kinds.items():
        if kind is NodeKind.EXTERNAL:
            continue
        place = at.get(name)
        if place is not None:
            among = list(_fit(place, used))
            if not among:
                raise ScenarioError(file, *_unfit(name, place, used, placement))
        else:
            among = [used[0]] if kind in _FIRST or not placement.spread else used
        if kind is NodeKind.SLAVE and found[broker_name(name)] in (offer.name for offer in among):
            master = next(i for i, offer in enumerate(among) if offer.name == found[broker_name(name)])
            step = 1 + (broker_id(name) - 1) % max(len(among) - 1, 1)  # never round to the master's own
            found[name] = among[(master + step) % len(among)].name
            continue
        turn = turns.setdefault((kind, tuple(offer.name for offer in among)), 0)
        turns[kind, tuple(offer.name for offer in among)] = turn + 1
        found[name] = among[turn % len(among)].name
    return found


def _fit(place: PlaceModel, offers: Sequence[Offer]) -> Iterator[Offer]:
    for offer in offers:
        if place.host is not None and offer.name != place.host:
            continue
        if any(offer.labels.get(name) != value for name, value in place.labels.items()):
            continue
        if any(offer.resources.get(name, 0.0) < amount for name, amount in place.resources.items()):
            continue
        yield offer


def _one_of(names: Mapping[str, object] | Sequence[str]) -> str:
    said = ", ".join(names)
    return f"a host that there is: {said}" + (
        "; more hosts are those of a Ray cluster, --ray" if len(names) == 1 else ""
    )


def _unfit(name: str, place: PlaceModel, offers: Sequence[Offer], placement: PlacementModel) -> tuple[str, str, str]:
    of = next((key for key in (name, *placement.nodes) if placement.nodes.get(key) is place), name)
    names = [offer.name for offer in offers]
    if place.host is not None:
        return f"placement.{of}.host", place.host, _one_of(names)
    kind = "labels" if place.labels else "resources"
    said = ", ".join(f"{key}: {value}" for key, value in (place.labels or place.resources).items())
    return f"placement.{of}.{kind}", f"{{{said}}}", f"{kind} that one of the hosts {', '.join(names)} has"
