"""`make client-hour`: clients send, receive, rebalance and leave for an hour, and every error that came is told.

    python -m tests.clients_matrix.hour CLIENT … [--minutes 60] [--apache] [--out FOLDER]

Two NameServers and two brokers, of ours or (`--apache`) of Apache's, where nothing goes wrong; of each profile that the
clients need one such cluster, and for each client a topic and a group of its own. One process sends and receives all
the time; six times another consumer of its group comes, and leaves with SIGTERM:

    stays  ════════════════════════════════════════    joins   ──═══─────═══─────═══──── …

Told are the sends that failed, messages acknowledged and never received, ended processes, and each kind of line that
is no event of the driver, or a server's warning, with its count: what a run at Apache's has not, is ours to mend.
Exit status: 1 where a send failed, a message was lost, or a process ended as it should not; 4 where a part is missing.
"""

import argparse
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from nemesrv.chaos.apache.maven import JavaMissing
from nemesrv.clients.admin import AdminClient
from nemesrv.remoting.node.network import Address
from tests.interop import programs
from tests.interop.jars import Jars
from tests.interop.programs import Program
from tests.interop.waiting import ask, eventually

from .catalogue import CLIENTS, Client
from .install import ClientMissing, command

JOINS = 6
START_S, SETTLE_S, END_S = 120.0, 30.0, 30.0
"""For a process to start, for the last messages to arrive, and for a process to end."""
_VARIES = re.compile(r"0x[0-9a-fA-F]+|[0-9A-F]{16,}|\d+")
_TROUBLE = re.compile(r"\b(WARN|WARNING|ERROR)\b")


@dataclass
class Told:
    """What came of it. The counters are of lines with their numbers taken out."""

    sent: int = 0
    received: int = 0
    twice: int = 0
    lost: list[str] = field(default_factory=list)
    joined: int = 0
    failed_sends: Counter[str] = field(default_factory=Counter)
    ended: list[str] = field(default_factory=list)
    said: Counter[str] = field(default_factory=Counter)

    @property
    def is_clean(self) -> bool:
        return self.sent > 0 and not (self.failed_sends or self.lost or self.ended)

    def lines(self) -> Iterator[str]:
        """For people."""
        yield f"{self.sent:,} sent, {self.received:,} received, {self.twice:,} of them again, {len(self.lost)} lost"
        yield f"{self.joined} times another consumer came and left"
        yield from self.ended
        for title, of in (
            ("sends that failed", self.failed_sends),
            ("lines besides events", self.said),
        ):
            yield from shown(title, of)


def shown(title: str, of: Counter[str]) -> Iterator[str]:
    yield f"{title}: {of.total()}"
    yield from (f"  {count} × {line}" for line, count in of.most_common(10))


def without_numbers(line: str) -> str:
    """So that lines of one kind are one."""
    return _VARIES.sub("N", line)[:300]


def warnings(of_servers: Iterable[str]) -> Counter[str]:
    """What servers warned of, counted."""
    return Counter(without_numbers(line) for line in of_servers if _TROUBLE.search(line))


def read(stays: Program, joined: Sequence[Program], told: Told) -> None:
    """What the processes said, counted."""
    acknowledged: set[str] = set()
    received: Counter[str] = Counter()
    for program in (stays, *joined):
        for line in [*program.lines, *program.errors().splitlines()]:
            event = _event(line)
            if event is None:
                told.said[without_numbers(line)] += bool(line.strip())
            elif event["f"] == "received":
                received[event["id"]] += 1
            elif event["f"] == "sent" and event["type"] == "ok":
                acknowledged.add(event["id"])
            elif event["f"] == "sent":
                told.failed_sends[without_numbers(event.get("error", ""))] += 1
    told.said += Counter()  # without those of blank lines
    told.sent, told.received = len(acknowledged), len(received)
    told.twice = sum(count - 1 for count in received.values())
    told.lost = sorted(acknowledged - received.keys())


def _event(line: str) -> dict[str, str] | None:
    if not line.startswith('{"'):
        return None
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and "f" in event else None


@contextmanager
def servers(
    profile: str, topics: Iterable[str], folder: Path, *, apache: bool
) -> Iterator[tuple[tuple[str, ...], list[Program]]]:
    """The NameServers' addresses, and every server's program; every NameServer knows the topics' routes."""
    jars = Jars.SERVERS_4_9 if profile == "4.9" else Jars.SERVERS_5_X
    topics = list(topics)
    with ExitStack() as stack:
        running, addresses = [], []
        for name in ("ns-0", "ns-1"):
            home = folder / name
            started = programs.java_name_server(name, home, jars) if apache else _name_server(name, home, profile)
            running.append(stack.enter_context(started[0]))
            addresses.append(started[1])
        for name in ("broker-a", "broker-b"):
            home = folder / name
            if apache:
                program, address = programs.java_broker(name, home, jars, addresses, name)
            else:
                program, address = programs.broker(name, home, addresses, name, profile=profile)
            running.append(stack.enter_context(program))
            for topic in topics:
                ask(addresses[0], partial(_create_topic, Address.parse(address), topic))
        for each in addresses:
            for topic in topics:
                eventually(lambda each=each, topic=topic: ask(each, lambda admin: admin.topic_route(topic)))
        yield tuple(addresses), running


