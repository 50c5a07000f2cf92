"""Registrations: one broker with ten thousand topics as fast as it is answered, and the pace of a thousand brokers.

A broker registers every 30 s and whenever a topic of it changes, each time with all its topics. So there are three
rows for one broker (nothing has changed, one topic has, all have), and for the thousand the share of one core that
their registrations cost at that period, nothing having changed.
"""

from collections.abc import Mapping

from . import frames
from .figures import Aim, Figures
from .measure import Server, Tools

PERIOD_S = 30
CORE_MAX = 0.1


def registrations(
    figures: Figures, servers: Mapping[str, Server], tools: Tools, *, seconds: float, rounds: int, topics: int
) -> None:
    """Rows `registrations/s …`, and their aims."""
    for changed in (0, 1, topics):
        words = {0: "unchanged", 1: "one changed", topics: "all changed"}[changed]
        what = f"registrations/s of {topics:,} topics, {words}"
        shots = {}
        for name, server in servers.items():
            with frames.connected(server) as connection:
                shots[name] = frames.shot(connection, what, *frames.changing(topics, changed=changed))
        for _ in range(rounds):
            for name, server in servers.items():
                load = tools.load(server.address.port, shots[name], seconds=seconds / rounds)
                if load.checked(f"{name}: {what}").requests:
                    figures.add(what, name, load.per_s)
        figures.aims.append(Aim(what=what, of="Java", at_least=1))


def heartbeats(
    figures: Figures, name: str, server: Server, tools: Tools, *, seconds: float, brokers: int, topics: int
) -> None:
    """The row `cores for …` of one server, which is left with all these brokers; and the aim."""
    body = frames.body(frames.topics(topics))
    with frames.connected(server) as connection:
        shot = frames.shot(connection, "heartbeats", *(frames.registration(number, body) for number in range(brokers)))
        before_s = server.cpu_s()
        load = tools.load(
            server.address.port, shot, seconds=seconds, connections=brokers, in_flight=2, per_s=brokers / PERIOD_S
        ).checked(f"{name}: heartbeats")
        what = f"cores for {brokers:,} brokers x {topics:,} topics every {PERIOD_S} s"
        figures.add(what, name, (server.cpu_s() - before_s) / seconds, less_is_better=True)
        figures.add(f"{what}: p99 µs", name, load.p99_us, less_is_better=True)
    aim = Aim(what=what, of=None, at_most=CORE_MAX)
    if aim not in figures.aims:
        figures.aims.append(aim)
