"""The route table: brokers, their topics, and the answers to clients.

The route table runs in one thread and does no I/O: it has no files, channels or clock, and the time is an argument of
its methods. The other modules: processor.py decodes requests, server.py has channels and timers, unregister.py has the
rules that remove brokers, tables.py the types of the tables.

Upstream: `RouteInfoManager`, tags rocketmq-all-4.9.8 and rocketmq-all-5.3.3; `ZoneRouteRPCHook` (5.x).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from logging import INFO, WARNING

from ...remoting.bodies.register_rows import NO_PIECES, Pieces
from ...remoting.bodies.route import BrokerData, ClusterInfo, DataVersion, QueueData, Row, TopicRouteData
from ...remoting.codes import MASTER_ID, PERM_READ, PERM_WRITE
from ...remoting.node.profile import Profile
from .tables import BrokerGroup, LiveInfo, MinBrokerIdChanged, Registered, Registration, Shown, ShownTopics
from .unregister import Tables

NAME_MAX = 1024
"""This and the next: how much one NameServer takes in, so that no peer can grow its memory without end. They are far
beyond any cluster that RocketMQ runs; what would go beyond one is refused with code 1 and a remark that names it, what
is there already stays. Upstream has no such limits."""
GROUPS_MAX = 20_000
LIVE_MAX = 50_000
ROWS_MAX = 2_000_000
IDS_MAX = 1024
FILTER_SERVERS_MAX = 256
MAPPINGS_MAX = 64 * 1024 * 1024


def why_refused(tables: Tables, r: Registration) -> str | None:
    """Return a sentence about the limit that the registration `r` would exceed; None if it exceeds no limit."""
    names = (r.cluster_name, r.broker_name, r.broker_addr, r.ha_server_addr, r.zone_name or "")
    if any(len(name) > NAME_MAX for name in (*names, *(r.filter_servers or ()))):
        return f"a name or address of the registration is longer than {NAME_MAX} characters"
    if len(r.filter_servers or ()) > FILTER_SERVERS_MAX:
        return f"{len(r.filter_servers or ())} filter servers are more than {FILTER_SERVERS_MAX}"
    group = tables.broker_addr_table.get(r.broker_name)
    if group is None and len(tables.broker_addr_table) >= GROUPS_MAX:
        return f"this name server holds {GROUPS_MAX} broker names and takes no more"
    if group is not None and r.broker_id not in group.addrs and len(group.addrs) >= IDS_MAX:
        return f"broker name {r.broker_name} has {IDS_MAX} brokers and takes no more"
    if len(tables.broker_live_table) >= LIVE_MAX and tables.live_key(r) not in tables.broker_live_table:
        return f"this name server holds {LIVE_MAX} brokers and takes no more"
    if r.queue_mappings:
        size = mappings_size(r.queue_mappings)
        if tables.mappings_size + size > MAPPINGS_MAX:
            return f"the mappings of static topics exceed {MAPPINGS_MAX} B"
    return why_rows_refused(tables, [topic for topic, _ in r.rows], repeat(r.broker_name))


def why_rows_refused(tables: Tables, topics: Sequence[str], broker_names: Iterable[str]) -> str | None:
    """Return the limit that the route table would exceed with a row for each pair of topic and broker name, as a
    sentence; None if it would exceed no limit."""
    table = tables.topic_queue_table
    long_name = f"a topic's name is longer than {NAME_MAX} characters"
    if (len(table) + len(topics)) * (len(tables.broker_addr_table) + 1) <= ROWS_MAX:  # never more rows than that
        return long_name if max(map(len, topics), default=0) > NAME_MAX else None
    room = ROWS_MAX - sum(map(len, table.values()))
    for topic, broker_name in zip(topics, broker_names, strict=False):
        if len(topic) > NAME_MAX:
            return long_name
        room -= broker_name not in table.get(topic, {})
        if room < 0:
            return f"this name server holds {ROWS_MAX} topic rows and takes no more"
    return None


def mappings_size(mappings: Mapping[str, Mapping[str, object]]) -> int:
    """Return about how many bytes the mapping infos of static topics take."""
    return sum(len(topic) + len(repr(info)) for topic, info in mappings.items())


UNIT_FLAG = 1
UNIT_SUB_FLAG = 2
SYNC_BROKER_MEMBER_GROUP_PREFIX = "rmq_sys_SYNC_BROKER_MEMBER_"


class RouteTable(Tables):
    """The route table: every rule that adds brokers and topics, or answers requests from the table."""

    # -- REGISTER_BROKER ---------------------------------------------------------------------------------------------

    def register(self, registration: Registration, *, now_ms: int) -> Registered:
        """Register a broker, new or known. Returns what the answer to the broker must contain."""
        r = registration
        refused = why_refused(self, r)
        if refused is not None:
            self._say(WARNING, "registerBroker refused, %s: %s", r.broker_name[:NAME_MAX], refused)
            return Registered(refused=refused)
        self.cluster_addr_table.setdefault(r.cluster_name, set()).add(r.broker_name)
        group = self.broker_addr_table.get(r.broker_name)
        first = group is None
        if group is None:
            group = self.broker_addr_table[r.broker_name] = BrokerGroup(
                cluster=r.cluster_name, broker_name=r.broker_name
            )
        before = self._visible(group)
        had_filter_servers = self.filter_server_table.get(self.live_key(r))
        try:
            return self._register_into(group, r, first, now_ms)
        finally:
            filter_servers = self.filter_server_table.get(self.live_key(r))
            if before != self._visible(group) or had_filter_servers != filter_servers:
                self._touch_broker(r.broker_name)

    @staticmethod
    def _visible(group: BrokerGroup) -> tuple[object, ...]:
        return dict(group.addrs), group.enable_acting_master, group.zone_name

    def _register_into(self, group: BrokerGroup, r: Registration, first: bool, now_ms: int) -> Registered:
        min_id_changed = False
        stood = self.standing(r.cluster_name, r.broker_name, r.broker_addr, r.broker_id)
        if self.profile is Profile.V5_X:
            group.enable_acting_master = bool(r.enable_acting_master)
            group.zone_name = r.zone_name
            min_id_changed = r.broker_id < group.min_id
        # a slave that became master (or the reverse) keeps its address: it may stand under one id only
        for broker_id in [id_ for id_, held in group.addrs.items() if held == r.broker_addr and id_ != r.broker_id]:
            del group.addrs[broker_id]
        if self.profile is Profile.V5_X:
            if self._conflicts(group, r):
                return Registered()
            if r.broker_id not in group.addrs and len(r.rows) == 1:
                self._say(
                    WARNING,
                    "Can't register topicConfigWrapper=%s because broker[%s]=%s has not registered.",
                    ShownTopics(r.rows),
                    r.broker_id,
                    r.broker_addr,
                )
                return Registered(refused="register broker failed")
        old_addr = group.addrs.get(r.broker_id)
        group.addrs[r.broker_id] = r.broker_addr
        if r.broker_id == MASTER_ID and self.profile is Profile.V4_9:
            self._say(
                INFO,
                "cluster [%s] brokerName [%s] master address change from %s to %s",
                group.cluster,
                group.broker_name,
                "null" if old_addr is None else old_addr,
                r.broker_addr,
            )
        rewrite = first or not old_addr or self.is_changed(r.cluster_name, r.broker_addr, r.data_version)
        if self.profile is Profile.V4_9:
            self._register_topics_4_9(r, rewrite)
        else:
            self._register_topics_5_x(group, r, rewrite)
        stand = r.broker_id == MASTER_ID and (rewrite or r.pieces.digests <= stood.digests)
        self._refresh_live(r, now_ms, pieces=r.pieces if stand else NO_PIECES, rows_version=group.rows_version)
        master_addr, ha_server_addr = self._master_of(group, r)
        notification = None
        if min_id_changed and self.options.notify_min_broker_id_changed:
            notification = self._min_id_changed(group, r)
        return Registered(master_addr=master_addr, ha_server_addr=ha_server_addr, notification=notification)

    def _conflicts(self, group: BrokerGroup, r: Registration) -> bool:
        """5.x: return whether another living address has this broker id with a greater stateVersion. The new address is
        then removed."""
        old_addr = group.addrs.get(r.broker_id)
        if old_addr is None or old_addr == r.broker_addr:
            return False
        old = self.broker_live_table.get(self._live_key(r.cluster_name, old_addr))
        if old is None or old.data_version.state_version <= r.data_version.state_version:
            return False
        self._say(
            WARNING,
            "Registering Broker conflicts with the existed one, just ignore.: Cluster:%s, BrokerName:%s, BrokerId:%s,"
            " Old BrokerAddr:%s, Old Version:%s, New BrokerAddr:%s, New Version:%s.",
            r.cluster_name,
            r.broker_name,
            r.broker_id,
            old_addr,
            old.data_version.state_version,
            r.broker_addr,
            r.data_version.state_version,
        )
        self.broker_live_table.pop(self.live_key(r), None)
        return True

    def _register_topics_4_9(self, r: Registration, rewrite: bool) -> None:
        """Write a master's rows if the master is new or its data version differs (even if older). No row is removed."""
        if r.broker_id == MASTER_ID and rewrite:
            self._register_rows(r.broker_name, r.rows)

    def _register_topics_5_x(self, group: BrokerGroup, r: Registration, rewrite: bool) -> None:
        """Register topics as in 4.9, except: the prime slave (the smallest id) registers topics, too; missing rows are
        added even without a rewrite; absent topics may be deleted."""
        old_version = r.enable_acting_master is None
        prime_slave = not old_version and r.broker_id != MASTER_ID and r.broker_id == group.min_id
        if r.broker_id != MASTER_ID and not prime_slave:
            return
        if self.options.delete_topic_with_broker_registration and not r.queue_mappings:
            self._delete_topics_not_in(r)
        rows: Iterable[Row] = r.rows
        if not rewrite:
            rows = (row for row in rows if r.broker_name not in self.topic_queue_table.get(row[0], {}))
        if prime_slave and group.enable_acting_master:
            rows = ((topic, replace(row, perm=row.perm & ~PERM_WRITE)) for topic, row in rows)
        self._register_rows(r.broker_name, rows)
        if rewrite:
            self.mappings_size += mappings_size(r.queue_mappings)
            for topic_name, info in r.queue_mappings.items():
                by_broker = self.topic_queue_mapping_info_table.setdefault(topic_name, {})
                by_broker[str(info.get("bname"))] = info
                self._changed_topics.add(topic_name)

    def _register_rows(self, broker_name: str, rows: Iterable[Row]) -> None:
        """Put one broker's rows into their topics.

        A registration has few different rows for thousands of topics. Neighbouring topics that replace the same old row
        by the same new row are compared once and logged together.
        """
        table = self.topic_queue_table
        changed, together = list[str](), list[str]()
        old: QueueData | None = None
        new: QueueData | None = None
        same = False
        for topic, row in rows:
            held = table.get(topic)
            if held is None:
                table[topic] = {broker_name: row}
                if row is not new or old is not None:
                    self._say_registered(together, old, new)
                    old, new, together = None, row, []
                together.append(topic)
            elif (before := held.get(broker_name)) is None:
                held[broker_name] = row
            else:
                if before is row:
                    continue
                if before is not old or row is not new:
                    self._say_registered(together, old, new)
                    old, new, together, same = before, row, [], before == row
                if same:
                    continue
                held[broker_name] = row
                together.append(topic)
            changed.append(topic)
        self._say_registered(together, old, new)
        if changed:
            self._changed_topics.update(changed)
            self._row_changed(broker_name)

    def _say_registered(self, topics: list[str], old: QueueData | None, new: QueueData | None) -> None:
        """Write to the log that these topics are new (no old row), or which row each had before."""
        if topics and old is None:
            self._say_each(INFO, "new topic registered, %s %s", topics, Shown(new))
        elif topics:
            self._say_each(INFO, "topic changed, %s OLD: %s NEW: %s", topics, Shown(old), Shown(new))

    def _delete_topics_not_in(self, r: Registration) -> None:
        sent = {topic for topic, _ in r.rows}
        for topic in [name for name, rows in self.topic_queue_table.items() if r.broker_name in rows]:
            if topic not in sent:
                row = self._remove_row(topic, r.broker_name)
                self._say(INFO, "deleteTopic, remove one broker's topic %s %s %s", r.broker_name, topic, Shown(row))
                if topic not in self.topic_queue_table:
                    self._say(INFO, "deleteTopic, remove the topic all queue %s", topic)

    def _refresh_live(self, r: Registration, now_ms: int, *, pieces: Pieces, rows_version: int) -> None:
        key = self.live_key(r)
        timeout_ms = self.options.broker_channel_expired_ms
        if self.profile is Profile.V5_X and r.heartbeat_timeout_ms is not None:
            timeout_ms = r.heartbeat_timeout_ms
        if key not in self.broker_live_table:
            ha_word = "HAServer" if self.profile is Profile.V4_9 else "HAService"
            self._say(INFO, f"new broker registered, %s {ha_word}: %s", self._live_text(key), r.ha_server_addr)
        self.broker_live_table[key] = LiveInfo(
            last_update_ms=now_ms,
            heartbeat_timeout_ms=timeout_ms,
            data_version=r.data_version,
            channel_id=r.channel_id,
            ha_server_addr=r.ha_server_addr,
            pieces=pieces,
            rows_version=rows_version,
        )
        if r.filter_servers:
            self.filter_server_table[key] = r.filter_servers
        elif r.filter_servers is not None:
            self.filter_server_table.pop(key, None)

    def _master_of(self, group: BrokerGroup, r: Registration) -> tuple[str | None, str | None]:
        """Return, for a slave whose master is live, the master's address and HA address; else two Nones."""
        master_addr = group.addrs.get(MASTER_ID)
        if r.broker_id == MASTER_ID or master_addr is None:
            return None, None
        live = self.broker_live_table.get(self._live_key(r.cluster_name, master_addr))
        return (None, None) if live is None else (master_addr, live.ha_server_addr)

    def _min_id_changed(self, group: BrokerGroup, r: Registration) -> MinBrokerIdChanged:
        others = tuple(held for id_, held in group.addrs.items() if id_ != group.min_id)
        notify = others if len(group.addrs) > 1 else tuple(group.addrs.values())
        live = self.broker_live_table[self.live_key(r)]
        return MinBrokerIdChanged(
            broker_name=group.broker_name,
            min_broker_id=group.min_id,
            min_broker_addr=group.addrs[group.min_id],
            offline_broker_addr=None,
            ha_broker_addr=live.ha_server_addr,
            notify=notify,
        )

    # -- data versions and heartbeats --------------------------------------------------------------------------------

    def data_version(self, cluster_name: str, broker_addr: str) -> DataVersion | None:
        """Return the data version that was last registered from this broker address; None if the broker is unknown."""
        live = self.broker_live_table.get(self._live_key(cluster_name, broker_addr))
        return None if live is None else live.data_version

    def is_changed(self, cluster_name: str, broker_addr: str, version: DataVersion) -> bool:
        """Whether `version`, older or newer, differs from the broker's stored data version; True for an unknown
        broker."""
        held = self.data_version(cluster_name, broker_addr)
        if held is None:
            return True
        return not held.same(version, self.profile)

    def query_data_version(
        self, cluster_name: str, broker_addr: str, version: DataVersion, *, now_ms: int
    ) -> tuple[bool, DataVersion | None]:
        """Answer QUERY_DATA_VERSION: whether the version has changed, and the stored version. The query counts as a
        heartbeat; in 4.9 only if the version is unchanged."""
        changed = self.is_changed(cluster_name, broker_addr, version)
        if not changed or self.profile is Profile.V5_X:
            self.heartbeat(cluster_name, broker_addr, now_ms=now_ms)
        return changed, self.data_version(cluster_name, broker_addr)

    def heartbeat(self, cluster_name: str, broker_addr: str, *, now_ms: int) -> None:
        """Handle BROKER_HEARTBEAT: a known broker counts as alive now. The broker stays bound to the channel on which
        it registered."""
        live = self.broker_live_table.get(self._live_key(cluster_name, broker_addr))
        if live is not None:
            live.last_update_ms = now_ms

    # -- changes asked for by an admin -------------------------------------------------------------------------------

    def wipe_write_perm(self, broker_name: str) -> int:
        """Take the write permission from every topic on this broker name. Returns the number of these topics."""
        return self._set_perms(broker_name, keep=~PERM_WRITE, put=0)

    def add_write_perm(self, broker_name: str) -> int:
        """Give every topic on this broker name read and write permission. Returns the number of these topics."""
        return self._set_perms(broker_name, keep=0, put=PERM_READ | PERM_WRITE)

    def _set_perms(self, broker_name: str, *, keep: int, put: int) -> int:
        count = 0
        for topic, rows in self.topic_queue_table.items():
            row = rows.get(broker_name)
            if row is None:
                continue
            count += 1
            perm = row.perm & keep | put
            if perm != row.perm:
                self._put_row(topic, replace(row, perm=perm))
        return count

    def delete_topic(self, topic: str, cluster_name: str | None = None) -> None:
        """Delete the topic, or only its queue data of one cluster's brokers; unknown names are ignored."""
        rows = self.topic_queue_table.get(topic)
        if rows is None:
            return
        if not cluster_name:
            del self.topic_queue_table[topic]
            self._changed_topics.add(topic)
            for broker_name in rows:
                self._row_changed(broker_name)
            return
        for broker_name in sorted(self.cluster_addr_table.get(cluster_name, set()) & rows.keys()):
            row = self._remove_row(topic, broker_name)
            self._say(INFO, "deleteTopic, remove one broker's topic %s %s %s", broker_name, topic, Shown(row))
        if topic not in self.topic_queue_table:
            self._say(INFO, "deleteTopic, remove the topic all queue %s %s", cluster_name, topic)

    def register_topic(self, topic: str, rows: Iterable[QueueData]) -> None:
        """REGISTER_TOPIC_IN_NAMESRV (5.x): add a topic's queue data, broker by broker, up to the first unknown broker.
        As in RocketMQ, an unknown broker leaves a new topic without queue data; an existing topic keeps what was added
        until then.
        """
        rows = tuple(rows)
        refused = why_rows_refused(self, [topic] * len(rows), (row.broker_name for row in rows))
        if refused is not None:
            self._say(WARNING, "registerTopic refused: %s", refused)
            return
        known = topic in self.topic_queue_table
        unknown = next((row for row in rows if row.broker_name not in self.broker_addr_table), None)
        for row in () if unknown and not known else rows:
            if row is unknown:
                break
            self._put_row(topic, row)
        if unknown:
            self._say(WARNING, "Register topic contains illegal broker, %s, %s", topic, Shown(unknown))
        elif known:
            held = ", ".join(f"{name}={Shown(row)}" for name, row in self.topic_queue_table[topic].items())
            self._say(INFO, "Topic route already exist.%s, {%s}", topic, held)
        else:
            self._say(INFO, "Register topic route:%s, [%s]", topic, ", ".join(str(Shown(row)) for row in rows))

    # -- answers -----------------------------------------------------------------------------------------------------

    def route(self, topic: str) -> TopicRouteData | None:
        """Return the route of `topic`: all its queue data, and its brokers that are registered. None if one of the two
        is empty."""
        rows = self.topic_queue_table.get(topic)
        if not rows:
            return None
        groups = [self.broker_addr_table[name] for name in sorted(rows) if name in self.broker_addr_table]
        if not groups:
            return None
        filter_servers = {}
        if self.filter_server_table:
            for group in groups:
                for address in group.addrs.values():
                    servers = self.filter_server_table.get(self._live_key(group.cluster, address))
                    if servers is not None:
                        filter_servers[address] = servers
        return TopicRouteData(
            queue_datas=tuple(rows[name] for name in sorted(rows)),
            broker_datas=tuple(self._broker_data(topic, group) for group in groups),
            filter_server_table=filter_servers,
            topic_queue_mapping_by_broker=self.topic_queue_mapping_info_table.get(topic),
        )

    def _broker_data(self, topic: str, group: BrokerGroup) -> BrokerData:
        """Return the broker group as an answer to a look-up has it.

        In 5.x with supportActingMaster, the slave with the smallest id appears as master, if the row is read-only.
        """
        data = group.data(self.profile)
        if (
            self.options.support_acting_master
            and group.enable_acting_master
            and group.addrs
            and MASTER_ID not in group.addrs
            and not topic.startswith(SYNC_BROKER_MEMBER_GROUP_PREFIX)
            and not self.topic_queue_table[topic][group.broker_name].perm & PERM_WRITE
        ):
            addrs = dict(group.addrs)
            addrs[MASTER_ID] = addrs.pop(group.min_id)
            return replace(data, broker_addrs=addrs)
        return data

    def cluster_info(self) -> ClusterInfo:
        """Return every broker group, and every cluster's broker names."""
        return ClusterInfo(
            broker_addr_table={name: group.data(self.profile) for name, group in self.broker_addr_table.items()},
            cluster_addr_table={name: tuple(sorted(names)) for name, names in self.cluster_addr_table.items()},
        )

    def broker_addrs(self, broker_name: str) -> dict[int, str]:
        """Return the addresses of one broker name's brokers (GET_BROKER_MEMBER_GROUP); empty for an unknown name."""
        group = self.broker_addr_table.get(broker_name)
        return {} if group is None else dict(group.addrs)

    def topics(self) -> tuple[str, ...]:
        return tuple(self.topic_queue_table)

    def topics_of_cluster(self, cluster_name: str) -> tuple[str, ...]:
        names = self.cluster_addr_table.get(cluster_name, set())
        return tuple(topic for topic, rows in self.topic_queue_table.items() if not names.isdisjoint(rows))

    def system_topics(self) -> tuple[tuple[str, ...], str | None]:
        """Return the cluster names, each followed by its broker names, and the address of any broker (None without
        brokers)."""
        names: list[str] = []
        for cluster, broker_names in self.cluster_addr_table.items():
            names += [cluster, *sorted(broker_names)]
        some = next((next(iter(g.addrs.values())) for g in self.broker_addr_table.values() if g.addrs), None)
        return tuple(dict.fromkeys(names)), some

    def topics_flagged(self, mask: int, wanted: int) -> tuple[str, ...]:
        """Return the topics whose flags, masked by `mask`, equal `wanted`. As in RocketMQ, only the flags in a topic's
        first QueueData count."""
        return tuple(
            topic
            for topic, rows in self.topic_queue_table.items()
            if rows and next(iter(rows.values())).topic_sys_flag & mask == wanted
        )


def filter_by_zone(route: TopicRouteData, zone_name: str) -> TopicRouteData:
    """Return `route` as a client of one zone sees it: only broker groups of that zone, and groups without a master
    (5.x)."""
    removed = {
        data.broker_name: data
        for data in route.broker_datas
        if data.broker_addrs.get(MASTER_ID) is not None and (data.zone_name or "").lower() != zone_name.lower()
    }
    gone = {address for data in removed.values() for address in data.broker_addrs.values()}
    return replace(
        route,
        broker_datas=tuple(data for data in route.broker_datas if data.broker_name not in removed),
        queue_datas=tuple(row for row in route.queue_datas if row.broker_name not in removed),
        filter_server_table={a: servers for a, servers in route.filter_server_table.items() if a not in gone},
    )
