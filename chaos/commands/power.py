"""`nemesrv power`: how many starts find a biased first choice, said before a run is made."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from ..errors import ScenarioError
from ..oracle.choosing.start_choice import ALPHA, POWER, Plan, detectable_bias, plan, shares, starts_needed
from .options import Number, WholeNumber

if TYPE_CHECKING:
    from ..scenarios.model import Scenario


def planned(
    name_servers: int, *, bias: float, power: float, alphas: tuple[float, ...], starts: int | None
) -> list[Plan]:
    """One plan for each alpha: of `starts`, or of as many as are needed. ScenarioError for what cannot be."""
    if starts is None and name_servers < 2:
        raise ScenarioError("power", "--name-servers", str(name_servers), "2 or more: one alone is always chosen")
    if bias > 1 - 1 / name_servers:
        most = f"at most {1 - 1 / name_servers:.4g}, which is one of {name_servers} always chosen"
        raise ScenarioError("power", "--bias", f"{bias:g}", most)
    return [
        plan(
            starts_needed(name_servers, bias=bias, power=power, alpha=alpha) if starts is None else starts,
            name_servers,
            bias=bias,
            alpha=alpha,
        )
        for alpha in alphas
    ]


def announcement(scenario: Scenario) -> str | None:
    """What the starts of a run that is to find a bias can tell, said before it; None for other runs."""
    workload, n = scenario.workload, scenario.cluster.name_servers
    if workload.start_bias is None:
        return None
    bias = f"one of {n} NameServers chosen {100 * workload.start_bias:g} points too often"
    try:
        needed = starts_needed(n, bias=workload.start_bias, power=POWER, alpha=ALPHA)
    except ValueError:
        return f"{workload.client_starts} client starts; no number of starts finds {bias}"
    return f"{workload.client_starts} client starts; {needed} find {bias} with power {POWER:g} at alpha {ALPHA:g}"


def print_power(plans: list[Plan], *, power: float, as_json: bool) -> None:
    """The plans on stdout."""
    if as_json:
        click.echo(json.dumps([asdict(each) for each in plans]))
        return
    first = plans[0]
    favoured = [f"{100 * share:.1f} %" for share in shares(first.name_servers, first.bias)]
    even = f"{100 / first.name_servers:.1f} %"
    click.echo(
        f"One of {first.name_servers} NameServers is chosen first {100 * first.bias:g} percentage points too often: "
        f"{favoured[0]} of the starts in place of {even}, each other one {favoured[-1]}."
    )
    from ..reports.terminal import print_rows, standard_output

    rows = []
    for each in plans:
        found = detectable_bias(each.starts, each.name_servers, power=power, alpha=each.alpha)
        rows.append(
            (
                f"{each.alpha:g}",
                f"{each.starts:,}",
                f"{each.power:.4f}",
                f"{each.false_alarms:.3g}",
                "none" if found is None else f"{100 * found:.1f} points",
                each.method,
            )
        )
    columns = ("alpha", "starts", "power", "false alarms", f"bias found with power {power:g}", "judged by")
    print_rows(standard_output(120), columns, rows, numbers=True)


@click.command()
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
@click.option(
    "--starts",
    type=WholeNumber(1, 100_000),
    help="The power of this number of starts, instead of the number that is needed.",
)
@click.option("--json", "as_json", is_flag=True)
def power(
    name_servers: int, bias: float, power: float, alphas: tuple[float, ...], starts: int | None, as_json: bool
) -> None:
    """How many client starts find a biased choice of the first NameServer.

    BIAS is the excess share of one NameServer among all starts: 0.1 with three NameServers is 43.3 %.
    """
    plans = planned(name_servers, bias=bias, power=power, alphas=alphas, starts=starts)
    print_power(plans, power=power, as_json=as_json)
