"""`nemesrv doctor`: why a client finds no route of a topic (chaos/audit/)."""

from __future__ import annotations

import sys

import click

from ...remoting.node.network import Address
from .options import json_option
from .values import AddressList


@click.command()
@click.argument("topic")
@click.option("-n", "name_servers", type=AddressList(), required=True, help='NameServers, "host:port;host:port".')
@click.option(
    "-b", "brokers", type=AddressList(), default="", help="Brokers to ask though no NameServer names them, host:port."
)
@click.option("-g", "--group", help="A consumer group, whose members' own NameServer lists are asked for.")
@json_option
def doctor(
    topic: str, name_servers: tuple[Address, ...], brokers: tuple[Address, ...], group: str | None, as_json: bool
) -> None:
    """Why a client gets "No route info of this topic" (code 17) for TOPIC. Asks the servers, and changes nothing.

    \b
    nemesrv doctor orders -n "10.0.0.1:9876;10.0.0.2:9876"
    nemesrv doctor orders -n 10.0.0.1:9876 -g orders-readers -b 10.0.1.1:10911

    Exit status: 0 nothing is wrong, 1 a certain cause, 3 likely ones only, 4 no NameServer answers.
    """
    from ..audit import doctor as it
    from ..audit.causes import causes_of

    if not topic.strip():
        raise click.BadParameter("it is empty", param_hint="TOPIC")
    seen = it.look(topic.strip(), name_servers, brokers=brokers, group=group)
    causes = causes_of(seen)
    if as_json:
        click.echo(it.as_json(seen, causes))
    else:
        for line in it.lines_of(seen, causes):
            click.echo(line)
    sys.exit(it.status_of(seen, causes))
