"""Rules about several keys of a scenario, in the order in which the rules are tested.

A rule can rely on the rules before it, and raises NotAllowed for the first error that it finds. Rules about the order
of actions are in timeline_rules.py.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from ...remoting.node.network import Address
from ..apache.distribution import ALLOWED, OURS, distribution
from ..apache.maven import JavaMissing
from ..checks import CHECKS
from ..checks.check import Group
from ..errors import NotAllowed, nearest, one_of
from ..faults.acts_by_hand import Switch
from ..faults.clock_changes import ClockAction
from ..faults.kinds import NameServerList
from ..faults.process_faults import DiskAction
from ..oracle.client_profiles import PROFILES
from ..settings.catalogue import settings_for
from ..settings.setting import ELECTS
from ..topology import EXTERNAL, GROUPS, NodeKind, Topology, broker_name, listed
from . import timeline_rules
from .implementations import CLIENTS, SERVERS
from .model import Scenario

FEWEST_THAT_ELECT = 3
"""With fewer than three brokers, no majority is left after a loss to elect another master."""
_NEVER_SENT = {"brokerNotActiveTimeoutMillis": "Java sends it with enableSlaveActingMaster only"}
_DIALS = {"notifyMinBrokerIdChanged": "it would dial brokers to tell them (905), where no link of a NameServer leads"}
_MAY_HAVE_SETTINGS = (*SERVERS, *CLIENTS)


def lists_by_http(scenario: Scenario) -> None:
    """A NameServer list served by HTTP has at least one of the cluster's NameServers, and no entry twice. The timeline
    changes only a list that exists."""
    first, topology = scenario.cluster.name_server_list, scenario.topology()
    _name_server_list(first or (), topology, "cluster.name_server_list")
    for index, entry in enumerate(scenario.timeline):
        if not isinstance(entry.what, NameServerList):
            continue
        if first is None:
            allowed = "an action where `cluster.name_server_list` says what the address server answers with at first"
            raise NotAllowed(f"timeline.{index}.do", entry.what.do, allowed)
        _name_server_list(entry.what.name_servers, topology, f"timeline.{index}.name_servers")


def zones(scenario: Scenario) -> None:
    """Each member of a zone exists, and no node is in two zones."""
    topology, zone_of = scenario.topology(), dict[str, str]()
    for zone, members in scenario.zones.items():
        for index, member in enumerate(members):
            place, found = f"zones.{zone}.{index}", topology.members(member)
            if not found:
                names = (*topology.kinds, *GROUPS)
                none = ", and this cluster has none" if member in GROUPS else nearest(member, names)
                raise NotAllowed(place, repr(member), f"a node or a group, one of {listed(names)}{none}")
            for node in found:
                if zone_of.setdefault(node, zone) != zone:
                    raise NotAllowed(place, node, f"each node in one zone: it is in {zone_of[node]}, too")


def placement(scenario: Scenario) -> None:
    """Each entry of `placement` names an existing node or group. `hosts`, if given, contains each host once, and every
    host that an entry names."""
    said, topology = scenario.placement, scenario.topology()
    for index, host in enumerate(said.hosts):
        if host in said.hosts[:index]:
            raise NotAllowed(f"placement.hosts.{index}", host, "each host once")
    for name, place in said.nodes.items():
        if not topology.members(name) or name == "*":
            names = (*topology.nodes, *(group for group in GROUPS if group != "*"))
            none = ", and this cluster has none" if name in GROUPS else nearest(name, names)
            raise NotAllowed(f"placement.{name}", repr(name), f"a node or a group of this cluster{none}")
        if place.host is not None and said.hosts and place.host not in said.hosts:
            allowed = f"one of placement.hosts ({', '.join(said.hosts)}){nearest(place.host, said.hosts)}"
            raise NotAllowed(f"placement.{name}.host", place.host, allowed)


def phases(scenario: Scenario) -> None:
    known = scenario.topology().of(*_MAY_HAVE_SETTINGS)
    for node in scenario.phases:
        if node not in known:
            raise NotAllowed("phases", repr(node), f"one of {listed(known)}{nearest(node, known)}")


def clients_under_test(scenario: Scenario) -> None:
    """Names of clients under test are unique, their profiles exist, and the run is on the machine's clock with
    `time_scale: 1`."""
    if not (clients := scenario.cluster.clients):
        return
    inside = replace(scenario.topology(), outside=())
    taken = {*GROUPS, *inside.kinds, "harness", "toxiproxy", EXTERNAL}  # who has rows in a history
    for name, profile in clients.items():
        if name in taken or any(name.startswith(f"{other}-") for other in clients if other != name):
            allowed = "a name that no node, no group and no other client of the run has, nor begins with"
            raise NotAllowed(f"cluster.clients.{name}", repr(name), allowed)
        if profile is not None and profile not in PROFILES:
            raise NotAllowed(f"cluster.clients.{name}", repr(profile), one_of(PROFILES, profile))
    if scenario.timers.time_scale != 1:
        allowed = "1 where there are clients under test, whose timers go as the machine's clock does"
        raise NotAllowed("timers.time_scale", f"{scenario.timers.time_scale:g}", allowed)
    if scenario.clock == "virtual":
        raise NotAllowed("clock", "virtual", "real where there are clients under test")


def checks(scenario: Scenario) -> None:
    for index, check in enumerate(scenario.checks):
        if check not in CHECKS:
            raise NotAllowed(f"checks.{index}", repr(check), one_of([*CHECKS, *Group], check))


def settings(scenario: Scenario) -> None:
    scenario.settings()


def topics(scenario: Scenario) -> None:
    scenario.topics()


def nodes(scenario: Scenario) -> None:
    """Each node exists and has only keys of its kind, and its NameServer list is valid. No action affects the node
    before it joins. At least one broker and one NameServer do not join later."""
    topology, entries = scenario.topology(), scenario.timeline
    known = topology.of(*_MAY_HAVE_SETTINGS)
    for name, node in scenario.nodes.items():
        place = f"nodes.{name}"
        if name not in known:
            more = "; a slave is called by its master and its id, as in broker-a/1" if "/" in name else ""
            allowed = f"one of {listed(known)}{nearest(name, known)}{more}"
            raise NotAllowed(place, "a node of that name", allowed)
        kind = topology.kinds[name]
        if node.cluster_name is not None and kind is not NodeKind.BROKER:
            allowed = "this key on its master" if kind is NodeKind.SLAVE else "this key on a broker only"
            raise NotAllowed(f"{place}.cluster_name", node.cluster_name, allowed)
        if node.client_profile is not None and kind not in CLIENTS:
            raise NotAllowed(f"{place}.client_profile", node.client_profile, "this key on a client only")
        if node.name_servers is not None and kind is NodeKind.NAME_SERVER:
            raise NotAllowed(f"{place}.name_servers", str([*node.name_servers]), "this key on a broker or client")
        _name_server_list(node.name_servers or (), topology, f"{place}.name_servers")
        if node.joins_at_s is None:
            continue
        for index, entry in enumerate(entries):
            if name in entry.nodes and entry.at_s < node.joins_at_s:
                did = f"{entry.do} of {name} at {entry.at_s:g} s"
                raise NotAllowed(f"timeline.{index}.nodes", did, f"from {node.joins_at_s:g} s on, when it joins")
    for kind, who in ((NodeKind.BROKER, "broker"), (NodeKind.NAME_SERVER, "NameServer")):
        every, joins_s = topology.of(kind), scenario.joins_s()
        if every and all(name in joins_s for name in every):
            raise NotAllowed("nodes", f"joins_at_s of every {who}", f"at least one {who} from the start")


def topics_of_clients(scenario: Scenario) -> None:
    """Each client's topic exists, and all consumers of a group read the same topic."""
    topology, known = scenario.topology(), scenario.topics()
    for name, node in scenario.nodes.items():
        kind = topology.kinds[name]
        if node.topic is not None and kind not in CLIENTS:
            raise NotAllowed(f"nodes.{name}.topic", node.topic, "this key on a producer or consumer only")
        if node.group is not None and kind is not NodeKind.CONSUMER:
            raise NotAllowed(f"nodes.{name}.group", node.group, "this key on a consumer only")
        if node.topic is not None and node.topic not in known:
            few = ", ".join([*known][:8]) + (", …" if len(known) > 8 else "")
            allowed = f"a topic of workload.topic or workload.topics ({few}){nearest(node.topic, known)}"
            raise NotAllowed(f"nodes.{name}.topic", repr(node.topic), allowed)
    reads: dict[str, tuple[str, str]] = {}
    for consumer in topology.of(NodeKind.CONSUMER):
        group, own = scenario.group_of(consumer), scenario.topic_of(consumer)
        other, before = reads.setdefault(group, (consumer, own))
        if before != own:
            allowed = f"a group of its own: {other} of {group} reads {before}, and all of a group read the same"
            raise NotAllowed(f"nodes.{consumer}.topic", own, allowed)


