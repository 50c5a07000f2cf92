"""`nemesrv watch`: what is wrong in a live cluster, while it is (operations/cluster/)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ...remoting.node.network import Address
from .options import AddressList, Number, WholeNumber, json_option


@click.command()
@click.option("-n", "name_servers", type=AddressList(), required=True, help='All NameServers, "host:port;host:port".')
@click.option("--once", is_flag=True, help="End as soon as it is decided: status 0, or 1 where something is wrong.")
@click.option("--metrics", "metrics_port", type=WholeNumber(0, 65535), help="Serve Prometheus metrics at this port.")
@click.option(
    "--interval", "interval_s", type=Number(0.2), default=2.0, show_default=True, help="Seconds between looks."
)
@click.option(
    "--check",
    "checks",
    metavar="default|NAMES",
    help="Judge the cluster by these checks of runs; the exit status is the verdict's.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Keep what was read as a run folder, for `nemesrv check`, `report` and `replay`.",
)
@click.option("--for", "for_s", type=Number(min=0, min_open=True), help="End by itself after so many seconds.")
@json_option
def watch(name_servers: tuple[Address, ...], checks: str | None, **asked: Any) -> None:
    """Compare all NameServers of a live cluster, ours or Apache's, and say what is wrong and since when. Read-only.

    \b
    nemesrv watch -n "10.0.0.1:9876;10.0.0.2:9876;10.0.0.3:9876" --metrics 9880
    nemesrv watch -n "10.0.0.1:9876;10.0.0.2:9876" --once        for cron
    nemesrv watch -n "10.0.0.1:9876;10.0.0.2:9876" --check default --out night

    With --once: exit status 0 nothing is wrong, 1 something is, 4 no NameServer answers. With --check: the verdict's,
    as of `nemesrv check`. With --check or --out it ends with the faults that explain what it saw.
    """
    from ...operations.cluster.watch import run
    from ...operations.cluster.watched_run import watched_checks
    from ..errors import ScenarioError

    if asked["once"] and any(value is not None for value in (checks, asked["out"], asked["for_s"])):
        allowed = "either: --once ends as soon as it is decided"
        raise ScenarioError("--once", "", "with --check, --out or --for", allowed)
    sys.exit(run(name_servers, lambda line: click.echo(line), checks=watched_checks(checks), **asked))
