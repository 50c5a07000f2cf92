"""`nemesrv power`: how many starts find a biased first choice, said before a run is made."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from ..errors import ScenarioError
from ..oracle.choosing.start_choice import ALPHA, POWER, detectable_bias, plan, shares, starts_needed
from .options import Number, WholeNumber, json_option

if TYPE_CHECKING:
    from ..scenarios.model import Scenario


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


@click.command()
@click.option("--name-servers", type=WholeNumber(1, 9), default=3, show_default=True)
@click.option("--bias", type=Number(0, 1, min_open=True), default=0.1, show_default=True)
@click.option(
    "--starts",
    type=WholeNumber(1, 100_000),
    help="The power of this number of starts, instead of the number that is needed.",
)
@json_option
def power(name_servers: int, bias: float, starts: int | None, as_json: bool) -> None:
    """How many client starts find a biased choice of the first NameServer, by the alpha that verdicts use.

    BIAS is the excess share of one NameServer among all starts: 0.1 with three NameServers is 43.3 %.
    """
    if starts is None and name_servers < 2:
        raise ScenarioError("power", "--name-servers", str(name_servers), "2 or more: one alone is always chosen")
    if bias > 1 - 1 / name_servers:
        most = f"at most {1 - 1 / name_servers:.4g}, which is one of {name_servers} always chosen"
        raise ScenarioError("power", "--bias", f"{bias:g}", most)
    wanted = starts_needed(name_servers, bias=bias, power=POWER, alpha=ALPHA) if starts is None else starts
    one = plan(wanted, name_servers, bias=bias, alpha=ALPHA)
    if as_json:
        click.echo(json.dumps(asdict(one)))
        return
    favoured, *others = (f"{100 * share:.1f} %" for share in shares(name_servers, bias))
    click.echo(
        f"One of {name_servers} NameServers is chosen first {100 * bias:g} percentage points too often: {favoured} of "
        f"the starts in place of {100 / name_servers:.1f} %, each other one {(others or [favoured])[-1]}."
    )
    click.echo(
        f"{one.starts:,} starts find that with power {one.power:.4f} at alpha {ALPHA:g}, judged by {one.method}; they "
        f"call an even choice biased with probability {one.false_alarms:.3g}."
    )
    least = detectable_bias(one.starts, name_servers, power=POWER, alpha=ALPHA)
    found = "no bias is found" if least is None else f"a bias of {100 * least:.1f} points or more is found"
    click.echo(f"With power {POWER:g} {found} by so many.")
