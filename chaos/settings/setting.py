"""A setting: RocketMQ's name, class, default and allowed values, and the nodes that have it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ...actors.broker.config import BrokerConfig, parse_delay_levels
from ...actors.errors import ConfigError
from ...actors.namesrv.config import Constants, NamesrvConfig
from ...clients.config import ClientConfig, ProducerConfig
from ...clients.consumer.config import ConsumerConfig
from ...remoting.node.profile import Profile
from ..topology import NodeKind

# -- what a setting may be set to: each kind of value says in a user's words what is allowed, and refuses the rest

Value = bool | int | str | tuple[int, ...]


class Allowed(Protocol):
    """A kind of value of a setting. `str()` of the object says what is allowed."""

    def taken(self, value: object) -> Value:
        """Return the value as a node has it; ValueError for a value that is not allowed."""


@dataclass(frozen=True, slots=True)
class Truth:
    def taken(self, value: object) -> Value:
        if not isinstance(value, bool):
            raise ValueError
        return value

    def __str__(self) -> str:
        return "true or false"


@dataclass(frozen=True, slots=True)
class Whole:
    """Whole numbers from `least` to `most` in `unit` (empty: a count). `also` is one more allowed value, such as -1 for
    off."""

    least: int
    most: int
    unit: str = ""
    also: int | None = None

    def taken(self, value: object) -> Value:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError
        if not self.least <= value <= self.most and value != self.also:
            raise ValueError
        return value

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        also = "" if self.also is None else f", or {self.also}"
        return f"a whole number from {self.least} to {self.most}{unit}{also}"


@dataclass(frozen=True, slots=True)
class OneOf:
    words: tuple[str, ...]

    def taken(self, value: object) -> Value:
        if not isinstance(value, str) or value not in self.words:
            raise ValueError
        return value

    def __str__(self) -> str:
        return f"one of {', '.join(self.words)}"


@dataclass(frozen=True, slots=True)
class Ascending:
    """A list of whole numbers from 0 on. `ascends`: each is greater than the number before."""

    unit: str
    ascends: bool = True

    def taken(self, value: object) -> Value:
        if not isinstance(value, Sequence) or isinstance(value, str) or not value:
            raise ValueError
        if any(isinstance(one, bool) or not isinstance(one, int) or one < 0 for one in value):
            raise ValueError
        if self.ascends and sorted(set(value)) != list(value):
            raise ValueError
        return tuple(value)

    def __str__(self) -> str:
        return f"a list of whole numbers from 0 on, in {self.unit}" + (", each more than the last" * self.ascends)


@dataclass(frozen=True, slots=True)
class DelayLevels:
    def taken(self, value: object) -> Value:
        try:
            parse_delay_levels(str(value))
        except ConfigError as exc:
            raise ValueError from exc
        return str(value)

    def __str__(self) -> str:
        return "numbers followed by s, m, h or d, with spaces, such as 1s 5s 1m"


@dataclass(frozen=True, slots=True)
class Host:
    def taken(self, value: object) -> Value:
        if not isinstance(value, str) or not re.fullmatch(r"[\w.-]+", value):
            raise ValueError
        return value

    def __str__(self) -> str:
        return "a host's name or IPv4 address"


NAME_SERVERS, BROKERS = (NodeKind.NAME_SERVER,), (NodeKind.BROKER, NodeKind.SLAVE)
PRODUCERS, CONSUMERS = (NodeKind.PRODUCER,), (NodeKind.CONSUMER,)
CLIENTS = (NodeKind.PRODUCER, NodeKind.CONSUMER, NodeKind.PROBER)
BOTH = (Profile.V4_9, Profile.V5_X)
CONSTANTS = "constants."
"""Prefix of the fields of a NameServer's constants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting. `name` and `upstream` (the class) are RocketMQ's; `fields` are the fields of a node's configuration
    that the setting sets.

    `factor`: the field's units per unit of the setting. `symbol`: the window's timer (oracle/timers.py) that it sets,
    in units of `symbol_factor` milliseconds. `profiles`: the profiles that have the setting. `constant`: the profiles
    in which Java has a literal instead of a setting. `defaults`: the defaults by profile, if they differ from the
    configuration's.
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
    """Whether only Apache's programs have it: it is refused for our nodes (`fields` is empty)."""

    def default(self, profile: Profile) -> Value:
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

GROUPS: Mapping[str, tuple[NodeKind, ...]] = {
    "name_servers": NAME_SERVERS,
    "brokers": BROKERS,
    "clients": CLIENTS,
    "producers": PRODUCERS,
    "consumers": CONSUMERS,
}
"""Groups allowed in `config:` beside single nodes; a smaller group's value has priority."""
ELECTS = DLEDGER, CONTROLLER = ("enableDLegerCommitLog", "enableControllerMode")
"""Settings of brokers that elect the master of their name."""


def setting_of(group: str, name: str, entry: Mapping[str, Any]) -> Setting:
    told = dict(entry)
    taken_by = (NodeKind(told.pop("only")),) if "only" in told else GROUPS[group]
    own = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    own = f"{own}_ms" if hasattr(_DEFAULTS[taken_by[0]], f"{own}_ms") else own
    by_profile = {Profile(profile): _hashable(value) for profile, value in told.pop("defaults", {}).items()}
    return Setting(
        name=name,
        upstream=told.pop("class"),
        taken_by=taken_by,
        fields=told.pop("fields", own),
        allowed=_allowed(told.pop("allowed", None)),
        profiles=tuple(map(Profile, told.pop("profiles", BOTH))),
        constant=tuple(map(Profile, told.pop("constant", ()))),
        defaults=by_profile,
        **told,
    )


def _allowed(said: Any) -> Allowed:
    if said is None:
        return Truth()
    if said == "delay levels":
        return DelayLevels()
    if said == "host":
        return Host()
    if "one_of" in said:
        return OneOf(tuple(said["one_of"]))
    if "list" in said:
        return Ascending(said["list"], said.get("ascends", True))
    return Whole(said["from"], said["to"], said.get("unit", ""), said.get("also"))


def _hashable(value: Any) -> Value:
    return tuple(value) if isinstance(value, list) else value
