"""Lists the trouble that clients' own logs tell of: failed sends, pulls, look-ups and connections, calls without an
answer, and routes without a broker. Pure.

    lines, rows, raw texts ─► suffered() ─► Suffered: client, what, how often, from when to when
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any

from ...remoting.codes import ResponseCode
from ...remoting.topics import is_own
from ..logs_to_rows.line import Line
from ..logs_to_rows.reconstruct import Reconstructed
from ..logs_to_rows.signs import value_of
from ..logs_to_rows.sources import CLIENT, client_named
from ..logs_to_rows.timeline import wall_text
from .said import Texts

APART_MS = 120_000.0
"""The same trouble is listed anew after this time without the trouble."""
_BROKER = re.compile(r"brokerName=([^,\]}]+)")
_NO_ADDRESS = re.compile(r"[Tt]he broker ?\[([^\]]*)\] (?:does )?not exist")


@dataclass(slots=True)
class Suffered:
    """One kind of trouble of one client, from first to last occurrence. Times are UTC milliseconds."""

    client: str
    what: str
    from_ms: float
    to_ms: float
    """inf: a route without a broker until the end of the log."""
    times: int | None = 1
    """None: the trouble lasted from one line to another."""

    def sentence(self, zone: tzinfo) -> str:
        """Return `a try to send to broker-a failed 9 times from 07:46:04 to 07:46:20`."""
        first, last = (
            "" if math.isinf(ms) else f"{datetime.fromtimestamp(ms / 1000, UTC).astimezone(zone):%H:%M:%S}"
            for ms in (self.from_ms, self.to_ms)
        )
        lasted = f", {(self.to_ms - self.from_ms) / 1000:.0f} s" if self.times is None and last else ""
        when = f"at {first}" if first == last else f"from {first} to {last or 'the end of its log'}{lasted}"
        times = f" {self.times:,} times" if (self.times or 0) > 1 else ""
        return f"{self.what}{times} {when}"

    def to_json(self, zone: tzinfo) -> dict[str, Any]:
        """Return an entry of incident.json's `suffered`."""
        to = None if math.isinf(self.to_ms) else wall_text(self.to_ms, zone)
        return {
            "client": self.client,
            "says": self.sentence(zone),
            "times": self.times,
            "from": wall_text(self.from_ms, zone),
            "to": to,
        }


def suffered(found: Reconstructed, texts: Texts) -> list[Suffered]:
    """Return the trouble that clients' logs tell of, ordered by client and time."""
    told: list[Suffered] = [*_routes(found)]
    last: dict[tuple[str, str], Suffered] = {}
    for client, what, at_ms in sorted(_each(found, texts), key=lambda one: one[2]):
        one = last.get((client, what))
        if one is None or at_ms - one.to_ms > APART_MS:
            last[client, what] = Suffered(client, what, at_ms, at_ms)
            told.append(last[client, what])
        else:
            one.to_ms, one.times = at_ms, (one.times or 0) + 1
    return sorted(told, key=lambda one: (one.client, one.from_ms))


def _each(found: Reconstructed, texts: Texts) -> Iterator[tuple[str, str, float]]:
    """Return (client, what, when) of each failure."""
    for source in (one for one in found.found if one.kind == CLIENT):
        for line in source.lines:
            if what := _of_line(line, found.nodes.of_address):
                yield source.name, what, source.wall_ms(line)
    by_file = {file: source.name if source.kind == CLIENT else None for source in found.found for file in source.files}
    for said in (one for one in texts.said if one.file not in found.left_out):
        client = by_file[said.file] if said.file in by_file else client_named(said.file)
        if client and said.stamp_ms and (broker := _NO_ADDRESS.search(said.text)) is not None:
            what = f'a call ended with "The broker[{broker[1]}] not exist"'
            yield client, what, found.wall_ms(said.file, said.stamp_ms)
    for row in found.rows:
        if found.nodes.roles.get(row["node"]) in ("producer", "consumer") and (what := _of_row(row, found)):
            yield row["node"], what, found.origin_ms + float(row["time_ms"])


def _of_line(line: Line, of_address: Mapping[str, str]) -> str:
    fields = line.fields
    queue = _BROKER.search(fields.get("queue", ""))
    address = fields.get("broker_address") or fields.get("address", "")
    broker = queue[1] if queue else fields.get("broker") or of_address.get(address, address)
    code = f" (code {_named(fields['code'])})" if fields.get("code") else ""
    match line.event:
        case "send_retried":
            return f"a try to send{broker and f' to {broker}'} failed"
        case "pull_failed":
            return f"a pull{broker and f' from {broker}'} failed{code}"
        case "client_exception" if "tries" in fields:
            return f"a send of {fields.get('topic', 'a topic')} failed after all tries"
        case "client_exception" if "topic" in fields and not is_own(fields["topic"]):
            return f"a call found no route of {fields['topic']}"
        case _:
            return ""


def _named(code: str) -> str:
    """Return `25, SUBSCRIPTION_NOT_LATEST`; only the number of an unknown code."""
    names = [f"{known:d}, {known.name}" for known in ResponseCode if str(known.value) == code]
    return next(iter(names), code)


def _of_row(row: Mapping[str, Any], found: Reconstructed) -> str:
    def called(address: object) -> str:
        return found.nodes.of_address.get(str(address), str(address or "a server"))

    match row["event"]:
        case "timed_out":
            return f"a call to {called(row.get('address'))} had no answer"
        case "channel" if row.get("f") == "connect_failed":
            return f"a connection to {called(row.get('address'))} failed"
        case "name_server_call" if row.get("type") != "ok" and not is_own(row.get("topic") or ""):
            return f"a look-up{f' of {topic}' if (topic := row.get('topic')) else ''} failed"
        case _:
            return ""


def _routes(found: Reconstructed) -> Iterator[Suffered]:
    """Return the times in which a client's route of a topic lacked a broker that it had had before."""
    had: dict[tuple[str, str], frozenset[str]] = {}
    without: dict[tuple[str, str, str], float] = {}
    for row in found.rows:
        topic = str(row.get("topic") or "")
        if row["event"] != "route_changed" or is_own(topic):
            continue
        client, at_ms = row["node"], found.origin_ms + float(row["time_ms"])
        now = frozenset(value_of(row).get("queues") or ())
        for broker in sorted(had.get((client, topic), frozenset()) - now):
            without.setdefault((client, topic, broker), at_ms)
        for broker in sorted(now):
            if (since_ms := without.pop((client, topic, broker), None)) is not None:
                yield _without(client, topic, broker, since_ms, at_ms)
        had[client, topic] = now
    for (client, topic, broker), since_ms in without.items():
        yield _without(client, topic, broker, since_ms, math.inf)


def _without(client: str, topic: str, broker: str, from_ms: float, to_ms: float) -> Suffered:
    return Suffered(client, f"its route of {topic} had no {broker}", from_ms, to_ms, times=None)
