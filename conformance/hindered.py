"""Why a program cannot be examined, by what was seen of its first process, in a sentence."""

from __future__ import annotations

from ..chaos.fronts.observed import Asked, Dialled, Foreign, Opened, Protocol
from ..remoting.node.network import Address
from .scene import START_LIMIT_S, Found
from .situations import GET_ROUTEINFO
from .stand import ADDRESS_SERVER, TOPIC
from .subject import told_of
from .watched import Watched


def hindered(first: Found, cmd: str) -> str:
    """Why the program cannot be examined, by its first process; "" when it can."""
    watched = first.watched
    if watched.at_work_ms is not None:
        return ""
    foreign = next((each for each in watched.of(Foreign) if each.front != ADDRESS_SERVER), None)
    said = told_of(first.last_lines)
    if foreign is not None:
        return f"{_foreign_sentence(cmd, foreign)}{said}"
    after_s = (watched.ended_ms - watched.began_ms) / 1000
    if watched.ended not in ("stopped", "hung"):
        return f"{cmd} ended ({watched.ended}) after {after_s:.1f} s, before a NameServer gave it a route{said}"
    if not any(watched.of(Opened)):
        others = elsewhere(watched)
        if others:
            where = ", ".join(map(str, others[:3]))
            return (
                f"{cmd} connected to {where} and to none of its NameServers: it is told them by NAMESRV_ADDR, "
                f"ROCKETMQ_NAMESRV_ADDR, or {{namesrv}} in its arguments{said}"
            )
        return (
            f"{cmd} made no connection within {START_LIMIT_S:g} s: it is told its NameServers by NAMESRV_ADDR, "
            f"ROCKETMQ_NAMESRV_ADDR, or {{namesrv}} in its arguments{said}"
        )
    topics = sorted({each.fields.get("topic", "") for each in watched.of(Asked) if each.code == GET_ROUTEINFO})
    if topics:
        return (
            f"{cmd} asked for the route of {', '.join(topics)} and got none: its topic is told by NEMESRV_TOPIC, or "
            f"{{topic}} in its arguments ({TOPIC}){said}"
        )
    return f"{cmd} connected, and asked for no route within {START_LIMIT_S:g} s{said}"


def elsewhere(watched: Watched) -> list[Address]:
    """Where it dialled that is no front of its stand."""
    return list(dict.fromkeys(each.address for each in watched.of(Dialled) if each.front is None))


def asked_by_http(watched: Watched) -> bool:
    """Whether it has connected to the address server."""
    return any(each.front == ADDRESS_SERVER for each in watched.of(Opened))


def _foreign_sentence(cmd: str, foreign: Foreign) -> str:
    spoken = {
        Protocol.TLS: "TLS",
        Protocol.GRPC: "gRPC (HTTP/2)",
        Protocol.HTTP: "HTTP",
    }.get(foreign.protocol)
    if spoken is None:
        began = foreign.began[:8].hex(" ")
        return f"{cmd} does not speak RocketMQ's remoting protocol to {foreign.front}: its first bytes are {began}"
    mend = {
        Protocol.TLS: "switch TLS off in the client (Java: -Dtls.enable=false, or useTLS)",
        Protocol.GRPC: "gRPC clients talk to a Proxy, never to a NameServer, and choose none",
        Protocol.HTTP: "it was told NameServers of the remoting protocol, and no address server",
    }[foreign.protocol]
    return f"{cmd} speaks {spoken} to {foreign.front}, and only RocketMQ's remoting protocol can be watched: {mend}"
