"""`nemesrv watch`: compares a live cluster's NameServers until Ctrl-C, and prints a line when a problem begins and when
a problem ends (operations/cluster/)."""

import sys
from typing import Any

import click

from ...remoting.node.network import Address
from .options import AddressList, Number, WholeNumber, json_option


@click.command()
@click.option("-n", "name_servers", type=AddressList(), required=True, help='NameServers to compare: "host:port;…".')
@click.option(
    "--once",
    is_flag=True,
    help="Exit as soon as it is certain whether something is wrong (after at most 120 s), instead of at Ctrl-C.",
)
@click.option("--metrics", "metrics_port", type=WholeNumber(0, 65535), help="Port that serves Prometheus metrics.")
@click.option(
    "--interval",
    "interval_s",
    type=Number(0.2),
    default=2.0,
    show_default=True,
    help="Seconds from one reading of all NameServers to the next reading.",
)
@json_option
def watch(name_servers: tuple[Address, ...], **asked: Any) -> None:
    """Compare all NameServers of a live cluster, and report what is wrong and since when. No server is changed.

    \b
    nemesrv watch -n "10.0.0.1:9876;10.0.0.2:9876;10.0.0.3:9876" --metrics 9880
    nemesrv watch -n "10.0.0.1:9876;10.0.0.2:9876" --once        in a cron job: ends when the result is certain

    Exit status with `--once`: 0 nothing is wrong, 1 something is wrong. Exit status 4: no NameServer answers the first
    reading.
    """
    from ...operations.cluster.watch import run

    sys.exit(run(name_servers, click.echo, **asked))
