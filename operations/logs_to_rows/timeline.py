"""Selects the rows of an import that a person wants to read, in order of time. Pure: no I/O."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from ...chaos.history.schema import Row
from ...chaos.topology import broker_node
from .signs import is_inferred, value_of, where_of

ANSWERED = "its registration there was answered with code"
"""How a registration failed that a NameServer refused; the link and the process were there."""


def timeline_of(
    rows: Sequence[Row], of_address: Mapping[str, str], origin_ms: float, bounds: Mapping[str, float], zone: tzinfo
) -> list[dict[str, Any]]:
    """Return the entries of incident.json's `timeline`, with the time of day in the time zone `zone`."""
    found = []
    there: dict[tuple[str, str], str] = {}
    failing: dict[tuple[str, str], bool] = {}
    for row in rows:
        entry = _entry(row, of_address, there, failing)
        if entry is None:
            continue
        what, subject, how = entry
        place = where_of(row)
        at_ms = float(row["time_ms"])
        found.append(
            {
                "time_ms": round(at_ms, 3),
                "wall": wall_text(origin_ms + at_ms, zone),
                "bound_ms": bounds.get(row["node"], 500.0),
                "node": row["node"],
                "what": what,
                "subject": subject,
                "how": how,
                "file": place.get("file"),
                "line": place.get("line"),
            }
        )
    return found


def _entry(
    row: Row,
    of_address: Mapping[str, str],
    there: dict[tuple[str, str], str],
    failing: dict[tuple[str, str], bool],
) -> tuple[str, str, str] | None:
    def called(address: object) -> str:
        return of_address.get(str(address), str(address or ""))

    node, event, value = row["node"], row["event"], value_of(row)
    broker = broker_node(row.get("broker_name") or "", row.get("broker_id") or 0)
    match event:
        case "started":
            for key in [key for key in there if key[0] == node]:
                del there[key]
            return None if is_inferred(row) else ("started", node, "")
        case "stopped":
            return "stopped", node, ""
        case "broker_dropped":
            there[node, broker] = ""
            return "lost", broker, str(value.get("reason"))
        case "registration":
            was, who = there.get((node, broker)), of_address.get(str(row.get("address")), broker)
            there[node, broker] = who
            if was == who or (was is None and is_inferred(row)):
                return None
            return "came", broker, f"which is {who} now" if who != broker else "" if was is None else "again"
        case "register":
            server, is_ok = called(row["name_server"]), row.get("type") == "ok"
            had_failed = failing.get((node, server), False)
            failing[node, server] = not is_ok
            if is_ok is not had_failed:
                return None
            if is_ok:
                return "registered", server, "again"
            return "failed", server, f"{ANSWERED} {row['code']}" if row.get("code") else "its registration there"
        case "channel" if row.get("f") == "close" and row["role"] not in ("broker", "slave"):
            return "closed", called(row.get("address")), ""
        case "timed_out":
            return "timed_out", called(row.get("address")), ""
        case "name_server_chosen":
            old = value.get("old")
            return "chose", called(row["name_server"]), f"left {called(old)}" if old else ""
        case "name_server_list" if row.get("f"):
            return "changed", "its list of NameServers", ""
        case "route_changed":
            return "changed", str(row.get("topic")), _brokers(row)
        case "name_server_call":
            return "failed", str(row.get("topic") or "a look-up"), f"code {row['code']}" if row.get("code") else ""
        case "write_perm":
            return "changed", broker, "write permission"
        case _:
            return None


def _brokers(row: Row) -> str:
    route = value_of(row)
    return "now " + ", ".join(route.get("queues") or ()) if route else "gone"


def wall_text(wall_ms: float, zone: tzinfo = UTC) -> str:
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=wall_ms)
    return at.astimezone(zone).isoformat(timespec="milliseconds").replace("+00:00", "Z")
