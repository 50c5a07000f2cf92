"""Options that several commands have, and what a shell completes of their values."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from ..errors import ScenarioError
from .values import AppendedFile, RayAddress


def scenario_names(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """For a shell: shipped scenarios, and files."""
    from ..scenarios.loading import all_shipped

    names = [CompletionItem(name) for name in (*all_shipped(), "all") if name.startswith(incomplete)]
    return names or [CompletionItem(incomplete, type="file")]


def check_names(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """For a shell: the name after the last comma."""
    from ..checks import CHECKS

    before, comma, begun = incomplete.rpartition(",")
    return [CompletionItem(f"{before}{comma}{name}") for name in (*CHECKS, "all") if name.startswith(begun)]


json_option = click.option("--json", "as_json", is_flag=True, help="JSON on stdout in place of words for people.")


set_option = click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change the scenario: settle_s=90, timeline.0.at_s=30, brokers.forceRegister=false. May be repeated.",
)

implementation_option = click.option(
    "--implementation",
    metavar="ours|apache-VERSION|apache:FOLDER",
    help="Whose programs NameServers and brokers are, e.g. apache-5.3.3, or apache:$ROCKETMQ_HOME (docs/apache.md).",
)

engine_option = click.option(
    "--engine",
    type=click.Choice(["plain", "spark"]),
    help="Who judges, Spark or plain Python (up to 300,000 rows). Default: Spark where it is installed, but plain "
    "Python what `run` records on the virtual clock.",
)


def engine_asked(engine: str | None, spark_master: str | None) -> str | None:
    """Who is to judge; Spark where a cluster of it is named. ScenarioError for both that and plain Python."""
    if spark_master is not None and engine == "plain":
        raise ScenarioError("--spark-master", "", spark_master, "nothing with --engine plain, which is without Spark")
    return engine if spark_master is None else "spark"


summary_option = click.option(
    "--summary",
    type=AppendedFile(),
    envvar="GITHUB_STEP_SUMMARY",
    help="Append the verdicts as Markdown to this file; default $GITHUB_STEP_SUMMARY.",
)

ray_option = click.option(
    "--ray",
    type=RayAddress(),
    envvar="RAY_ADDRESS",
    help="Run on the hosts of this Ray cluster, auto or HOST:PORT of its head (docs/hosts.md); default $RAY_ADDRESS, "
    "else a Ray of its own on this machine.",
)
