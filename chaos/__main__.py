"""The command `nemesrv`: its sub-commands (in commands/) and its exit status. Each sub-command imports its packages
only when it runs, so `--help` is quick. The exit status is 0 for VALID, 1 for INVALID, 2 for a wrong argument or
file, 3 for UNKNOWN, 4 for a failure of nemesrv itself, 130 after Ctrl-C, 143 after SIGTERM.
"""

from .commands import early as early  # first of all, for what it does to signals

# isort: split
import logging
import os
import sys
from typing import Any

import click

from .commands.check import check
from .commands.compare import compare
from .commands.conform import conform
from .commands.defects import defects
from .commands.doctor import doctor
from .commands.ending import Stopped, end, from_a_shell
from .commands.explain import explain
from .commands.fault import fault
from .commands.import_ import import_logs
from .commands.museum import museum
from .commands.nodes import broker, namesrv
from .commands.predict import predict
from .commands.preflight import preflight
from .commands.replay import replay
from .commands.report import report
from .commands.run import run
from .commands.scenarios import scenarios
from .commands.selftest import selftest
from .commands.up import up
from .commands.watch import watch
from .errors import nearest
from .reports.streams import use_lasting_streams


class _Named(click.Group):
    """An unknown command gets a message with the nearest known one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            instead = nearest(args[0], self.list_commands(ctx)) or f": see {ctx.command_path} --help"
            ctx.fail(f"No such command {args[0]!r}{instead}")
        return super().resolve_command(ctx, args)


class _Commands(_Named):
    """Passes KeyboardInterrupt on after Ctrl-C; click would print an empty line and raise Abort."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as exc:
            raise Stopped from exc


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=True,
)
@click.version_option(package_name="nemesrv")
@click.pass_context
def cli(context: click.Context) -> None:
    """A RocketMQ NameServer cluster under chaos, judged from its recorded history.

    \b
    nemesrv run broker-partition              one experiment, with its verdict table and report
    nemesrv run mine.yaml --clock virtual     the same nodes in one process, in seconds
    nemesrv check runs/latest                 judge a recorded run again
    nemesrv doctor logs/                      last night's logs: the likeliest cause, in seconds
    nemesrv import logs/ --out incident       the same logs: every fault; `nemesrv replay incident` repeats it
    nemesrv up --json                         a cluster that stays up for your own clients
    nemesrv conform -- ./my-client            how any client picks a NameServer and abandons dead servers
    nemesrv scenarios                         nemesrv's own scenarios
    nemesrv defects                           the defects that `run --defect` plants
    nemesrv museum                            reported incidents, as they were and with their fix
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


class _AdminCommands(_Named):
    """The sub-commands of admin.py, which is imported at the first look-up."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        from .commands.admin import admin as group

        return group.list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        from .commands.admin import admin as group

        return group.get_command(ctx, cmd_name)


@cli.group(cls=_AdminCommands, no_args_is_help=False)
def admin() -> None:
    """Run sub-commands of mqadmin, with mqadmin's flags, on NameServers and brokers of Apache or nemesrv.

    Exit status: 2 the command is wrong, or a server refused the request; 4 a broker or all NameServers cannot be
    reached; if a command goes to every NameServer, 4 also if one NameServer cannot be reached.
    """


for command in (
    run,
    explain,
    predict,
    preflight,
    scenarios,
    defects,
    check,
    conform,
    doctor,
    watch,
    report,
    replay,
    up,
    fault,
    namesrv,
    broker,
    selftest,
    museum,
    compare,
    import_logs,
):
    cli.add_command(command)


def main() -> None:
    """Run the command `nemesrv`; an error becomes one line on stderr and an exit status."""
    logging.basicConfig(
        level=os.environ.get("NEMESRV_LOG", "ERROR").upper(), format="%(levelname)s %(name)s: %(message)s"
    )
    use_lasting_streams()
    from_a_shell()
    try:
        cli(standalone_mode=False)
    except BaseException as exc:
        sys.exit(end(exc))
    sys.exit(end(None))


if __name__ == "__main__":
    main()
