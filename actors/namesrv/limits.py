"""How much one NameServer takes in, so that no peer can grow its memory without end. Upstream has no such limits.

They are far beyond any cluster that RocketMQ runs: twenty thousand broker groups, two million rows (a topic at a
broker). What would go beyond one is refused with code 1 and a remark that names it; what is there already stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat

from .tables import Registration, Tables

NAME_MAX = 1024
GROUPS_MAX = 20_000
LIVE_MAX = 50_000
ROWS_MAX = 2_000_000
IDS_MAX = 1024
FILTER_SERVERS_MAX = 256
MAPPINGS_MAX = 64 * 1024 * 1024


def why_refused(tables: Tables, r: Registration) -> str | None:
    """The limit that `r` would break, as a sentence; None when it breaks none."""
    names = (
        r.cluster_name,
        r.broker_name,
        r.broker_addr,
        r.ha_server_addr,
        r.zone_name or "",
        *(r.filter_servers or ()),
    )
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
    """The limit that a row for each topic and its broker name would break, as a sentence; None when they break none."""
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
    """Roughly the bytes that mapping infos take."""
    return sum(len(topic) + len(repr(info)) for topic, info in mappings.items())
