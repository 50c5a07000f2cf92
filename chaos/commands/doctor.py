"""`nemesrv doctor`: why a client finds no route of a topic, found from live servers or from logs
(operations/cluster/)."""

import sys
from collections.abc import Sequence

import click

from ...remoting.node.network import Address
from .options import AddressList, json_option, offset_option, zone_option


@click.command()
@click.argument("what", metavar="TOPIC | LOGS...", nargs=-1, required=True)
@click.option(
    "-n",
    "name_servers",
    type=AddressList(),
    help='Ask the NameServers at these addresses about TOPIC, in place of reading LOGS: "host:port;host:port".',
)
@click.option(
    "-b",
    "brokers",
    type=AddressList(),
    default="",
    help='Addresses of brokers that are asked even if no NameServer lists them: "host:port;host:port".',
)
@click.option("-g", "--group", help="Consumer group whose consumers are asked for their own lists of NameServers.")
@click.option("--topic", help="Explain only failed route look-ups of this topic in LOGS (default: all but RocketMQ's).")
@zone_option
@offset_option
@json_option
def doctor(
    what: tuple[str, ...],
    name_servers: tuple[Address, ...] | None,
    brokers: tuple[Address, ...],
    group: str | None,
    topic: str | None,
    zones: tuple[str, ...],
    offsets: tuple[str, ...],
    as_json: bool,
) -> None:
    """Say what went wrong, from logs or from a live cluster: read LOGS, or ask live servers (-n) why clients get "No
    route info of this topic" (code 17) for TOPIC. The most probable cause is printed first. doctor changes nothing on
    the servers.

    \b
    nemesrv doctor collected/ client.log.gz
    nemesrv doctor collected/ client.log.gz --topic orders
    nemesrv doctor orders -n "10.0.0.1:9876;10.0.0.2:9876"
    nemesrv doctor orders -n 10.0.0.1:9876 -g orders-readers -b 10.0.1.1:10911
    nemesrv doctor -                  read from standard input

    Exit status: 0 nothing is wrong, 1 a cause is certain, 3 something is wrong but no cause is certain, 4 no NameServer
    answers. For LOGS, 0 means that no look-up of a route failed, and nothing is wrong at the end of the logs; 3 is
    also the answer Unknown.
    """
    if name_servers is not None:
        if not name_servers:
            raise click.BadParameter("no address; expected host:port, several with ; between them", param_hint="-n")
        for option, given in (("--topic", topic), ("--zone", zones), ("--offset", offsets)):
            if given:
                raise click.BadParameter("this option is for LOGS; with -n no logs are read", param_hint=option)
        if len(what) != 1 or not what[0].strip():
            wrong = "with -n only one TOPIC is allowed" if len(what) > 1 else "the topic's name is empty"
            raise click.BadParameter(wrong, param_hint="TOPIC")
        sys.exit(_asked(what[0].strip(), name_servers, brokers, group, as_json=as_json))
    if brokers or group is not None:
        raise click.BadParameter("this option needs -n, which names NameServers", param_hint="-b" if brokers else "-g")
    sys.exit(_read(what, topic, zones, offsets, as_json=as_json))


def _asked(
    topic: str, name_servers: tuple[Address, ...], brokers: tuple[Address, ...], group: str | None, *, as_json: bool
) -> int:
    from ...operations.cluster import doctor as it
    from ...operations.cluster.answer_causes import causes_of

    answers = it.ask_servers(topic, name_servers, brokers=brokers, group=group)
    causes = causes_of(answers)
    click.echo(it.as_json(answers, causes) if as_json else "\n".join(it.lines_of(answers, causes)))
    return it.status_of(answers, causes)


def _read(
    places: Sequence[str], topic: str | None, zones: Sequence[str], offsets: Sequence[str], *, as_json: bool
) -> int:
    from ...operations.cluster.doctor import diagnosed
    from ...operations.importing.importing import offsets_given, zones_given
    from ..logs.files import LogError, with_standard_input

    given_zones, given_offsets = zones_given(zones), offsets_given(offsets)
    try:
        with with_standard_input(places, sys.stdin.buffer) as here:
            one = diagnosed(here, topic, zones=given_zones, offsets=given_offsets)
    except LogError as exc:
        is_a_topic = len(places) == 1 and places[0] != "-"
        hint = f"; to ask servers about topic {places[0]}, name them with -n" if is_a_topic else ""
        raise click.BadParameter(f"{exc}{hint}", param_hint="LOGS") from exc
    click.echo(one.json if as_json else "\n".join(one.lines))
    return one.status
