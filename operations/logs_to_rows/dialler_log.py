"""Makes history rows from a broker's or client's log: connections, chosen NameServers, requests, answers. Pure: no I/O.

both      connected, CLOSE, failed, timeout      channel open, close, connect_failed; timed_out
          name server address updated            name_server_list
          new name server is chosen              name_server_chosen
          wait response timeout                  timed_out
broker    register … OK, Exception               register
          boot success, unregisterBroker,        started, boot, stopped
          Shutdown hook
          new producer connected, SCAN: remove   client_heartbeat, client_gone
client    topicRouteTable, route info changed    route_changed
          updateTopicRouteInfo… Exception        name_server_call
          start OK, shutdown OK                  started, stopped
"""

import re
from functools import partial
from typing import Any

from .book import CLIENT_ID, Book, addresses_in, route_of
from .line import Line, starts
from .marks import client_id, host_of
from .signs import LEAVING_MS
from .sources import BROKER, Source
from .writing import Rows

_BOOT_MS = 180_000.0
_SAME_MS = 1_200.0
_FIRST_MS = 10_000.0
_ONEWAY_MS = 1_000.0
_LEFT_MS = 10_000.0
"""A log that ends this soon after its broker's unregistration is of a stopped broker."""
_REMOTE = re.compile(r"R:/?([\w.\-]+:\d+)")
_NO_ANSWER = ("wait response", "timeout", "Timeout")
_REFUSED = ("connect to", "Connect", "refused")
_SYSTEM_LIST = "192.0.2."


