"""`nemesrv predict`: how long clients take to recover, and the share of failed sends (operations/predict/)."""

import itertools
import json
from typing import Any

import click

from .options import SEED, Number, WholeNumber, json_option, quiet_option, scenario_names


def _kinds(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from ...operations.predict.faults import KINDS

    return [name for name in KINDS if name.startswith(incomplete)]


@click.command()
@click.argument("scenario", required=False, shell_complete=scenario_names)
@click.option(
    "--fault",
    metavar="KIND",
    shell_complete=_kinds,
    help="Predict recovery from one fault of this kind, in a cluster that the options describe; not together with "
    "SCENARIO. KIND is crash, hang, power-off or another kind in docs/predict.md. The fault's name in scenarios is "
    "also accepted: kill for crash, pause for hang.",
)
@click.option(
    "--for",
    "lasts_s",
    type=Number(0.1, 3_600),
    help="Seconds from the fault's begin to its end, only with --fault (default: 240; slow: 120; name-server-restart: "
    "1).",
)
@click.option("--name-servers", type=WholeNumber(1, 9), help="Number of NameServers, only with --fault (default: 3).")
@click.option("--brokers", type=WholeNumber(1, 26), help="Number of brokers, only with --fault (default: 3).")
@click.option("--producers", type=WholeNumber(0, 500), help="Number of producers, only with --fault (default: 4).")
@click.option("--consumers", type=WholeNumber(0, 500), help="Number of consumers, only with --fault (default: 2).")
@click.option(
    "--profile",
    type=click.Choice(["4.9", "5.x"]),
    help="RocketMQ version of all nodes, only with --fault (default: 4.9).",
)
@click.option(
    "--retries", type=WholeNumber(0, 16), help="Producers' retryTimesWhenSendFailed, only with --fault (default: 2)."
)
@click.option(
    "--sends-per-s",
    type=Number(0.01, 1_000),
    help="Messages per second of each producer, only with --fault (default: 2).",
)
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="KEY=VALUE",
    help="Predict again with this setting changed, and print the differences. Several --set are tried one by one, then "
    "together.",
)
@click.option("--runs", type=WholeNumber(1, 10_000), default=8, show_default=True, help="Number of simulated runs.")
@click.option(
    "--seed",
    type=SEED,
    default=1,
    show_default=True,
    help="Random seed of the first run. Each following run uses the next higher seed.",
)
@quiet_option
@json_option
def predict(
    scenario: str | None,
    fault: str | None,
    lasts_s: float | None,
    sets: tuple[str, ...],
    runs: int,
    seed: int,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Predict how long each client takes to recover from a fault, and how many sends fail.

    `predict` prints the percentiles p50, p90 and p99 of the recovery times in several runs on the virtual clock. Each
    run draws a new random phase for each node's timers, unless the scenario's `phases` sets it. No real process is
    started.

    \b
    nemesrv predict --fault power-off
    nemesrv predict --fault hang --for 47 --producers 8 --retries 0 --runs 20
    nemesrv predict broker-crash --set pollNameServerInterval=10000
    """
    from ...operations.predict.faults import PredictOptions, faults_of, scenario_of
    from ...operations.predict.prediction import page
    from ...operations.predict.prediction import predict as predicted
    from ..errors import ScenarioError
    from ..experiment.progress import Progress
    from ..scenarios.loading import find
    from ..scenarios.model import Scenario

    said = {name: value for name, value in options.items() if value is not None}
    if (scenario is None) == (fault is None):
        told = "both" if scenario else "neither"
        raise ScenarioError("predict", "SCENARIO or --fault", told, "one of the two")
    if scenario is not None and (said or lasts_s is not None):
        key = "--for" if lasts_s is not None else f"--{next(iter(said)).replace('_', '-')}"
        allowed = "--fault beside it; a scenario has its own value, and --set changes that"
        raise ScenarioError("predict", key, "", allowed)

    def made(changes: tuple[str, ...]) -> Scenario:
        if scenario is not None:
            return find(scenario, changes)
        return scenario_of(PredictOptions(fault=str(fault), lasts_s=lasts_s, **said), changes)

    wanted: list[tuple[str, tuple[str, ...]]] = [("as it is", ())]
    wanted += [(one, (one,)) for one in sets]
    if len(sets) > 1:
        wanted.append((" and ".join(sets), sets))
    scenarios = [(name, made(changes)) for name, changes in wanted]
    for _, one in scenarios:  # whatever is wrong is said before anything runs
        faults_of(one)

    progress = Progress("predict", 0.0, quiet=quiet or as_json, patient=True)
    done = itertools.count()

    def say() -> None:
        progress.part(next(done), runs * len(scenarios))

    say()
    try:
        variants = [predicted(name, one, runs=runs, seed=seed, done=say) for name, one in scenarios]
    finally:
        progress.clear()
    if as_json:
        document = {
            "scenario": variants[0].scenario.name,
            "runs": runs,
            "seed": seed,
            "variants": [
                {"set": list(changes), "predictions": [one.to_json() for one in variant.predictions]}
                for (_, changes), variant in zip(wanted, variants, strict=True)
            ],
        }
        click.echo(json.dumps(document, ensure_ascii=False))
    else:
        click.echo(page(variants))
