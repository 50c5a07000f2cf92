"""A setting: RocketMQ's name, class, default and allowed values, and the nodes that have it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...actors.broker.config import BrokerConfig, parse_delay_levels
from ...actors.errors import ConfigError
from ...actors.namesrv.config import Constants, NamesrvConfig
from ...clients.config import ClientConfig, ProducerConfig
from ...clients.consumer.config import ConsumerConfig
from ...remoting.node.profile import Profile
from ..topology import NodeKind

Value = bool | int | str | tuple[int, ...]


class Allowed(NamedTuple):
    words: str
    has: Callable[[Any], bool]


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

    `factor`: the field's units per unit of the setting. `symbol`: the oracle's timer (oracle/timers.py) that the
    setting sets. `profiles`: the profiles that have the setting. `constant`: the profiles in which Java has a literal
    instead of a setting. `defaults`: each profile's default, if it differs from the configuration's default.
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
    by_profile = {Profile(profile): hashable(value) for profile, value in told.pop("defaults", {}).items()}
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
    match said:
        case None:
            return Allowed("true or false", lambda value: isinstance(value, bool))
        case "delay levels":
            return Allowed("numbers followed by s, m, h or d, with spaces, such as 1s 5s 1m", _are_delay_levels)
        case "host":
            return Allowed("a host's name or IPv4 address", _is_host)
        case {"one_of": words}:
            return Allowed(f"one of {', '.join(words)}", lambda value: value in words)
        case {"list": unit, **more}:
            ascends = more.get("ascends", True)
            words = f"a list of whole numbers from 0 on, in {unit}" + (", each more than the last" if ascends else "")
            return Allowed(words, lambda value: _are_whole(value) and (not ascends or sorted({*value}) == [*value]))
    least, most, unit, also = (said.get(key) for key in ("from", "to", "unit", "also"))
    words = f"a whole number from {least} to {most}" + (f" {unit}" if unit else "")
    return Allowed(
        words if also is None else f"{words}, or {also}",
        lambda value: _is_whole(value) and (least <= value <= most or value == also),
    )


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _are_whole(value: object) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(_is_whole(one) and one >= 0 for one in value)


def _is_host(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[\w.-]+", value) is not None


def _are_delay_levels(value: object) -> bool:
    try:
        return bool(parse_delay_levels(str(value)))
    except ConfigError:
        return False


def hashable(value: Any) -> Value:
    return tuple(value) if isinstance(value, list) else value