class DiallerLog:
    def __init__(self, source: Source, role: str, book: Book, rows: Rows, address: str | None = None) -> None:
        self._source, self._book, self._rows = source, book, rows
        self._put = partial(rows.put_line, source, role)
        self._address = address
        self._list: tuple[str, ...] = ()
        self._chosen: str | None = None
        self._open: set[str] = set()
        self._timeouts: dict[str, float] = {}
        self._unregistered_ms = self._stops_ms = self._created_ms = -1e18
        self._started = False
        self._term: str | None = None

    def read(self) -> None:
        lines = self._source.lines
        begins = self._beginnings(lines)
        for number, line in enumerate(lines):
            if number in begins or number == 0:
                if number and self._started:
                    self._rows.incarnations[self._source.name] += 1
                    self._open.clear()
                    self._list = ()
                    self._chosen = None
                learnt = "log" if number in begins else "inferred"
                self._put(line, "started", learnt=learnt, address=self._address)
                self._started = True
            self._line(line)
            is_last = number + 1 == len(lines) or number + 1 in begins
            if line.event == "server_stops":
                self._stops_ms = line.stamp_ms
            left = is_last and line.stamp_ms - self._unregistered_ms < _LEFT_MS
            if line.event == "server_stopped" or left or (is_last and line.stamp_ms - self._stops_ms < LEAVING_MS):
                self._put(line, "stopped")
                self._unregistered_ms = self._stops_ms = -1e18

    def _beginnings(self, lines: list[Line]) -> set[int]:
        found = starts(lines, ("rocketmqHome", "namesrvAddr"), _BOOT_MS)
        if found and lines[found[0]].stamp_ms - lines[0].stamp_ms <= _FIRST_MS:
            found[0] = 0  # what it logged first, it logged on the way
        # a program may make several clients: it began once
        return set(found if self._source.kind == BROKER else found[:1])

    def _line(self, line: Line) -> None:
        fields = line.fields
        address = fields.get("address", "")
        match line.event:
            case "name_servers_set":
                self._listed(line, addresses_in(fields.get("new")))
            case "name_server_chosen":
                self._choose(line)
            case "connected":
                if address and not address.startswith(_SYSTEM_LIST):
                    self._open.add(address)
                    self._put(line, "channel", f="open", address=address, value={"reason": "connected"})
            case "closed":
                if address in self._open or (address and not self._open):
                    self._open.discard(address)
                    self._put(line, "channel", f="close", address=address, value={"reason": "closed"})
            case "connect_failed" | "connect_timeout":
                self._put(line, "channel", f="connect_failed", address=address, value={"reason": line.event})
            case "closed_on_timeout" | "request_timeout":
                self._timed_out(line, address)
            case _ if self._source.kind == BROKER:
                self._of_broker(line)
            case _:
                self._of_client(line)

    def _listed(self, line: Line, found: tuple[str, ...]) -> None:
        if found and found != self._list and not found[0].startswith(_SYSTEM_LIST):
            changed = "fetchNameServerAddr" if self._list and set(self._list) != set(found) else None
            self._list = found
            self._put(line, "name_server_list", f=changed, value=list(found))

    def _choose(self, line: Line) -> None:
        new, old = line.fields["new"], line.fields["old"]
        if new.startswith(_SYSTEM_LIST):
            return
        index = self._list.index(new) if new in self._list else None
        reason = "first" if old == "null" else "not_active"
        self._chosen = new
        value = {"old": None if old == "null" else old, "index": index, "reason": reason}
        self._put(line, "name_server_chosen", name_server=new, value=value)

    def _timed_out(self, line: Line, address: str) -> None:
        if address in ("", "null"):
            address = self._chosen or ""
        if line.stamp_ms - self._timeouts.get(address, -1e18) <= _SAME_MS:
            return  # the line that goes with it
        self._timeouts[address] = line.stamp_ms
        waited = line.fields.get("timeout_ms")
        self._put(
            line,
            "timed_out",
            f="request",
            address=address or None,
            duration_ms=float(waited) if waited and waited.isdigit() else None,
        )

    # --- brokers ------------------------------------------------------------------------------------------------------

    def _of_broker(self, line: Line) -> None:
        fields = line.fields
        match line.event:
            case "broker_boot":
                self._put(line, "boot")
            case "topic_created":
                self._created_ms = line.stamp_ms
            case "registered" if line.stamp_ms - self._created_ms <= _ONEWAY_MS:
                pass  # 4.9 registers a new topic by a oneway request, and logs OK at once: nobody answered
            case "registered":
                self._put(
                    line, "register", type="ok", name_server=fields["name_server"], code=0, value=self._held_id(line)
                )
            case "election_told":
                self._term = fields["term"]
            case "role_changes":
                self._term = fields.get("epoch", self._term)
            case "register_failed":
                code = fields.get("code", "")
                said = fields.get("more", "") + fields.get("exception", "") + fields.get("said", "")
                is_refused = any(word in said for word in _REFUSED) and not any(word in said for word in _NO_ANSWER)
                self._put(
                    line,
                    "register",
                    type="fail" if code or is_refused else "info",
                    name_server=fields["name_server"],
                    code=int(code) if code else None,  # an answer: the NameServer refused what it was sent
                )
            case "unregistered" | "unregister_failed":
                self._unregistered_ms = line.stamp_ms
            case "producer_connected" | "consumer_connected":
                self._client(line, "client_heartbeat", fields.get("channel", ""))
            case "consumer_expired" | "producer_expired":
                self._client(line, "client_gone", fields.get("channel", ""), f="expired")

    def _held_id(self, line: Line) -> dict[str, Any] | None:
        """The id under which it registers, if that changes, and the term of the election."""
        if not self._book.had.get(self._address or ""):
            return None
        found: dict[str, Any] = {"id": self._book.id_at(self._address or "", self._source.wall_ms(line))}
        return found if self._term is None else {**found, "term": int(self._term)}

    def _client(self, line: Line, event: str, channel: str, f: str | None = None) -> None:
        client, remote = CLIENT_ID.search(channel), _REMOTE.search(channel)
        address = remote[1] if remote else channel if host_of(channel) else None
        value: dict[str, Any] = {"client": client[1] if client else None}
        if event == "client_gone":
            value["groups"] = [line.fields["group"]] if line.event == "consumer_expired" else []
        self._put(line, event, f=f, address=address, op_id=address, value=value)

    # --- clients ------------------------------------------------------------------------------------------------------

    def _of_client(self, line: Line) -> None:
        fields = line.fields
        match line.event:
            case "route_changed":
                route = route_of(fields.get("new") or "")
                if route is not None:
                    self._put(line, "route_changed", topic=fields["topic"], value=route)
            case "route_error":
                code = fields.get("code", "")
                tried = [{"name_server": self._chosen, "outcome": "answered" if code else "no_answer"}]
                self._put(
                    line,
                    "name_server_call",
                    type="fail" if code else "info",
                    f="route",
                    topic=fields.get("topic") or None,
                    name_server=self._chosen,
                    code=int(code) if code.isdigit() else None,
                    value={"tried": tried if self._chosen else []},
                )
            case "client_stopped":
                self._put(line, "stopped")


def ident(source: Source) -> dict[str, str | None]:
    """Return the ClientID and the host of the client that wrote the log."""
    known = client_id(source)
    return {"id": known, "address": known.partition("@")[0] if known and "@" in known else None}
