"""`nemesrv explain`: which routes each NameServer must, may and must not have, and when (chaos/explain.py)."""

import click

from .options import implementation_option, json_option, scenario_names, set_option


@click.command()
@click.argument("scenario", shell_complete=scenario_names)
@implementation_option
@set_option
@json_option
def explain(scenario: str, implementation: str | None, sets: tuple[str, ...], as_json: bool) -> None:
    """Show which routes each NameServer must, may and must not have in SCENARIO, and when. `explain` starts no node.

    \b
    nemesrv explain broker-partition
    nemesrv explain mine.yaml --set brokers.registerNameServerPeriod=10000
    """
    from ..explain import explain as explain_it
    from ..scenarios.loading import find

    explain_it(find(scenario, sets, implementation, reads_defect=False), as_json=as_json)