async def _create_topic(broker: Address, topic: str, admin: AdminClient) -> None:
    await admin.create_topic(broker, topic)


def _name_server(name: str, home: Path, profile: str) -> tuple[Program, str]:
    return programs.name_server(name, home, profile=profile)


def _topic(client: Client) -> str:
    return f"orders-{client.name.replace('.', '-')}"


def _process(client: Client, name: str, addresses: Sequence[str], folder: Path, role: str) -> Program:
    env = {
        "NAMESRV_ADDR": ";".join(addresses),
        "NEMESRV_TOPIC": _topic(client),
        "NEMESRV_GROUP": f"group-{client.name.replace('.', '-')}",
        "NEMESRV_ROLE": role,
    }
    program = Program(name, command(client), folder, env=env)
    program.wait_for('"f":', within_s=START_S)
    return program


def _ends(client: Client, program: Program, told: Told) -> None:
    try:
        status = program.terminate(within_s=END_S)
    except AssertionError:
        told.ended.append(f"{program.name} did not end within {END_S:g} s of SIGTERM")
        return
    if status != client.ends_with:
        told.ended.append(f"{program.name} ended with status {status}, and not {client.ends_with}")


def spend(
    clients: Sequence[Client], minutes: float, folder: Path, *, apache: bool = False, settle_s: float = SETTLE_S
) -> tuple[dict[str, Told], Counter[str]]:
    """All of them at once for so long: what came of each, and what servers warned of. ClientMissing, JavaMissing."""
    for client in clients:
        command(client)  # what has to be built first is built before anything runs
    with ExitStack() as stack:
        addresses, of_servers = {}, list[Program]()
        for profile in dict.fromkeys(client.servers for client in clients):
            topics = (_topic(client) for client in clients if client.servers == profile)
            home = folder / f"servers-{profile}"
            home.mkdir()
            entered = stack.enter_context(servers(profile, topics, home, apache=apache))
            addresses[profile] = entered[0]
            of_servers += entered[1]

        def of_one(client: Client) -> Told:
            own = folder / client.name
            own.mkdir()
            told = Told()
            try:
                _spend(client, minutes, own, addresses[client.servers], settle_s, told)
            except AssertionError as exc:  # of one that did not start; the others go on
                told.ended.append(str(exc))
            return told

        with ThreadPoolExecutor(len(clients)) as side_by_side:
            found = dict(zip([client.name for client in clients], side_by_side.map(of_one, clients), strict=True))
        return found, warnings(line for each in of_servers for line in each.lines)


def _spend(client: Client, minutes: float, folder: Path, addresses: Sequence[str], settle_s: float, told: Told) -> None:
    joined = list[Program]()
    with ExitStack() as stack:
        stays = stack.enter_context(_process(client, "stays", addresses, folder, "both"))
        began_s, part_s = time.monotonic(), minutes * 60 / (2 * JOINS)
        comes_and_goes: Program | None = None
        for part in range(2 * JOINS):
            _pass(began_s + (part + 1) * part_s, stays)
            if stays.has_ended:
                break
            if comes_and_goes is None:
                comes_and_goes = stack.enter_context(
                    _process(client, f"joins-{len(joined)}", addresses, folder, "consumer")
                )
                joined.append(comes_and_goes)
            else:
                _ends(client, comes_and_goes, told)
                comes_and_goes = None
                told.joined += 1
        if stays.has_ended:
            told.ended.append(f"stays ended by itself after {(time.monotonic() - began_s) / 60:.1f} minutes")
            read(stays, joined, told)
            return
        _pass(time.monotonic() + settle_s, stays)
        last = len(stays.lines)
        _ends(client, stays, told)
        read(stays, joined, told)
        told.lost = _not_of_the_end(told.lost, stays, last)


def _not_of_the_end(lost: Sequence[str], stays: Program, last: int) -> list[str]:
    """Without what it sent in its last seconds, which nobody was there to receive."""
    late = {event["id"] for line in stays.lines[max(0, last - 50) :] if (event := _event(line)) and "id" in event}
    return [each for each in lost if each not in late]


def _pass(until_s: float, program: Program) -> None:
    """Wait until then, or until the process has ended."""
    program.wait_for_end(within_s=max(0.0, until_s - time.monotonic()))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.clients_matrix.hour")
    parser.add_argument("clients", nargs="+", metavar="CLIENT", choices=list(CLIENTS), help=", ".join(CLIENTS))
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--apache", action="store_true", help="at Apache's servers")
    parser.add_argument("--out", type=Path, help="a folder for what the processes write; default: a temporary one")
    chosen = parser.parse_args()
    clients = [CLIENTS[name] for name in dict.fromkeys(chosen.clients)]
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.out or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            found, warned = spend(clients, chosen.minutes, folder, apache=chosen.apache)
        except (ClientMissing, JavaMissing) as exc:
            print(exc)
            return 4
    where = "Apache's" if chosen.apache else "our"
    for client in clients:
        print(f"{client.says}, {chosen.minutes:g} minutes at {where} servers")
        print("\n".join(found[client.name].lines()))
    print("\n".join(shown("warnings of servers", warned)))
    return 0 if all(told.is_clean for told in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