def kept_channels(scenario: Scenario) -> None:
    """Packet loss is refused if a client keeps a channel after a request's time-out. No check could judge this channel,
    because the time at which a kernel resends lost packets has no known limit."""
    said = scenario.settings()
    kept = [
        node for node in scenario.topology().clients if said.get(node, {}).get("clientCloseSocketIfTimeout") is False
    ]
    for index, action in enumerate(scenario.timeline):
        if kept and action.do == "packet_loss":
            allowed = (
                f"black_hole instead: {kept[0]} has clientCloseSocketIfTimeout=false, and no window is made for both"
            )
            raise NotAllowed(f"timeline.{index}.do", action.do, allowed)


def implementations(scenario: Scenario) -> None:
    """Each implementation exists, and Apache's programs get no action or setting that they do not support."""
    made_by, topology = scenario.implementations(), scenario.topology()
    kinds = topology.kinds
    for node, said in made_by.items():
        try:
            distribution(said)
        except ValueError as exc:
            own = node in scenario.nodes and scenario.nodes[node].implementation is not None
            group = "cluster" if kinds[node] in SERVERS else "workload"
            key = f"nodes.{node}.implementation" if own else f"{group}.implementation"
            raise NotAllowed(key, repr(said), ALLOWED) from exc
    if not made_by:
        return
    if scenario.clock == "virtual":
        raise NotAllowed("clock", "virtual", f"real where a node is {next(iter(made_by.values()))}")
    outside = str(scenario.defect).startswith("apache-")  # put into Apache's servers from outside
    if scenario.defect is not None and not outside and not set(kinds) - set(made_by):
        raise NotAllowed("defect", scenario.defect, "nothing where no node is ours: a defect is planted there")
    for name in topology.of(NodeKind.SLAVE):
        mine, masters = (made_by.get(one, OURS) for one in (name, broker_name(name)))
        if mine != masters and OURS in (mine, masters):
            allowed = f"{masters}, as its master: ours and Apache's copy the commit log each in a way of its own"
            raise NotAllowed(f"nodes.{name}.implementation", mine, allowed)
    for node, values in scenario.settings().items():
        for name, value in values.items() if node in made_by else ():
            if why := _why_not_of_apache(scenario, node, name, value is True):
                allowed = f"set of a node of ours: {node} is {made_by[node]}, and {why}"
                raise NotAllowed(f"config: {name} of {node}", str(value), allowed)
    for index, entry in enumerate(scenario.timeline):
        for node in entry.nodes if isinstance(entry.what, ClockAction | DiskAction | Switch) else ():
            if node in made_by:
                allowed = f"a node of ours: {node} is {made_by[node]}, which has no such command"
                raise NotAllowed(f"timeline.{index}.nodes", f"{entry.do} of {node}", allowed)
    if (by_http := topology.of(NodeKind.ADDRESS_SERVER)) and set(made_by) - set(topology.of(NodeKind.NAME_SERVER)):
        allowed = f"no list by HTTP ({by_http[0]}) where a broker or client is Apache's: say name_servers"
        raise NotAllowed("cluster.name_server_list", "given", allowed)


