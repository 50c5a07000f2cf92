"""Turns a scenario's `config:` into each node's validated settings and the fields of its configuration.

timers:, workload:          older keys for the same settings
  └─ clients                a group of groups
       └─ producers         a group
            └─ producer-0   a single node: has priority over all
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ...actors.broker.config import BrokerConfig
from ...actors.errors import ConfigError
from ...actors.namesrv.config import Constants
from ...remoting.node.profile import Profile
from ..errors import NotAllowed, nearest
from ..topology import NodeKind
from .catalogue import CATALOGUE, key_of, settings_for, why_not
from .setting import BROKERS, CONSTANTS, GROUPS, Setting, Value, hashable

Said = Mapping[str, Mapping[str, object]]
"""Group or node to RocketMQ's name to value, as in the file."""
Settings = Mapping[str, Mapping[str, Value]]
"""Node to RocketMQ's name to value, for values in the file; others have their default."""


def settings_of(
    config: Said, nodes: Mapping[str, NodeKind], profile: Profile, *, before: Mapping[str, Mapping[str, Value]]
) -> dict[str, dict[str, Value]]:
    """Return the settings of each node. `before` has values from other keys of the scenario, by group. Raises
    NotAllowed for the first error, such as different values for one setting."""
    found: dict[str, dict[str, Value]] = {}
    ours = {where: _checked(where, config[where], GROUPS[where], profile) for where in config if where in GROUPS}
    for group, said in before.items():
        _refuse_another(ours, group, said)
    for one in (before, ours):
        for group in sorted(one, key=lambda name: -len(GROUPS[name])):
            members = [name for name, kind in nodes.items() if kind in GROUPS[group]]
            _give(found, members, nodes, one[group], profile)
    for where in config:
        if where in GROUPS:
            continue
        kind = nodes.get(where)
        if kind is None or kind is NodeKind.EXTERNAL:
            known = [*GROUPS, *(name for name, kind in nodes.items() if kind is not NodeKind.EXTERNAL)]
            allowed = f"one of {', '.join(known)}{nearest(where, known)}"
            raise NotAllowed(f"config.{where}", "a node or group of that name", allowed)
        _give(found, [where], nodes, _checked(where, config[where], (kind,), profile), profile)
    for node, values in found.items():
        config_fields(values, nodes[node], profile, place=_place_of(config, node, nodes[node]))
    _refuse_short_silence(found, nodes, profile)
    return found


def _refuse_short_silence(found: Settings, nodes: Mapping[str, NodeKind], profile: Profile) -> None:
    """Raise NotAllowed if a healthy node would be given up between two signs of life, which no window covers: a broker
    between two registrations, or a client, whose channel closes, between two heartbeats."""

    def value(node: str, name: str) -> int:
        setting = settings_for(nodes[node])[name]
        return int(str(found.get(node, {}).get(name, setting.default(profile))))

    def of(*kinds: NodeKind) -> list[str]:
        return [name for name, kind in nodes.items() if kind in kinds]

    beat = "heartbeatBrokerInterval"
    beats_ms = {client: value(client, beat) for client in of(NodeKind.PRODUCER, NodeKind.CONSUMER)}
    servers, longest_ms = of(NodeKind.NAME_SERVER), max(beats_ms.values(), default=0)
    borne = [(broker, "serverChannelMaxIdleTimeSeconds", 1000, longest_ms, beat) for broker in of(*BROKERS)]
    borne += [(one, "clientChannelMaxIdleTimeSeconds", 1000, beat_ms, beat) for one, beat_ms in beats_ms.items()]
    for broker in of(*BROKERS):
        silent_ms = value(broker, "registerNameServerPeriod") + value(broker, "registerBrokerTimeoutMills")
        acting = bool(found.get(broker, {}).get("enableSlaveActingMaster")) and profile is Profile.V5_X
        by = [(one, "serverChannelMaxIdleTimeSeconds", 1000) for one in servers]
        by.append((broker, "clientChannelMaxIdleTimeSeconds", 1000))
        if profile is Profile.V4_9:
            by += [(one, "brokerChannelExpiredTime", 1) for one in servers]
        elif not acting:  # else each heartbeat counts
            by.append((broker, "brokerNotActiveTimeoutMillis", 1))
        whose = f"{broker}'s registerNameServerPeriod and registerBrokerTimeoutMills"
        borne += [(*one, silent_ms, whose) for one in by]
    for node, name, unit_ms, least_ms, whose in borne:
        if (said := value(node, name)) * unit_ms <= least_ms:
            raise NotAllowed(f"config: {name} of {node}", str(said), f"more than the {least_ms} ms of {whose}")


