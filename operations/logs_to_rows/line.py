"""A log line whose reported event is known."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from ...chaos.logs.stream import DAY_MS, RELATIVE_MS

UNDATED_MS = RELATIVE_MS + 30 * DAY_MS
"""Stamps of lines without a date are before this."""
HOUR_MS = 3_600_000
SERVERS_ZONE_MS = 8 * HOUR_MS
"""GMT+8, which servers and 5.x clients write in any zone."""


class Line(NamedTuple):
    file: str
    prefix: str
    """What a tool put before each line; "" for nothing."""
    line: int
    stamp_ms: float
    """The stamp's digits read as UTC."""
    resolution_ms: int
    zone_ms: int | None
    """How far the zone in the layout is ahead of UTC; None: no zone."""
    thread: str
    writer: str
    event: str
    fields: Mapping[str, str]

    @property
    def middle_ms(self) -> float:
        """The middle of the time span that the line's time stamp covers, for example half past a whole second."""
        return self.stamp_ms + (self.resolution_ms / 2 if self.resolution_ms > 1 else 0.0)

    @property
    def is_whole(self) -> bool:
        """Whether the line has all fields of its event. A line that was cut off can lack some of these fields."""
        return _NEEDS.get(self.event, frozenset()) <= self.fields.keys()


_TABLE = """\
address_removed     address
broker_boot         address broker
broker_expired      address
broker_offline      address
broker_registered   address
channel_active      address
channel_destroyed
channel_failed
channel_idle
channel_inactive    address
client_created
client_started
client_stopped
closed
closed_on_timeout
conflict_ignored    address broker old
connect_failed
connect_timeout
connected           address
connecting          address
controller_elected  broker
controller_followed
controller_heard    broker
controller_led
controller_lost     broker
consumer_connected
consumer_expired    group
election_told
heartbeat
live_removed        address
master_address      address broker cluster old
master_said
name_removed        broker
name_server_boot
name_server_chosen  new old
name_servers_said
name_servers_set
producer_connected
producer_expired    group
rebalanced
register_failed     name_server
registered          name_server
request_timeout
role_changes
route_changed       new topic
route_error
scanned
send_retried
server_stopped
server_stops
setting             key value
slave_sync_failed
slave_synced
topic_changed       row topic
topic_created
topic_deleted       broker topic
topic_gone          topic
topic_registered    row topic
topic_removed       topic
unregister_failed   name_server
unregistered        name_server
write_perm_added    broker
write_perm_wiped    broker
"""
_NEEDS = {event: frozenset(fields) for event, *fields in map(str.split, _TABLE.splitlines())}
"""The fields that each event needs, for events from which sources, clocks and rows are made."""

USED = frozenset(_NEEDS)


def starts(lines: Iterable[Line], keys: Collection[str], within_ms: float) -> list[int]:
    """Return the index of the first line of each start of a program. A start begins with settings (`keys`), or, if no
    settings were logged within `within_ms` before, with the line that says that the program serves."""
    found: list[int] = []
    settings_ms: float | None = None
    for number, line in enumerate(lines):
        is_new = settings_ms is None or line.stamp_ms - settings_ms > within_ms
        if line.event == "client_created" or (line.event == "setting" and line.fields["key"] in keys):
            found += [number] if is_new else []
            settings_ms = line.stamp_ms
        elif line.event in ("name_server_boot", "broker_boot", "client_started"):
            reads_its_store = line.event == "broker_boot" and settings_ms is not None  # which may take long
            found += [number] if is_new and not reads_its_store else []
            settings_ms = None
    return found


def zone_ms_of(text: str | None) -> int | None:
    """Return a time zone (`+08:00`, `-3:30` or `UTC`) in milliseconds ahead of UTC; None for any other text."""
    if text is None:
        return None
    said = text.strip().removeprefix("GMT").removeprefix("UTC").strip()
    if said in ("", "Z") and text.strip():
        return 0
    sign = {"+": 1, "-": -1}.get(said[:1])
    hours, _, minutes = said[1:].partition(":")
    if sign is None or not hours.isdigit() or (minutes and not minutes.isdigit()) or not 0 <= int(hours) <= 14:
        return None
    return sign * (int(hours) * HOUR_MS + int(minutes or 0) * 60_000)


def zone_text(zone_ms: float) -> str:
    minutes = round(abs(zone_ms) / 60_000)
    return f"{'-' if zone_ms < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
