"""Incidents to be had on Apache's own servers and clients: one fault each, by name. `SCENARIOS`."""

from collections.abc import Mapping
from typing import Any

SCALE = 3
"""So many times as fast as the machine's clock do theirs go."""
_AT_S = 40
_V4, _V5 = ("apache-4.9.7", "apache-4.9.8"), ("apache-5.3.3", "apache-5.3.3")
"""Whose servers, and whose clients: 4.9.8 was published without its servers."""


def _scenario(
    what: str,
    versions: tuple[str, str],
    *entries: Mapping[str, Any],
    name_servers: int = 2,
    settle_s: int = 100,
    cluster: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    servers, clients = versions
    return {
        "description": f"{what}; Apache's servers {servers.removeprefix('apache-')}, its clients beside them.",
        "cluster": {"name_servers": name_servers, "brokers": 2, "implementation": servers, **(cluster or {})},
        "workload": {"producers": 1, "consumers": 1, "client_starts": 0, "implementation": clients, "sends_per_s": 2},
        "timers": {"time_scale": SCALE},
        "timeline": [*entries],
        "settle_s": settle_s,
        "checks": ["routes_are_true"],
    }


def _for(lasts_s: int, begun: Mapping[str, Any], ended: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    return {"at_s": _AT_S, **begun}, {"at_s": _AT_S + lasts_s, **ended}


def _links(do: str, link: str, lasts_s: int, **more: Any) -> tuple[Mapping[str, Any], ...]:
    return _for(lasts_s, {"do": do, "links": [link], **more}, {"do": "heal"})


def _node(do: str, node: str, lasts_s: int, ended: str) -> tuple[Mapping[str, Any], ...]:
    return _for(lasts_s, {"do": do, "nodes": [node]}, {"do": ended, "nodes": [node]})


_WIPED = {"nodes": ["ns-0"], "broker": "broker-a"}
_CLAIMED = {"nodes": ["ns-0", "ns-1"], "broker": "broker-a", "address": "10.9.9.9:10911"}

SCENARIOS: Mapping[str, dict[str, Any]] = {
    "pair-partition-5": _scenario("A pair apart", _V5, *_links("black_hole", "broker-a <-> ns-0", 160)),
    "one-way-4": _scenario(
        "A NameServer's answers reach no broker-b", _V4,
        *_links("black_hole", "broker-b <-> ns-1", 160, stream="downstream"),
    ),
    "one-way-5": _scenario(
        "A NameServer hears nothing of broker-b", _V5,
        *_links("black_hole", "broker-b <-> ns-1", 160, stream="upstream"),
    ),
    "host-lost-4": _scenario("A broker's host is gone", _V4, *_links("black_hole", "* <-> broker-a", 170)),
    "crash-4": _scenario("A broker is killed", _V4, *_node("kill", "broker-b", 60, "restart")),
    "clean-stop-4": _scenario("A broker is stopped and unregisters", _V4, *_node("stop", "broker-a", 50, "restart")),
    "clean-stop-5": _scenario("A broker is stopped and unregisters", _V5, *_node("stop", "broker-b", 50, "restart")),
    "hang-4": _scenario("A broker stands still", _V4, *_node("pause", "broker-a", 170, "resume")),
    "hang-5": _scenario("A broker stands still", _V5, *_node("pause", "broker-b", 170, "resume")),
    "name-server-restarted-4": _scenario("A NameServer begins anew", _V4, *_node("kill", "ns-1", 25, "restart")),
    "name-server-restarted-5": _scenario("A NameServer begins anew", _V5, *_node("stop", "ns-0", 40, "restart")),
    "wiped-4": _scenario(
        "A broker's write permission is wiped", _V4,
        *_for(70, {"do": "wipe_write_perm", **_WIPED}, {"do": "add_write_perm", **_WIPED}),
    ),
    "wiped-5": _scenario(
        "A broker's write permission is wiped", _V5,
        *_for(70, {"do": "wipe_write_perm", **_WIPED}, {"do": "add_write_perm", **_WIPED}),
    ),
    "claimed-4": _scenario(
        "Another address claims a broker's name", _V4,
        *_for(90, {"do": "register", "every_s": 30, **_CLAIMED}, {"do": "unregister", **_CLAIMED}),
    ),
    "name-server-hang-5": _scenario("A NameServer stands still", _V5, *_node("pause", "ns-1", 160, "resume")),
    "idle-closed-4": _scenario(
        "A connection is dead at one end, and closed as idle", _V4, *_links("half_open", "broker-a <-> ns-0", 160)
    ),
}  # fmt: skip
