"""The command `nemesrv`. Each sub-command imports what it needs when it runs, so that `--help` is quick.

Exit status: 0 VALID, 1 INVALID, 2 wrong input, 3 UNKNOWN, 4 harness failure, 130 and 143 after Ctrl-C and SIGTERM.
"""

from __future__ import annotations

from .commands import early as early  # first of all, for what it does to signals

# isort: split
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from .commands.ending import EXIT_HARNESS, Stopped, end, from_a_shell, supervised
from .commands.fault import fault
from .commands.streams import use_lasting_streams
from .commands.values import AppendedFile, Number, Seeds, SparkMaster, WholeNumber
from .errors import HarnessError, ScenarioError
from .installation import require_extras


class _Commands(click.Group):
    """Ctrl-C comes out of it as itself: of a KeyboardInterrupt click makes an empty line and an Abort."""

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
    nemesrv up --json                         a cluster that stays up for your own clients
    nemesrv scenarios                         what ships
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


_json_option = click.option("--json", "as_json", is_flag=True, help="JSON on stdout in place of words for people.")


def _scenario_names(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """For a shell: shipped scenarios, and files."""
    from .scenarios.model import shipped

    names = [CompletionItem(name) for name in (*shipped(), "all") if name.startswith(incomplete)]
    return names or [CompletionItem(incomplete, type="file")]


def _check_names(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """For a shell: the name after the last comma."""
    from .checkers import CHECKS

    before, comma, begun = incomplete.rpartition(",")
    return [CompletionItem(f"{before}{comma}{name}") for name in (*CHECKS, "all") if name.startswith(begun)]


_set_option = click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change the scenario: settle_s=90, timeline.0.at_s=30, brokers.forceRegister=false. May be repeated.",
)

_summary_option = click.option(
    "--summary",
    type=AppendedFile(),
    envvar="GITHUB_STEP_SUMMARY",
    help="Append the verdicts as Markdown to this file; default $GITHUB_STEP_SUMMARY.",
)


@cli.command()
@click.argument("scenario", nargs=-1, required=True, metavar="SCENARIO...", shell_complete=_scenario_names)
@click.option("--out", type=click.Path(path_type=Path), help="Run folder; default runs/SCENARIO/TIMESTAMP.")
@click.option("--seed", type=WholeNumber(min=0), help="Seed of every random choice; default: a new one, printed.")
@click.option("--time-scale", type=Number(min=0, min_open=True, max=100), help="RocketMQ seconds per second.")
@click.option(
    "--clock",
    type=click.Choice(["real", "virtual"]),
    help="Virtual: the same nodes in one process, done in seconds; the same seed gives the same history. "
    "Default: as the file says, else real.",
)
@click.option(
    "--defect",
    metavar="NAME|FILE.py",
    help="Plant this defect of the self-test (docs/defects.md), or your own (docs/scenarios.md), in the nodes.",
)
@_set_option
@click.option("--spark-master", type=SparkMaster(), help="Judge on this Spark cluster instead of in this process.")
@click.option("-q", "--quiet", is_flag=True, help="No progress on stderr.")
@_summary_option
@_json_option
@supervised
def run(
    scenario: tuple[str, ...],
    out: Path | None,
    seed: int | None,
    time_scale: float | None,
    clock: str | None,
    defect: str | None,
    sets: tuple[str, ...],
    spark_master: str | None,
    quiet: bool,
    summary: Path | None,
    as_json: bool,
) -> None:
    """Run experiments: cluster up, workload, faults, heal, settle, final reads, check.

    SCENARIO is a shipped name (see `nemesrv scenarios`), a YAML file, or `all` for every shipped one.

    \b
    nemesrv run broker-crash --seed 7
    nemesrv run runs/latest/scenario.yaml            the last run again
    nemesrv run smoke --clock virtual --json | jq .verdict
    """
    from .runner import Options, run_all
    from .scenarios.model import find, found_defect, shipped

    if defect is not None:
        known = found_defect(defect, file="--defect")
        defect = str(known.source or known.name)
    if clock == "virtual" and time_scale is not None:
        raise ScenarioError("--time-scale", "", str(time_scale), "nothing with --clock virtual: it is never waited for")
    names = [name for given in scenario for name in (shipped() if given == "all" else [given])]
    if out is not None and len(names) > 1:
        raise ScenarioError("--out", "", str(out), "given with one scenario only")
    options = Options(
        seed=seed,
        time_scale=time_scale,
        out=out,
        spark_master=spark_master,
        summary=summary,
        virtual=None if clock is None else clock == "virtual",
        defect=defect,
        quiet=quiet,
        as_json=as_json,
    )
    found = [find(name, sets) for name in names]
    for each in found:
        if each.workload.start_bias is not None:
            from .statistics.power import announcement

            click.echo(announcement(each), err=as_json)
    sys.exit(run_all(found, options))


@cli.command()
@click.argument("scenario", shell_complete=_scenario_names)
@_set_option
@_json_option
def explain(scenario: str, sets: tuple[str, ...], as_json: bool) -> None:
    """Who must, may and must not hold what in SCENARIO, and when, from the checks' own windows. Starts nothing.

    \b
    nemesrv explain broker-partition
    nemesrv explain mine.yaml --set brokers.registerNameServerPeriod=10000
    """
    from .explain import explain as explain_it
    from .scenarios.model import find

    explain_it(find(scenario, sets), as_json=as_json)


@cli.command()
@click.argument("scenario", default="broker-partition", shell_complete=_scenario_names)
@click.option("--out", type=click.Path(path_type=Path), default="runs", help="Where the run folder is to be.")
def preflight(scenario: str, out: Path) -> None:
    """Has this machine what SCENARIO needs: Java, open files, memory, disk, ports, Toxiproxy. Starts nothing.

    Every run looks first, too. Exit status: 0 all is there, 4 something is missing; the line says how to mend it.
    """
    from .machine import measure
    from .preflight import Needs, findings
    from .scenarios.model import find

    found = findings(measure(out), Needs.of_run(find(scenario)))
    for finding in found:
        click.echo(f"{finding.part:<16}  {'MISSING: ' + finding.mend if finding.mend else finding.found}")
    sys.exit(EXIT_HARNESS if any(finding.mend for finding in found) else 0)


@cli.command()
@click.argument("name", required=False, shell_complete=_scenario_names)
@_json_option
def scenarios(name: str | None, as_json: bool) -> None:
    """List the scenarios that ship, one line each; with a NAME, show that file."""
    from .scenarios.model import find, load, shipped

    known = shipped()
    if as_json and name is None:
        click.echo(json.dumps([{"name": each, "description": load(path).description} for each, path in known.items()]))
    elif as_json and name is not None:
        click.echo(json.dumps(find(name).model_dump(mode="json"), ensure_ascii=False))
    elif name is None:
        width = max(map(len, known))
        for each, path in known.items():
            click.echo(f"{each:<{width}}  {load(path).description}")
    elif name in known:
        click.echo(known[name].read_text(encoding="utf-8"), nl=False)
    else:
        click.echo(find(name).to_yaml(), nl=False)


@cli.command()
@click.argument("run_dir", nargs=-1, required=True)
@click.option("--spark-master", type=SparkMaster(), help="Judge on this Spark cluster instead of in this process.")
@click.option(
    "--checks",
    metavar="NAME,...",
    help="These checks instead of the scenario's; all: every one.",
    shell_complete=_check_names,
)
@_summary_option
@_json_option
@supervised
def check(
    run_dir: tuple[str, ...], spark_master: str | None, checks: str | None, summary: Path | None, as_json: bool
) -> None:
    """Judge recorded histories again.

    RUN_DIR is a run folder, or whatever Spark can read: a folder of Parquet files, hdfs://..., s3a://.... Verdicts and
    reports are written to run folders of this machine; beyond some 400,000 events no report is drawn.
    """
    from .judging import named_checks
    from .runner import check_all

    sys.exit(check_all(run_dir, named_checks(checks, "--checks"), spark_master, summary, as_json=as_json))


@cli.command()
@click.argument("run_dir", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN_DIR [OTHER]")
@click.option("--export", "format_", type=click.Choice(["perfetto", "openmetrics"]), help="Write this in its place.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="The file to write.")
@_json_option
def report(run_dir: tuple[Path, ...], format_: str | None, out: Path | None, as_json: bool) -> None:
    """Write report.html and junit.xml of a run again, from its verdicts; prints where.

    Of two runs: one page with both on the same time axis, beside.html, or --out. --export perfetto writes trace.json,
    which ui.perfetto.dev opens; openmetrics writes metrics.txt, how the run ended.
    """
    from .experiment.run_folder import RunFolder
    from .reporting import write_beside, write_export, write_reports, written

    folders = [RunFolder(path) for path in run_dir]
    if len(folders) > 2 or (len(folders) == 2 and format_):
        allowed = "one run folder with --export, else one or two"
        raise ScenarioError("report", "RUN_DIR", " ".join(map(str, run_dir)), allowed)
    if len(folders) == 1 and out and not format_:
        raise ScenarioError("--out", "", str(out), "given with --export or two runs; else it is report.html of the run")
    first = folders[0]
    try:
        if format_:
            file = out or first.path / {"perfetto": "trace.json", "openmetrics": "metrics.txt"}[format_]
            write_export(first, format_, file)
        elif len(folders) == 2:
            file = out or Path("beside.html")
            write_beside(first, folders[1], file)
        else:
            file = first.report_file
            write_reports(first)
    except OSError as exc:
        raise HarnessError(f"the report cannot be written: {exc.filename}: {exc.strerror}") from exc
    click.echo(json.dumps(written(folders, file), ensure_ascii=False) if as_json else str(file))


@cli.command()
@click.option("--name-servers", type=WholeNumber(1, 9), default=3, show_default=True)
@click.option("--brokers", type=WholeNumber(1, 26), default=2, show_default=True)
@click.option("--slaves", type=WholeNumber(0, 26), default=0, show_default=True)
@click.option("--profile", type=click.Choice(["4.9", "5.x"]), default="4.9", show_default=True)
@click.option("--time-scale", type=Number(min=0, min_open=True, max=100), default=1, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="First line on stdout is one JSON object.")
@click.option("--check", metavar="CHECKS", help="Judge while it is up: names with commas, `default` or `all`.")
@click.option("--for", "for_s", type=Number(min=0, min_open=True), help="End by itself after so many seconds.")
@click.option("--out", type=click.Path(path_type=Path), help="Run folder; default runs/up/TIMESTAMP.")
@supervised
def up(
    name_servers: int,
    brokers: int,
    slaves: int,
    profile: str,
    time_scale: float,
    as_json: bool,
    check: str | None,
    for_s: float | None,
    out: Path | None,
) -> None:
    """A cluster that stays up until Ctrl-C, or --for so many seconds of RocketMQ time.

    Clients and brokers of your own may join it at the addresses it prints. Faults are made by `nemesrv fault`, or by
    Toxiproxy's own API and signals: all are recorded. Exit status after Ctrl-C or --for: the verdict's with --check,
    else 0.
    """
    require_extras("nemesrv up", "ray")
    from .judging import extras_of, named_checks
    from .live.up import UP_CHECKS, Up, scenario_of

    if slaves:
        raise ScenarioError("--slaves", "", str(slaves), "0: this version has no slave brokers")
    checks = named_checks(check, "--check", UP_CHECKS)
    if checks is not None:
        require_extras("nemesrv up --check", *extras_of(checks))
    scenario = scenario_of(
        name_servers=name_servers, brokers=brokers, profile=profile, time_scale=time_scale, checks=checks or ()
    )
    sys.exit(Up(scenario=scenario, as_json=as_json, judged=checks is not None, out=out, for_s=for_s).serve())


cli.add_command(fault)


@cli.command()
@click.option("-c", "config_file", help="RocketMQ's own properties file.")
@click.option("--listen-port", type=WholeNumber(0, 65535), help="Instead of the file's listenPort.")
def namesrv(config_file: str | None, listen_port: int | None) -> None:
    """One NameServer in this process, no Ray."""
    from ..actors.namesrv.standalone import run as run_namesrv

    sys.exit(run_namesrv(config_file, listen_port))


@cli.command()
@click.option("-n", "namesrv_addr", required=True, help='NameServers, "host:port;host:port".')
@click.option("-c", "config_file", help="RocketMQ's own properties file.")
def broker(namesrv_addr: str, config_file: str | None) -> None:
    """One broker in this process, no Ray."""
    from ..actors.broker.standalone import run as run_broker

    sys.exit(run_broker(namesrv_addr, config_file))


@cli.command()
@click.option("--only", multiple=True, metavar="DEFECT", help="Only this planted defect; may be repeated.")
@click.option("--seed", "--seeds", "seeds", type=Seeds(), default="1", show_default=True, help="One, or many: 1..12.")
@click.option("--clock", type=click.Choice(["real", "virtual"]), default="real", show_default=True)
@click.option("-q", "--quiet", is_flag=True, help="No progress on stderr.")
@_json_option
@supervised
def selftest(only: tuple[str, ...], seeds: tuple[int, ...], clock: str, quiet: bool, as_json: bool) -> None:
    """Plant every defect and see that the checks meant for it find it, and nothing in the clean twins."""
    from .runner import Options
    from .selftest import run_selftest

    sys.exit(run_selftest(only, Options(virtual=clock == "virtual", quiet=quiet, latest=False, as_json=as_json), seeds))


class _AdminCommands(click.Group):
    """The sub-commands of admin.py, which is imported when the first is looked up."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        from .commands.admin import admin as group

        return group.list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        from .commands.admin import admin as group

        return group.get_command(ctx, cmd_name)


@cli.group(cls=_AdminCommands, no_args_is_help=False)
def admin() -> None:
    """mqadmin's sub-commands and flags, for NameServers and brokers of any make.

    Exit status: 2 when the command is wrong or refused, 4 when a NameServer or broker cannot be reached.
    """


@cli.command()
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path), metavar="[RUN_A RUN_B]")
@click.option("--a", "side_a", multiple=True, type=click.Path(path_type=Path), help="A run of A; may be repeated.")
@click.option("--b", "side_b", multiple=True, type=click.Path(path_type=Path), help="A run of B; may be repeated.")
@click.option(
    "--samples",
    type=click.Choice(["run", "client"]),
    default="run",
    show_default=True,
    help="What is one sample; with client, what is told holds for these runs only.",
)
@click.option("--alpha", type=Number(1e-6, 0.5), default=0.05, show_default=True, help="For all metrics.")
@click.option("--seed", type=WholeNumber(min=0), default=0, show_default=True, help="Of permutations and bootstrap.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object in place of the table.")
@click.option(
    "--spark-master", type=SparkMaster(), help="Read the histories on this Spark cluster instead of in this process."
)
@supervised
def compare(
    runs: tuple[Path, ...],
    side_a: tuple[Path, ...],
    side_b: tuple[Path, ...],
    samples: str,
    alpha: float,
    seed: int,
    as_json: bool,
    spark_master: str | None,
) -> None:
    """Do two configurations or versions differ in recovery time, availability or staleness.

    RUN_A and RUN_B are run folders, or folders of them; several on a side by --a and --b. Five runs a side are enough
    for all metrics. Exit status: 0 no difference found, 1 they differ, 3 cannot tell.
    """
    if len(runs) not in (0, 2):
        raise ScenarioError("compare", "RUN_A RUN_B", " ".join(map(str, runs)), "two run folders, or --a and --b")
    a, b = (*runs[:1], *side_a), (*runs[1:], *side_b)
    if not a or not b:
        raise ScenarioError("compare", "--a" if not a else "--b", "", "at least one run folder on each side")
    require_extras("nemesrv compare", "spark", "statistics")
    from .statistics.compare import compare as compare_them

    sys.exit(compare_them(a, b, samples=samples, alpha=alpha, seed=seed, as_json=as_json, spark_master=spark_master))


@cli.command()
@click.option("--name-servers", type=WholeNumber(1, 9), default=3, show_default=True)
@click.option("--bias", type=Number(0, 1, min_open=True), default=0.1, show_default=True)
@click.option("--power", type=Number(0.5, 1, max_open=True), default=0.99, show_default=True)
@click.option(
    "--alpha",
    "alphas",
    type=Number(1e-12, 0.5),
    multiple=True,
    default=(1e-3, 1e-6),
    show_default=True,
    help="False alarms allowed; may be repeated. Verdicts use 1e-6.",
)
@click.option("--starts", type=WholeNumber(1, 100_000), help="What so many starts tell, not how many are needed.")
@click.option("--json", "as_json", is_flag=True)
def power(
    name_servers: int, bias: float, power: float, alphas: tuple[float, ...], starts: int | None, as_json: bool
) -> None:
    """How many client starts find a biased choice of the first NameServer.

    BIAS is how much too often one NameServer is chosen, as a share of all starts: 0.1 of three is 43.3 %.
    """
    require_extras("nemesrv power", "statistics")
    from .statistics.power import planned, print_power

    plans = planned(name_servers, bias=bias, power=power, alphas=alphas, starts=starts)
    print_power(plans, power=power, as_json=as_json)


@cli.command()
@click.option("--events", type=WholeNumber(1_000, 2_000_000_000), default=1_000_000, show_default=True)
@click.option("--seed", type=WholeNumber(min=0), default=1, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Run folder to write.")
@click.option("--profile", type=click.Choice(["4.9", "5.x"]), default="4.9", show_default=True)
@click.option("--defect", help="Plant this defect; `list` lists them, with the checks that find each.")
def generate(events: int, seed: int, out: Path, profile: str, defect: str | None) -> None:
    """Make up a history with known verdicts, of any size. The same seed makes the same history."""
    from ..remoting.node.profile import Profile
    from .generate import DEFECTS, write

    if defect == "list":
        for name, planted in DEFECTS.items():
            click.echo(f"{name:<24}{planted.what} [{', '.join(sorted(planted.found_by))}]")
        return
    if defect is not None and defect not in DEFECTS:
        raise ScenarioError("--defect", "", repr(defect), f"list, or one of {', '.join(DEFECTS)}")
    if out.is_file():
        raise ScenarioError("--out", "", str(out), "a folder; this is a file")
    try:
        written = write(out, events=events, seed=seed, defect=defect, profile=Profile(profile))
    except OSError as exc:
        raise HarnessError(f"the history cannot be written to {out}: {exc.strerror}") from exc
    click.echo(f"{written.rows} events in {written.path}")


def _counts(_context: click.Context, _parameter: click.Parameter, text: str) -> tuple[int, ...]:
    try:
        counts = tuple(int(float(part)) for part in text.split(","))
    except ValueError:
        counts = ()
    if not counts or min(counts) < 1_000:
        raise click.BadParameter(f"{text!r}; allowed are numbers from 1e3 on, e.g. 1e6,1e7")
    return counts


@cli.command()
@click.argument("name", required=False)
@click.option("--seconds", type=Number(min=0.1), default=3, show_default=True, help="Of each measurement.")
@click.option("--events", callback=_counts, default="1e6,1e7,1e8", show_default=True, help="Sizes for bench checks.")
@supervised
def bench(name: str | None, seconds: float, events: tuple[int, ...]) -> None:
    """The benchmarks, each with its baseline in the same run."""
    require_extras("nemesrv bench", "ray", "spark")
    from .bench.table import run_benchmarks

    sys.exit(run_benchmarks(name, seconds, events))


def main() -> None:
    """The console script: errors become one line and an exit status."""
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