def _refuse_another(ours: Mapping[str, Mapping[str, Value]], group: str, said: Mapping[str, Value]) -> None:
    """Raise NotAllowed if `config:` has another value for a setting than another key of the file."""
    for name, value in said.items():
        now = ours.get(group, {}).get(name, value)
        if now != value:
            allowed = f"{value}, as timers: or workload: says of the same setting; or say it here only"
            raise NotAllowed(f"config.{group}.{name}", str(now), allowed)


def _give(
    found: dict[str, dict[str, Value]],
    members: Iterable[str],
    nodes: Mapping[str, NodeKind],
    said: Mapping[str, Value],
    profile: Profile,
) -> None:
    for member in members:
        taken = settings_for(nodes[member])
        mine = {name: value for name, value in said.items() if name in taken and profile in taken[name].profiles}
        if mine:
            found.setdefault(member, {}).update(mine)


def _place_of(config: Said, node: str, kind: NodeKind) -> str:
    said = [where for where in config if where == node or kind in GROUPS.get(where, ())]
    return f"config.{node if node in said or not said else said[-1]}"


def _checked(where: str, said: object, kinds: tuple[NodeKind, ...], profile: Profile) -> dict[str, Value]:
    """Return the values of one group or node. NotAllowed for an invalid value, or a name that none of `kinds` has."""
    place = f"config.{where}"
    if not isinstance(said, Mapping):
        raise NotAllowed(place, repr(said), "a mapping of settings to values")
    known = settings_for(*kinds)
    values: dict[str, Value] = {}
    for name, value in said.items():
        setting = known.get(str(name))
        if setting is None:
            raise NotAllowed(f"{place}.{name}", repr(value), _unknown(str(name), where, known))
        if profile not in setting.profiles:
            only = f"a setting of profile {', '.join(setting.profiles)} only"
            raise NotAllowed(f"{place}.{name}", only, f"a setting of profile {profile}{_like(setting, profile)}")
        if not setting.allowed.has(value):
            raise NotAllowed(f"{place}.{name}", repr(value), setting.allowed.words)
        values[str(name)] = hashable(value)
    return values


def _like(setting: Setting, profile: Profile) -> str:
    """Return the setting of the profile that the same time limit depends on; "" if there is none."""
    for one in CATALOGUE:
        if setting.symbol and one.symbol == setting.symbol and profile in one.profiles:
            return f", {key_of(one)}, which has this effect"
    return ""


def _unknown(name: str, where: str, known: Mapping[str, Setting]) -> str:
    elsewhere = [group for group, kinds in GROUPS.items() if group != "clients" and name in settings_for(*kinds)]
    if elsewhere:
        return f"under {' or '.join(elsewhere)}: {where} does not take it"
    if (why := why_not(name)) is not None:
        return f"a setting that the nodes obey (docs/settings.md): {why}"
    return f"a setting of RocketMQ that docs/settings.md lists for {where}{nearest(name, known)}"


def config_fields(
    values: Mapping[str, Value], kind: NodeKind, profile: Profile, *, place: str = "config"
) -> dict[str, object]:
    """Return the fields of a node's configuration for these settings. Raises NotAllowed for an impossible
    combination."""
    known = settings_for(kind)
    fields: dict[str, object] = {}
    constants = Constants()
    for name, value in values.items():
        setting = known[name]
        if setting.of_apache:
            continue
        if setting.fields.startswith(CONSTANTS):
            constants = replace(constants, **{setting.fields.removeprefix(CONSTANTS): int(str(value))})
        elif name == "scanNotActiveBrokerInterval" and profile is Profile.V4_9:
            constants = replace(constants, scan_4_9_ms=int(str(value)))
        else:
            fields[setting.fields] = value * setting.factor if setting.factor > 1 and isinstance(value, int) else value
    if constants != Constants():
        fields["constants"] = constants
    if kind is NodeKind.PRODUCER and ("latencyMax" in values or "notAvailableDuration" in values):
        table = [values.get(name, known[name].default(profile)) for name in ("latencyMax", "notAvailableDuration")]
        latencies, isolations = (one if isinstance(one, tuple) else () for one in table)
        if len(latencies) != len(isolations):
            key = "notAvailableDuration" if "notAvailableDuration" in values else "latencyMax"
            allowed = f"{len(latencies)} entries in notAvailableDuration, as latencyMax has; here are {len(isolations)}"
            raise NotAllowed(f"{place}.{key}", str(values[key]), allowed)
        fields["latency_max"], fields["not_available_duration"] = latencies, isolations
    if kind in BROKERS:
        try:
            BrokerConfig(profile=profile, **fields)  # type: ignore[arg-type]  # the fields' types are the catalogue's
        except ConfigError as exc:
            raise NotAllowed(f"{place}.{exc.key}", str(exc.value), exc.allowed) from exc
    return fields