def _why_not_of_apache(scenario: Scenario, node: str, setting: str, is_on: bool) -> str:
    """Return why an Apache node cannot have the setting; "" if it can."""
    made_by = distribution(scenario.implementation_of(node))
    try:
        profile = scenario.profile if made_by is None else made_by.profile
    except JavaMissing:  # a folder of another machine, on which the scenario was run
        profile = scenario.profile
    known = settings_for(scenario.topology().kinds[node])[setting]
    if profile in known.constant:
        return "it is a constant there"
    if profile not in known.profiles:
        return "it has no such setting"
    return _NEVER_SENT.get(setting) or (_DIALS.get(setting, "") if is_on else "")


def lists_in_order(scenario: Scenario) -> None:
    """`in_order` is allowed only for nemesrv's own clients that have a `name_servers` list and no `client_profile`. All
    other clients order their list themselves."""
    kinds, made_by = scenario.topology().kinds, scenario.implementations()
    for name, node in scenario.nodes.items():
        place = f"nodes.{name}.in_order"
        for index, order in enumerate(node.later_orders):
            if not node.in_order or sorted(order) != sorted(node.name_servers or ()):
                allowed = "the entries of `name_servers` in another order, beside `in_order: true`"
                raise NotAllowed(f"nodes.{name}.later_orders.{index}", str([*order]), allowed)
        if not node.in_order:
            continue
        if kinds[name] not in CLIENTS or name in made_by or node.client_profile is not None:
            allowed = "this key on a client of ours without client_profile: every other has an order of its own"
            raise NotAllowed(place, "true", allowed)
        if node.name_servers is None:
            raise NotAllowed(place, "true", "said beside `name_servers`, whose order it is")


