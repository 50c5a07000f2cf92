"""`nemesrv namesrv` and `nemesrv broker`: each runs one server in this process, without Ray."""

import sys

import click

from .options import WholeNumber


@click.command()
@click.option(
    "-c",
    "config_file",
    help="Properties file with RocketMQ's settings. Without bindAddress the NameServer listens on 127.0.0.1 only.",
)
@click.option("--listen-port", type=WholeNumber(0, 65535), help="Port of the NameServer, instead of listenPort.")
def namesrv(config_file: str | None, listen_port: int | None) -> None:
    """Run one NameServer in this process, without Ray."""
    from ...actors.namesrv.standalone import run as run_namesrv

    sys.exit(run_namesrv(config_file, listen_port))


@click.command()
@click.option("-n", "namesrv_addr", required=True, help='NameServers to register with: "host:port;host:port".')
@click.option("-c", "config_file", help="Properties file with RocketMQ's settings (default: RocketMQ's defaults).")
def broker(namesrv_addr: str, config_file: str | None) -> None:
    """Run one broker in this process, without Ray."""
    from ...actors.broker.standalone import run as run_broker

    sys.exit(run_broker(namesrv_addr, config_file))
