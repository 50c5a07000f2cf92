"""Route look-ups: a topic on one broker and one on 64, asked with a JSON and with a ROCKETMQ header.

All servers answer the same questions to the same load generator, in turn, and the best of several rounds counts; C and
uvloop echoes answer with the bytes that our NameServer gives. At last the look-ups of a steady pace, alone and while
registrations of ten thousand topics arrive: what a client waits when a broker reports.
"""

import contextlib
from collections import Counter, defaultdict
from collections.abc import Mapping

from nemesrv.remoting.bodies.route import TopicConfig
from nemesrv.remoting.codes import SerializeType

from . import frames, measure
from .figures import OURS, Aim, Figures
from .measure import Server, Shot, Tools

TOPICS = {"topic-on-one-broker": 1, "topic-on-64-brokers": 64}
WANTED = {1: 2.5, 64: 6.0}
"""Of the faster Java NameServer's rate, by the number of brokers."""
WANTED_OF_ECHO = 0.6
PACED_PER_S = 5000
REGISTRATIONS_PER_S = 10


class Brokers:
    """64 brokers registered with one server over one connection, which stays open meanwhile."""

    def __init__(self, server: Server) -> None:
        self.connection = frames.connected(server)
        self.refresh()

    def refresh(self) -> None:
        """Register them again, so that neither they nor their channel are silent for too long."""
        for number in range(max(TOPICS.values())):
            topics = [TopicConfig(topic_name=name) for name, brokers in TOPICS.items() if number < brokers]
            topics.append(TopicConfig(topic_name="another"))  # 5.x refuses a first registration of one topic
            frames.call(self.connection, frames.registration(number, frames.body(topics)))

    def close(self) -> None:
        self.connection.close()


def look_ups(
    figures: Figures,
    servers: Mapping[str, Server],
    tools: Tools,
    *,
    seconds: float,
    connections: int,
    in_flight: int,
    rounds: int,
) -> None:
    """Rows `look-ups/s …`, `look-up p99 µs …` and `CPU µs a look-up …` (over all rounds), and the aims of the first."""
    with contextlib.ExitStack() as stack:
        brokers = {name: stack.enter_context(contextlib.closing(Brokers(server))) for name, server in servers.items()}
        for topic, count in TOPICS.items():
            for kind in SerializeType:
                what = f"{kind.name}, {count} broker{'s' if count > 1 else ''}, {connections}x{in_flight}"
                shots = {
                    name: frames.shot(each.connection, what, frames.route_request(topic, kind))
                    for name, each in brokers.items()
                }
                with contextlib.ExitStack() as echoes:
                    ports = _echoes(echoes, tools, shots[OURS])
                    ports |= {name: server.address.port for name, server in servers.items()}
                    spent_s, answered = defaultdict[str, float](float), Counter[str]()
                    for _ in range(rounds):
                        for each in brokers.values():
                            each.refresh()
                        for name, port in ports.items():
                            before_s = servers[name].cpu_s() if name in servers else 0
                            load = tools.load(
                                port,
                                shots.get(name, shots[OURS]),
                                seconds=seconds / rounds,
                                connections=connections,
                                in_flight=in_flight,
                            ).checked(f"{name}: {what}")
                            if name in servers:
                                spent_s[name] += servers[name].cpu_s() - before_s
                                answered[name] += load.requests
                            if load.requests:
                                figures.add(f"look-ups/s {what}", name, load.per_s)
                                figures.add(f"look-up p99 µs {what}", name, load.p99_us, less_is_better=True)
                for name in +answered:
                    cpu_us = spent_s[name] / answered[name] * 1e6
                    figures.add(f"CPU µs a look-up {what}", name, cpu_us, less_is_better=True)
                figures.aims.append(Aim(what=f"look-ups/s {what}", of="Java", at_least=WANTED[count]))
                figures.aims.append(Aim(what=f"look-ups/s {what}", of="C echo", at_least=WANTED_OF_ECHO))


def _echoes(stack: contextlib.ExitStack, tools: Tools, shot: Shot) -> dict[str, int]:
    echoes = {"C echo": measure.c_echo(tools, shot), "uvloop echo": measure.uvloop_echo(shot, tools.folder)}
    return {name: stack.enter_context(echo).address.port for name, echo in echoes.items()}


def look_ups_beside_registrations(
    figures: Figures, servers: Mapping[str, Server], tools: Tools, *, seconds: float, rounds: int, topics: int
) -> None:
    """Rows `paced look-up p99 µs …`: alone, and while registrations of that many topics arrive, one topic changed."""
    with contextlib.ExitStack() as stack:
        brokers = {name: stack.enter_context(contextlib.closing(Brokers(server))) for name, server in servers.items()}
        for _ in range(rounds):
            for name, server in servers.items():
                brokers[name].refresh()
                port, connection = server.address.port, brokers[name].connection
                shot = frames.shot(connection, "paced look-up", frames.route_request(next(iter(TOPICS))))
                for beside in ("alone", f"beside registrations of {topics:,} topics"):
                    with contextlib.ExitStack() as registering:
                        if beside != "alone":
                            registration = frames.shot(connection, beside, *frames.changing(topics, changed=1))
                            pace = {"in_flight": 20, "per_s": REGISTRATIONS_PER_S}
                            loading = tools.loading(port, registration, seconds=seconds / rounds + 0.2, **pace)
                            ended = registering.enter_context(loading)
                        pace = {"connections": 16, "in_flight": 64, "per_s": PACED_PER_S}
                        load = tools.load(port, shot, seconds=seconds / rounds, **pace)
                        load.checked(f"{name}: look-ups {beside}")
                        if beside != "alone":
                            ended().checked(f"{name}: {beside}")
                    figures.add(f"paced look-up p99 µs, {beside}", name, load.p99_us, less_is_better=True)
                    figures.add(f"paced look-up max µs, {beside}", name, load.max_us, less_is_better=True)
        figures.aims.append(Aim(what=f"paced look-up p99 µs, {beside}", of="Java", at_most=1))