def elections(scenario: Scenario) -> None:
    """nemesrv's own nodes have no settings that only Apache's nodes obey, and each broker name that elects its master
    has enough brokers for an election."""
    made_by, said, kinds = scenario.implementations(), scenario.settings(), scenario.topology().kinds
    for node, values in said.items():
        known = settings_for(kinds[node])
        for key, value in values.items():
            if known[key].of_apache and node not in made_by:
                allowed = f"set of a broker of Apache's: {node} is ours (say implementation: apache-4.9.7)"
                raise NotAllowed(f"config: {key} of {node}", str(value), allowed)
    controllers = [node for node, values in said.items() if values.get("enableControllerInNamesrv")]
    under = [node for node, values in said.items() if values.get("enableControllerMode")]
    if len(controllers) > 1:
        allowed = f"this key on one NameServer: {' and '.join(controllers)} would have to dial each other"
        raise NotAllowed(f"config: enableControllerInNamesrv of {controllers[1]}", "True", allowed)
    if under and not controllers:
        allowed = "set where a NameServer is the controller (config: {ns-0: {enableControllerInNamesrv: true}})"
        raise NotAllowed(f"config: enableControllerMode of {under[0]}", "True", allowed)
    if both := [node for node in under if said[node].get("enableDLegerCommitLog")]:
        allowed = f"one of enableControllerMode and enableDLegerCommitLog of {both[0]}"
        raise NotAllowed(f"config: enableControllerMode of {both[0]}", "True", allowed)
    for name, brokers in scenario.electing_names().items():
        for key in ELECTS:
            told = [node for node in brokers if said.get(node, {}).get(key)]
            without = [node for node in brokers if node not in told]
            if told and without:
                allowed = f"this key on all brokers of {name}: {without[0]} is not told of it"
                raise NotAllowed(f"config: {key} of {told[0]}", "True", allowed)
            if told and len(brokers) < FEWEST_THAT_ELECT:
                allowed = (
                    f"this key on a name of {FEWEST_THAT_ELECT} brokers or more (slaves: {FEWEST_THAT_ELECT - 1}); "
                    f"{name} has {len(brokers)}"
                )
                raise NotAllowed(f"config: {key} of {told[0]}", "True", allowed)


def _name_server_list(entries: Sequence[str], topology: Topology, place: str) -> None:
    """A list has only NameServers and addresses, and at least one NameServer. NotAllowed otherwise."""
    servers = topology.of(NodeKind.NAME_SERVER)
    for index, entry in enumerate(entries):
        if entry in entries[:index]:
            raise NotAllowed(f"{place}.{index}", entry, "each NameServer once")
        if entry not in servers:
            try:
                Address.parse(entry)
            except ValueError as exc:
                allowed = f"one of {', '.join(servers)}, or host:port where nobody listens{nearest(entry, servers)}"
                raise NotAllowed(f"{place}.{index}", repr(entry), allowed) from exc
    if entries and not any(entry in servers for entry in entries):
        raise NotAllowed(place, str(list(entries)), f"a list with at least one of {', '.join(servers)}")


def incident_is_found(scenario: Scenario) -> None:
    """The checks that must find the scenario's incident are among its checks."""
    for index, name in enumerate(scenario.incident.found_by if scenario.incident else ()):
        if name not in scenario.checks:
            allowed = f"one of the scenario's checks ({', '.join(scenario.checks)}){nearest(name, CHECKS)}"
            raise NotAllowed(f"incident.found_by.{index}", repr(name), allowed)


RULES: tuple[Callable[[Scenario], None], ...] = (
    lists_by_http,
    zones,
    placement,
    phases,
    clients_under_test,
    checks,
    timeline_rules.targets_of_actions,
    settings,
    topics,
    nodes,
    topics_of_clients,
    kept_channels,
    timeline_rules.order_of_actions,
    timeline_rules.acts_by_hand,
    implementations,
    lists_in_order,
    elections,
    timeline_rules.restarts_as_another_version,
    timeline_rules.restarts_at_new_addresses,
    timeline_rules.clock_changes,
    timeline_rules.full_disks,
)
