"""`nemesrv up`: starts a cluster and keeps it running until Ctrl-C (live/up.py)."""

import re
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from ..apache.distribution import OURS
from ..errors import ScenarioError
from ..installation import require_extras
from .ending import supervised
from .options import Matching, Number, WholeNumber, implementation_option, ray_option


def _clients(_context: click.Context, _parameter: click.Parameter, said: tuple[str, ...]) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for text in said:
        name, colon, profile = text.partition(":")
        if name in found:
            raise click.BadParameter(f"{name} is named twice; expected each name once")
        found[name] = profile if colon else None
    return found


def _of_this_machine(found: re.Match[str]) -> str | None:
    with suppress(OSError), socket.socket() as probe:
        probe.bind((found[0], 0))
        return None if found[0] == "0.0.0.0" else found[0]
    return None


BIND = Matching("address", r"\d+(\.\d+){3}", "an IPv4 address of this machine, and not 0.0.0.0", _of_this_machine)


@click.command()
@click.option("--name-servers", type=WholeNumber(1, 9), default=3, show_default=True, help="Number of NameServers.")
@click.option("--brokers", type=WholeNumber(1, 26), default=2, show_default=True, help="Number of master brokers.")
@click.option("--slaves", type=WholeNumber(0, 3), default=0, show_default=True, help="Number of slaves of each broker.")
@click.option(
    "--profile",
    type=click.Choice(["4.9", "5.x"]),
    help="RocketMQ version of the NameServers and brokers (default: the version of --implementation, else 4.9).",
)
@implementation_option
@click.option(
    "--time-scale",
    type=Number(0, 100, True),
    default=1,
    help="How many times faster than real time RocketMQ's timers run (default: 1).",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help='Print JSON lines: a line about the cluster, and with --check a line for each verdict (`"type": "verdict"`).',
)
@click.option(
    "--check",
    metavar="CHECKS",
    help="Checks that judge the cluster: names separated by commas, `default` or `all` (default: no checks).",
)
@click.option(
    "--client",
    "clients",
    metavar="NAME[:PROFILE]",
    multiple=True,
    callback=_clients,
    help="Print separate NameServer addresses for a client of yours; the checks then judge this client as NAME. May "
    "be repeated.",
)
@click.option(
    "--bind",
    type=BIND,
    help="Address of this machine at which your programs connect. Programs on other hosts cannot reach the default, "
    "127.0.0.1.",
)
@click.option(
    "--for",
    "for_s",
    type=Number(min=0, min_open=True),
    help="Seconds of RocketMQ time after which the cluster stops (default: the cluster runs until Ctrl-C).",
)
@ray_option
@click.option("--out", type=click.Path(path_type=Path), help="Run folder to write (default: runs/up/TIMESTAMP).")
@supervised
def up(
    implementation: str | None,
    as_json: bool,
    bind: str | None,
    check: str | None,
    clients: dict[str, str | None],
    for_s: float | None,
    ray: str | None,
    out: Path | None,
    **cluster: Any,
) -> None:
    """Start a cluster of NameServers and brokers, and keep it running until Ctrl-C.

    Your own clients and brokers can connect to the printed addresses. You can inject faults with `nemesrv fault`,
    Toxiproxy's own API or signals; nemesrv records these faults. When the cluster stops, the exit status is 0 without
    --check; with --check the exit status is 0 VALID, 1 INVALID or 3 UNKNOWN.
    """
    if bind is not None and ray is not None:
        raise ScenarioError("--bind", "", bind, "none with --ray: there programs dial this host's own address")
    require_extras("nemesrv up", "ray")
    from ..judging import named_checks
    from ..live.up import CLIENT_CHECKS, UP_CHECKS, Up, scenario_of

    checks = named_checks(check, "--check", (*UP_CHECKS, *CLIENT_CHECKS) if clients else UP_CHECKS)
    scenario = scenario_of(implementation=implementation or OURS, checks=checks or (), clients=clients, **cluster)
    made = Up(
        scenario=scenario, as_json=as_json, judged=checks is not None, out=out, for_s=for_s, ray=ray, outside=bind
    )
    sys.exit(made.serve())
