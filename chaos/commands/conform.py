"""`nemesrv conform`: the profile of any RocketMQ client program, measured from outside (conformance/)."""

import json
import sys
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from ...remoting.node.profile import Profile
from ..errors import ScenarioError, nearest
from .ending import say, supervised
from .options import SEED, AppendedFile, WholeNumber, json_option, summary_option

OPEN_FILES = 16_384
START_GUESS_S, AT_ONCE_GUESS = 2.0, 64
"""Estimates until the first process has shown its start time and memory."""


def _profiles(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from ...conformance.rule_verdicts import names

    found = [CompletionItem(name) for name in names() if name.startswith(incomplete)]
    return found or [CompletionItem(incomplete, type="file")]


def _rules(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from ...conformance.rules import RULES

    before, comma, begun = incomplete.rpartition(",")
    return [CompletionItem(f"{before}{comma}{name}") for name in RULES if name.startswith(begun)]


@click.command(context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False})
@click.option(
    "--profile",
    metavar="NAME|FILE",
    shell_complete=_profiles,
    help="Client profile (expected behaviour) with which the program CMD is compared (default: no comparison).",
)
@click.option("--name-servers", type=WholeNumber(2, 9), default=3, show_default=True, help="Number of NameServers.")
@click.option("--brokers", type=WholeNumber(2, 8), default=2, show_default=True, help="Number of brokers.")
@click.option(
    "--starts",
    type=WholeNumber(1, 2000),
    default=60,
    show_default=True,
    help="How many times the program CMD is started to count which NameServer CMD asks first.",
)
@click.option(
    "--repeats",
    type=WholeNumber(1, 100),
    default=1,
    show_default=True,
    help="How many times each situation except `starts` is run. The rules list_order and next can need more than 1.",
)
@click.option(
    "--profile-rocketmq",
    "rocketmq",
    type=click.Choice(["4.9", "5.x"]),
    default="4.9",
    show_default=True,
    help="RocketMQ version of the NameServers and brokers to which the program CMD connects.",
)
@click.option("--rules", metavar="NAMES", shell_complete=_rules, help="Rules to measure, as NAME,NAME (default: all).")
@click.option(
    "--write-profile",
    metavar="FILE",
    type=AppendedFile(),
    help="Write the measured behaviour of the program CMD into this file, as a client profile for --profile.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Folder for results (default: runs/conform/TIMESTAMP).")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the servers' random choices.")
@json_option
@summary_option
@click.argument("cmd", nargs=-1, type=click.UNPROCESSED, metavar="-- CMD [ARGS]...")
@supervised
def conform(
    profile: str | None,
    rocketmq: str,
    rules: str | None,
    write_profile: Path | None,
    out: Path | None,
    as_json: bool,
    summary: Path | None,
    cmd: tuple[str, ...],
    **numbers: int,
) -> None:
    """Measure from outside how CMD's RocketMQ client picks a NameServer and stops using dead servers.

    CMD is any program with a RocketMQ client. nemesrv starts CMD many times, in different situations: NameServers and
    brokers refuse, hang, vanish or return. nemesrv observes the connections and requests of CMD. CMD must send messages
    (or receive messages, if NEMESRV_ROLE is consumer) until SIGTERM. CMD finds its settings in the environment
    variables NAMESRV_ADDR, ROCKETMQ_NAMESRV_ADDR, NEMESRV_TOPIC, NEMESRV_GROUP and NEMESRV_ROLE. In ARGS, {namesrv},
    {namesrv_file} (a file with the list), {namesrv_http}, {topic}, {group} and {role} are replaced by their values.

    \b
    nemesrv conform -- ./my-client
    nemesrv conform --profile java-5.3 -- java -cp app.jar Producer {namesrv} {topic}
    nemesrv conform --rules start,sticky --starts 100 -- node client.js
    nemesrv conform --write-profile mine.yaml -- ./my-client     then --profile mine.yaml in CI

    Exit status: 0 no rule is INVALID or UNKNOWN, 1 a rule is INVALID, 2 a wrong argument or file, 3 no rule is
    INVALID but one is UNKNOWN, or no rule was examined, or the profile expects nothing of the examined rules, 4 nemesrv
    failed. A requested rule that CMD's behaviour left unexamined is UNKNOWN.
    """
    from ...actors.processes import allow_open_files
    from ...conformance.capacity import planned
    from ...conformance.result import ConformResult, hindered, show, write
    from ...conformance.result import summary as summary_of
    from ...conformance.rule_verdicts import asked_for, hindered_in, judge_all, profile_of, situations_of, written
    from ...conformance.situations import SITUATIONS
    from ...conformance.stand import ConformPlan
    from ...conformance.subject import Program
    from ...conformance.trial import run
    from ..experiment.progress import Progress
    from ..experiment.run_folder import RunFolder, refuse_used
    from ..machine import processors
    from ..reports.ci import append

    program = Program(cmd)
    program.check()
    held_against = None if profile is None else profile_of(profile)
    wanted = _named(rules)
    refuse_used(out)
    allow_open_files(OPEN_FILES)
    plan = ConformPlan(
        program=program,
        situations=tuple(SITUATIONS) if wanted is None else situations_of(wanted),
        profile=Profile(rocketmq),
        **numbers,
    )
    folder = RunFolder.create("conform", out)
    chosen = [SITUATIONS[name] for name in plan.situations]
    _jobs, expected_s = planned(chosen, plan.starts, START_GUESS_S, AT_ONCE_GUESS, processors(), plan.repeats)
    progress = Progress(f"conform {Path(cmd[0]).name}", START_GUESS_S + expected_s, quiet=as_json, patient=True)
    try:
        trial = run(
            plan,
            logs=folder.logs,
            data=folder.data,
            again=lambda watched: hindered_in(watched, held_against, wanted),
            progress=progress,
        )
    finally:
        progress.clear()
        folder.remove_empty("data", "history/_raw", "history")
    judged = asked_for(judge_all(trial.watched, held_against, wanted, trial.left_out), held_against, wanted)
    if trial.hindered:
        judged = hindered(judged, trial.hindered)
    name, expected = (None, ()) if held_against is None else (held_against.name, tuple(held_against.rules))
    result = ConformResult(plan=plan, trial=trial, rules=judged, profile=name, expected=expected)
    write(result, folder)
    if summary is not None:
        append(summary, summary_of(result))
    if trial.hindered:
        say(trial.hindered)
    if write_profile is not None and not trial.hindered:
        write_profile.write_text(written(result.client, result.measured), encoding="utf-8")
    if as_json:
        click.echo(json.dumps({**result.to_json(), "run_dir": str(folder.path)}, ensure_ascii=False, default=str))
    else:
        if not trial.hindered:
            show(result)
        click.echo(f"kept in {folder.path}")
    sys.exit(result.exit_status)


def _named(rules: str | None) -> tuple[str, ...] | None:
    """Return the rules in a comma-separated list. None gives None. Raises ScenarioError for an unknown rule."""
    from ...conformance.rules import RULES

    if rules is None:
        return None
    names = tuple(name.strip() for name in rules.split(",") if name.strip())
    for name in names or ("",):
        if name not in RULES:
            raise ScenarioError("--rules", "", repr(name), f"some of {', '.join(RULES)}{nearest(name, RULES)}")
    return names
