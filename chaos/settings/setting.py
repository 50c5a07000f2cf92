"""What a setting is: RocketMQ's name for it, its class, default and allowed values, and which nodes take it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...actors.broker.config import BrokerConfig
from ...actors.namesrv.config import Constants, NamesrvConfig
from ...clients.config import ClientConfig, ProducerConfig
from ...clients.consumer.config import ConsumerConfig
from ...remoting.node.profile import Profile
from ..topology import NodeKind
from .values import Allowed, Truth, Value, Whole

NAME_SERVERS, BROKERS = (NodeKind.NAME_SERVER,), (NodeKind.BROKER, NodeKind.SLAVE)
PRODUCERS, CONSUMERS = (NodeKind.PRODUCER,), (NodeKind.CONSUMER,)
CLIENTS = (NodeKind.PRODUCER, NodeKind.CONSUMER, NodeKind.PROBER)
V4_9, V5_X = Profile.V4_9, Profile.V5_X
BOTH = (V4_9, V5_X)
CONSTANTS = "constants."
"""How the field of a NameServer's constant begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting. `name` and `upstream` (the class) are RocketMQ's; `fields` is where a node's configuration has it.

    `factor`: so many of the field's units are one of the setting's. `symbol`: the window's timer (oracle/timers.py)
    that it sets, in milliseconds `symbol_factor` each. `profiles`: where it exists. `constant`: where Java has a
    literal. `defaults`: where they differ by profile from the configuration's own.
    """

    name: str
    upstream: str
    taken_by: tuple[NodeKind, ...]
    fields: str
    allowed: Allowed
    says: str
    factor: int = 1
    symbol: str | None = None
    profiles: tuple[Profile, ...] = BOTH
    constant: tuple[Profile, ...] = ()
    defaults: Mapping[Profile, Value] = field(default_factory=dict)
    of_apache: bool = False
    """Whether Apache's programs alone have it: nodes of ours that are told of it are refused (`fields` is empty)."""

    def default(self, profile: Profile) -> Value:
        """RocketMQ's own value in this profile."""
        if profile in self.defaults:
            return self.defaults[profile]
        of = self.fields.removeprefix(CONSTANTS)
        value: Value = getattr(Constants() if of != self.fields else _DEFAULTS[self.taken_by[0]], of)
        return value // self.factor if isinstance(value, int) and self.factor > 1 else value


_DEFAULTS: Mapping[NodeKind, object] = {
    NodeKind.NAME_SERVER: NamesrvConfig(),
    NodeKind.BROKER: BrokerConfig(),
    NodeKind.SLAVE: BrokerConfig(),
    NodeKind.PRODUCER: ProducerConfig(),
    NodeKind.CONSUMER: ConsumerConfig(),
    NodeKind.PROBER: ClientConfig(),
}

MS = Whole(1, 600_000, "ms")
COUNT = Whole(1, 1_000_000)


def truth(name: str, upstream: str, taken_by: tuple[NodeKind, ...], fields: str, says: str) -> Setting:
    return Setting(name=name, upstream=upstream, taken_by=taken_by, fields=fields, allowed=Truth(), says=says)


def truth_5(name: str, fields: str, says: str) -> Setting:
    return Setting(
        name=name,
        upstream="NamesrvConfig",
        taken_by=NAME_SERVERS,
        fields=fields,
        allowed=Truth(),
        says=says,
        profiles=(V5_X,),
    )


def number(
    name: str, upstream: str, taken_by: tuple[NodeKind, ...], fields: str, allowed: Allowed, says: str
) -> Setting:
    return Setting(name=name, upstream=upstream, taken_by=taken_by, fields=fields, allowed=allowed, says=says)
