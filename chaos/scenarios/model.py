"""A scenario as data: read from YAML, checked with sentences, written back with every default filled in.

Times are seconds of RocketMQ time throughout; `timers.time_scale` says how much faster the run's clock is. Bad input
raises ScenarioError naming file, key, value and what is allowed. Nothing here starts anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import yaml
from pydantic import BaseModel, Field, ValidationError, model_validator

from ...remoting.node.profile import Profile
from ..apache.distribution import OURS
from ..checks import CHECKS
from ..errors import ScenarioError, nearest
from ..faults.by_hand import ByHand
from ..faults.kinds import ACTIONS
from ..settings.resolve import SettingError, settings_of
from ..settings.values import Value
from ..topology import Topology
from .action import STRICT, ActionModel, Name
from .by_hand import check_by_hand
from .clocks import check_clocks
from .elections import check_elections
from .host_actions import told_of_entries, unfolded
from .implementations import check_implementations, implementations_of, said_by_command, with_defaults
from .incident import IncidentModel, PromisesModel, check_incident
from .lists import check_lists
from .named import check_names, refuse_kept_channels
from .new_addresses import addresses_of, check_new_addresses
from .nodes import check_in_order, check_nodes, slaves_of
from .placement import Offer, PlacementModel, check_placement, placed
from .readdressed import listing, readdressed
from .reading import read, refuse_booleans
from .refused import allowed_at, key_of, shown_of
from .series import Plan, planned, refuse_series
from .setting import change
from .shared_processes import check_processes
from .timeline import refuse_idle_heals, refuse_impossible
from .topics import all_topics, check_topics, group_of, topic_of
from .upgrades import check_upgrades, upgrades_of
from .zones import check_zones, nodes_of_zones

if TYPE_CHECKING:
    from .defect import Defect

SHIPPED_DIR = Path(__file__).parent
CHECK_NAMES = tuple(CHECKS)
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


ClientProfileName = Literal["java-4.9", "java-5.3", "go", "cpp", "cpp-1", "cpp-2.1", "cpp-3", "node"]


class _Model(BaseModel):
    model_config = STRICT


class ClusterModel(_Model):
    name_servers: int = Field(3, ge=1, le=9)
    brokers: int = Field(3, ge=1, le=26)
    slaves: int = Field(0, ge=0, le=3)
    """Of each broker: broker-a/1, broker-a/2, …; `nodes:` may name further ones."""
    profile: Literal["4.9", "5.x"] = "4.9"
    """Where it is not said it follows from `implementation`."""
    implementation: str = OURS
    """Whose programs NameServers and brokers are: ours, apache-VERSION, or apache:FOLDER."""
    name_server_list: tuple[str, ...] | None = Field(None, min_length=1, max_length=9)
    """What an address server answers with at first, whom brokers and clients then ask for their lists by HTTP; None:
    there is none, and everybody is configured with a list."""
    warm_up: bool = True
    """Whether each broker of Apache's is sent a message before clients begin, so that none of them meets a JVM that
    loads its classes."""
    external: bool = False
    """Whether clients outside the experiment may dial in: every server then has a proxy for them, too."""
    clients: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.-]{0,39}$")], str | None] = {}
    """Clients under test by name, each with the profile that it is held against (None: our own clients'): programs of
    somebody else, whose dialler, proxies and fronts are their own (docs/clients-under-test.md)."""


class TimersModel(_Model):
    """How fast the run's clock goes, and which of RocketMQ's timers differ from its defaults."""

    time_scale: float = Field(10, gt=0, le=100)
    register_name_server_period_s: float | None = Field(None, ge=10, le=60)
    poll_name_server_interval_s: float | None = Field(None, ge=1, le=600)


class TopicModel(_Model):
    """A topic that every broker has from the start, beside the workload's own."""

    queues: int = Field(4, ge=1, le=64)


class WorkloadModel(_Model):
    topic: Name = "orders"
    queues: int = Field(4, ge=1, le=64)
    topics: dict[str, TopicModel] = {}
    """Further topics by name; `bulk-{1..2000}` is two thousand. Every broker has them from the start."""
    producers: int = Field(2, ge=0, le=2000)
    consumers: int = Field(2, ge=0, le=2000)
    clients_per_process: int = Field(1, ge=1, le=500)
    """How many producers and consumers share a process, each still a node with links, rows and faults of its own."""
    sends_per_s: float = Field(4, gt=0, le=1000)
    body_bytes: int = Field(100, ge=0, le=4 * 1024 * 1024)
    latency_fault: bool = False
    broadcasting: bool = False
    ordered: bool = False
    """Messages of a sharding key go to one queue, and each consumer has one thread: order_kept judges receipts too."""
    ordered_keys: int = Field(24, ge=1, le=100_000)
    implementation: str = OURS
    """Whose programs producers and consumers are: ours, apache-VERSION, or apache:FOLDER."""
    client_starts: int = Field(90, ge=0, le=100_000)
    client_profile: ClientProfileName | None = None
    """Whose rules `name_server_selection` judges the clients of the history by; None: those of our own clients."""
    start_bias: float | None = Field(None, gt=0, le=1)
    """A bias of the first choice that the run must be able to find with power 0.99; None asks for none."""
    prober: bool = True
    """Whether a client of the harness makes the topic, waits until it is routed, and reads every queue at the end."""

    @model_validator(mode="after")
    def _needs_its_prober(self) -> WorkloadModel:
        if not self.prober and (self.producers or self.consumers or self.client_starts):
            raise ValueError("`prober: false` goes with producers: 0, consumers: 0 and client_starts: 0")
        return self


class NodeModel(_Model):
    """What one node has that the others of its kind have not."""

    joins_at_s: float | None = Field(None, gt=0, le=100_000)
    """When a NameServer, broker or client joins the cluster; None: it is there from the start."""
    name_servers: tuple[str, ...] | None = Field(None, min_length=1, max_length=9)
    """Its own list: NameServers by name, in this order, or `host:port` where nobody listens; None: all of them."""
    in_order: bool = False
    """Of a client of ours: it takes that list as it stands, and its first entry first; else it shuffles it."""
    later_orders: tuple[tuple[str, ...], ...] = ()
    """Beside `in_order`: the order of each later process of it, the last for all that follow; none: the same."""
    topic: Name | None = None
    """Of a client: the topic that it sends to, or reads; None: the workload's."""
    group: Name | None = None
    """Of a consumer: its group; None: one for all that read this topic."""
    client_profile: ClientProfileName | None = None
    """Of a client: whose rules it chooses NameServers by, and is judged by; None: Java's, as the cluster's profile."""
    cluster_name: Name | None = None
    """Of a broker: the cluster that it registers in (brokerClusterName)."""
    implementation: str | None = None
    """Whose program it is; None: as `cluster` says of servers, ours of clients."""


class Scenario(_Model):
    name: Name
    description: str = Field("", max_length=500)
    cluster: ClusterModel = ClusterModel()
    timers: TimersModel = TimersModel()
    config: dict[str, dict[str, Any]] = {}
    """Settings of groups and single nodes by RocketMQ's names (docs/settings.md)."""
    nodes: dict[str, NodeModel] = {}
    """What single nodes have of their own."""
    zones: dict[Name, tuple[str, ...]] = {}
    """Zone to its nodes and groups; links of a fault may name `zone:NAME`."""
    placement: PlacementModel = PlacementModel()
    """Which node is on which host of a Ray cluster (--ray)."""
    workload: WorkloadModel = WorkloadModel()
    phases: dict[str, Annotated[float, Field(ge=0, le=100_000)]] = {}
    """By node, on the virtual clock: how long after the timeline's start its timer fires, in seconds: a broker
    registers, a client polls, a NameServer looks for silent brokers. Drawn from the seed where none is set."""
    timeline: tuple[ActionModel, ...] = ()
    steady_s: float = Field(60, ge=0, le=100_000)
    settle_s: float = Field(70, ge=0, le=100_000)
    prove_faults: bool = False
    """Whether every link is dialled after each action, and what it meets held against what was asked for."""
    availability_floor: float | None = Field(None, ge=0, le=1)
    """The least part of operations that must succeed from the first fault to the end; None asks nothing then."""
    promises: PromisesModel = PromisesModel()
    incident: IncidentModel | None = None
    """The reported incident that this repeats."""
    checks: tuple[str, ...] = Field(min_length=1)
    seed: int | None = Field(None, ge=0)
    clock: Literal["real", "virtual"] | None = None
    """As run: on which clock. None: as the command says."""
    defect: str | None = None
    """The planted defect of nemesrv's self-test that the nodes have; None: they are right."""
    versions: dict[str, str] = {}

    def topology(self) -> Topology:
        """The names of all nodes and the directed links between them."""
        everybody = Topology(
            name_servers=self.cluster.name_servers,
            brokers=self.cluster.brokers,
            slaves=slaves_of(self.cluster.brokers, self.cluster.slaves, self.nodes),
            producers=self.workload.producers,
            consumers=self.workload.consumers,
            prober=self.workload.prober,
            admin=any(isinstance(action.what, ByHand) for action in self.timeline),
            external=self.cluster.external,
            outside=tuple(self.cluster.clients),
            address_server=self.cluster.name_server_list is not None,
            clients_per_process=self.workload.clients_per_process,
        )
        return replace(everybody, zones=nodes_of_zones(self.zones, everybody)) if self.zones else everybody

    def plan(self, seed: int | None) -> Plan:
        """Every action of the timeline by itself: what flaps, and restarts in a row or at random, turn by turn."""
        return planned(self.unfolded(), self.topology().members, seed)

    def hosts(self) -> dict[str, list[str]]:
        """Host to the nodes on it, in their order, where the scenario alone says so; else nothing."""
        if not self.placement.is_static:
            return {}
        found: dict[str, list[str]] = {host: [] for host in self.placement.hosts}
        offers = [Offer(host) for host in self.placement.hosts]
        for node, host in placed(self.topology(), self.placement, offers, file=self.name).items():
            found[host].append(node)
        return found

    def unfolded(self, file: str = "") -> tuple[ActionModel, ...]:
        """The timeline, with what is done to hosts as what it consists of."""
        if not any(action.hosts for action in self.timeline):
            return self.timeline
        return unfolded(self.timeline, self.topology(), self.hosts(), file=file or self.name)

    @property
    def profile(self) -> Profile:
        return Profile(self.cluster.profile)

    def settings(self) -> dict[str, dict[str, Value]]:
        """Node to RocketMQ's name to value, of all that the scenario sets. SettingError for what cannot be."""
        return settings_of(self.config, self.topology().kinds, self.profile, before=self._older_keys())

    def _older_keys(self) -> dict[str, dict[str, Value]]:
        """What `timers:` and `workload:` say of settings, by group."""
        said: dict[str, dict[str, Value]] = {}
        if self.timers.register_name_server_period_s is not None:
            said["brokers"] = {"registerNameServerPeriod": round(self.timers.register_name_server_period_s * 1000)}
        if self.timers.poll_name_server_interval_s is not None:
            said["clients"] = {"pollNameServerInterval": round(self.timers.poll_name_server_interval_s * 1000)}
        if self.workload.latency_fault:
            said["producers"] = {"sendLatencyFaultEnable": True}
        if self.workload.ordered:
            said["consumers"] = {"consumeThreadMax": 1}
        return said

    def implementations(self) -> dict[str, str]:
        """Node to `implementation`, of all that are not ours."""
        said = self.cluster.implementation, self.workload.implementation
        return implementations_of(*said, self.nodes, self.topology().kinds)

    def upgrades(self) -> dict[str, tuple[str, ...]]:
        """Node to `implementation` of each of its processes, in order, of those that do not stay what they were."""
        return upgrades_of(self.unfolded(), self.topology().members, self.implementations())

    def addresses(self) -> dict[str, tuple[str, ...]]:
        """Node to which of its addresses each of its processes has, in order, of those that do not keep theirs."""
        return addresses_of(self.unfolded(), self.topology().members)

    def implementation_of(self, node: str) -> str:
        """Whose program the node is: ours, apache-VERSION or apache:FOLDER."""
        return self.implementations().get(node, OURS)

    def topics(self) -> dict[str, int]:
        """Topic to queues at each broker, of the workload's own and all others."""
        return all_topics(self.workload, self.name)

    def topic_of(self, client: str) -> str:
        """The topic that this client sends to, or reads."""
        return topic_of(self.nodes.get(client), self.workload.topic)

    def group_of(self, consumer: str) -> str:
        """The group of this consumer."""
        return group_of(self.nodes.get(consumer), self.workload.topic)

    def to_yaml(self) -> str:
        """The scenario with every default filled in; loading it gives an equal scenario."""
        document = self.model_dump(mode="json")
        if self.checks == CHECK_NAMES:
            document["checks"] = "all"
        return str(yaml.dump(document, Dumper=_DUMPER, sort_keys=False, allow_unicode=True))


def load(path: Path, sets: Sequence[str] = (), implementation: str | None = None) -> Scenario:
    """The scenario of a YAML file, with what `--set` changes and the `implementation` of its servers, whose profile is
    then the scenario's where `--set` does not say another. ScenarioError with one sentence for whatever is wrong."""
    file = str(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as exc:
        raise ScenarioError(file, "", "", f"a readable YAML file ({exc.strerror})") from exc
    except UnicodeDecodeError as exc:
        raise ScenarioError(file, "", "", "well-formed YAML") from exc
    document = read(text, file=file)
    if implementation is not None:
        document["cluster"] = said_by_command(document.get("cluster"), implementation)
    changes = [change(one, document, Scenario.model_fields) for one in sets]
    try:
        return parse(document, file=file)
    except ScenarioError as exc:
        if any(exc.key == key or exc.key.startswith(f"{key}.") for key in changes):
            raise ScenarioError("--set", exc.key, exc.value, exc.allowed) from exc
        raise


def parse(document: dict[str, Any], *, file: str) -> Scenario:
    """The scenario of an already parsed document; `file` is for the messages."""
    document = with_defaults({"name": Path(file).stem, **document}, file)
    if document.get("checks") == "all":
        document["checks"] = list(CHECK_NAMES)
    # There every setting says its own, and here what is set is refused by the scenario that it makes.
    rest = {key: value for key, value in document.items() if key not in ("config", "incident")}
    if isinstance(entries := document.get("timeline"), list | tuple):  # and so it does in an entry's
        rest["timeline"] = [_but(entry, "settings") if isinstance(entry, dict) else entry for entry in entries]
    refuse_booleans(rest, _TRUE_OR_FALSE, file=file)
    try:
        scenario = Scenario.model_validate(document)
    except ValidationError as exc:
        error = min(exc.errors(), key=lambda one: one["type"] == "missing")  # a misspelt key says what it should be
        raise ScenarioError(file, key_of(error), shown_of(error), allowed_at(error, Scenario)) from exc
    scenario = _readdressed(scenario, file=file)
    check_lists(scenario.cluster.name_server_list, scenario.timeline, scenario.topology(), file=file)
    check_zones(scenario.zones, scenario.topology(), file=file)
    check_placement(scenario.placement, scenario.topology(), file=file)
    check_processes(scenario.topology(), scenario.timeline, file=file)
    check_names(scenario, file)
    try:
        settings = scenario.settings()
    except SettingError as exc:
        raise ScenarioError(file, exc.place, exc.value, exc.allowed) from exc
    topics = all_topics(scenario.workload, file)
    check_nodes(scenario.nodes, scenario.topology(), scenario.timeline, scenario.steady_s, file=file)
    check_topics(scenario.nodes, scenario.topology(), scenario.workload.topic, topics, file=file)
    refuse_kept_channels(scenario, settings, file)
    timeline = scenario.unfolded(file)
    with told_of_entries(scenario.timeline, scenario.topology(), scenario.hosts()):
        refuse_impossible(timeline, file=file)
        joins_s = {name: own.joins_at_s for name, own in scenario.nodes.items() if own.joins_at_s is not None}
        refuse_series(timeline, scenario.topology().members, joins_s, file=file)
        refuse_idle_heals(timeline, scenario.topology(), file=file)
    check_by_hand(scenario, file=file)
    check_implementations(scenario, file=file)
    check_in_order(scenario.nodes, scenario.topology(), scenario.implementations(), file=file)
    check_elections(scenario, file=file)
    check_upgrades(scenario, file=file)
    check_new_addresses(scenario, file=file)
    check_clocks(scenario, file=file)
    if scenario.defect is not None:
        defect = found_defect(scenario.defect, file=file, key="defect", beside=Path(file).parent)
        scenario = scenario.model_copy(update={"defect": str(defect.source or defect.name)})
        refuse_nowhere(defect, scenario, file)
    if scenario.incident is not None:
        check_incident(scenario.incident, scenario.checks, file=file)
        _without_incident(document, scenario.incident, file=file)
    return scenario


def _readdressed(scenario: Scenario, *, file: str) -> Scenario:
    """The scenario with each NameServer that comes back at another address as one that is removed, and another."""
    timeline, joins, first = readdressed(scenario.timeline, scenario.topology(), file=file)
    if not joins:
        return scenario
    nodes = {name: NodeModel(joins_at_s=at_s) for name, at_s in joins.items()} | scenario.nodes
    by_http = scenario.cluster.name_server_list is not None
    for name in () if by_http else listing(scenario.topology()):
        if name not in nodes or nodes[name].name_servers is None:
            nodes[name] = nodes.get(name, NodeModel()).model_copy(update={"name_servers": first})
    cluster = scenario.cluster.model_copy(update={"name_servers": len(first) + len(joins)})
    return scenario.model_copy(update={"timeline": timeline, "nodes": nodes, "cluster": cluster})


def _without_incident(document: Mapping[str, Any], incident: IncidentModel, *, file: str) -> Scenario:
    """The scenario of the document with what its incident is fixed by. ScenarioError naming the key of `fixed`."""
    changed = deepcopy({key: value for key, value in document.items() if key != "incident"})
    try:
        for one in incident.sets:
            change(one, changed, Scenario.model_fields)
        changed["name"] = f"{changed['name']}-fixed"
        return parse(changed, file=file)
    except ScenarioError as exc:
        raise ScenarioError(file, f"incident.fixed.sets.{exc.key}".rstrip("."), exc.value, exc.allowed) from exc


def fixed(path: Path) -> Scenario:
    """The scenario of the file with what its incident is fixed by."""
    scenario = load(path)
    assert scenario.incident is not None
    document = with_defaults({"name": path.stem, **read(path.read_text(encoding="utf-8"), file=str(path))}, str(path))
    return _without_incident(document, scenario.incident, file=str(path))


def found_defect(name: str, *, file: str, key: str = "", beside: Path | None = None) -> Defect:
    """The planted defect of that name, or of that file of the user's; one beside the scenario's file comes first.

    ScenarioError when there is none, or when the file is no defect.
    """
    from .defect import DefectModuleError, of_file, shipped_defects  # a broker's program, which few scenarios need

    if not name.endswith(".py"):
        known = shipped_defects()
        if name not in known:
            allowed = f"a defect of docs/defects.md, or a file NAME.py{nearest(name, known)}"
            raise ScenarioError(file, key, repr(name), allowed)
        return known[name]
    at = Path(name) if beside is None or not (beside / name).exists() else beside / name
    try:
        return of_file(at)
    except DefectModuleError as exc:
        raise ScenarioError(file, key, name, str(exc)) from exc


def refuse_nowhere(defect: Defect, scenario: Scenario, file: str) -> None:
    """ScenarioError for a user's defect that no node would have, or one of Apache's where its nodes are ours."""
    kinds = scenario.topology().kinds
    if defect.of_apache:
        wrong = [node for node in defect.nodes if node not in scenario.implementations()]
        if wrong:
            allowed = f"one for {', '.join(defect.nodes)} of Apache's (implementation: apache-5.3.3)"
            raise ScenarioError(file, "defect", defect.name, allowed)
    if defect.source and not any(defect.is_for(name, kind) for name, kind in kinds.items()):
        where = ", ".join(defect.nodes) or ", ".join(defect.kinds)
        allowed = f"one for a node of {scenario.name}: it is for {where}"
        raise ScenarioError(file, "defect", defect.source.name, allowed)


_TRUE_OR_FALSE = frozenset(
    name
    for model in (ClusterModel, NodeModel, PlacementModel, PromisesModel, WorkloadModel, Scenario)
    for name, field in model.model_fields.items()
    if field.annotation is bool
) | {name for kind in ACTIONS.values() for name, field in kind.model_fields.items() if field.annotation is bool}
"""The keys that take true or false."""


def _but(entry: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != key}


def shipped() -> dict[str, Path]:
    """Name to file of every scenario that ships with nemesrv."""
    return {path.stem: path for path in sorted(SHIPPED_DIR.glob("*.yaml"))}


def drills() -> dict[str, Path]:
    """The same of those that repeat a drill on a real cluster (docs/drills.md)."""
    return {path.stem: path for path in sorted((SHIPPED_DIR / "drills").glob("*.yaml"))}


def version_changes() -> dict[str, Path]:
    """The same of those in which Apache's servers become another version."""
    return {path.stem: path for path in sorted((SHIPPED_DIR / "upgrades").glob("*.yaml"))}


def roles() -> dict[str, Path]:
    """The same of those in which brokers have a role that Apache's alone can have."""
    return {path.stem: path for path in sorted((SHIPPED_DIR / "roles").glob("*.yaml"))}


def incidents() -> dict[str, Path]:
    """The same of those that repeat a reported incident (docs/incidents.md)."""
    return {path.stem: path for path in sorted((SHIPPED_DIR / "incidents").glob("*.yaml"))}


def find(name_or_path: str, sets: Sequence[str] = (), implementation: str | None = None) -> Scenario:
    """A shipped scenario by name, or the scenario of a YAML file; with what `--set` and `--implementation` change."""
    known = {**shipped(), **drills(), **version_changes(), **roles(), **incidents()}
    if name_or_path in known:
        return load(known[name_or_path], sets, implementation)
    path = Path(name_or_path)
    if path.suffix not in (".yaml", ".yml") and not path.exists():
        first = shipped()
        others = f"and {len(known) - len(first)} more, which `nemesrv scenarios` lists"
        allowed = f"a YAML file or one of {', '.join(first)}, {others}{nearest(name_or_path, known)}"
        raise ScenarioError(name_or_path, "SCENARIO", repr(name_or_path), allowed)
    return load(path, sets, implementation)
