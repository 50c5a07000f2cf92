"""`nemesrv museum`: runs reported incidents of RocketMQ, each without and with its fix (proof/museum.py)."""

import json
import sys
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from .ending import supervised
from .options import json_option, processes_option


def _incidents(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from ..scenarios.loading import shipped

    return [CompletionItem(name) for name in shipped("incidents") if name.startswith(incomplete)]


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=_incidents)
@click.option("--out", type=click.Path(path_type=Path), help="Folder in which run folders are kept (default: none).")
@processes_option
@json_option
@supervised
def museum(names: tuple[str, ...], out: Path | None, at_once: int | None, as_json: bool) -> None:
    """Run reported incidents of RocketMQ on the virtual clock, each once as reported and once with its fix.

    NAME is an incident's name or number (i03), and the default is all incidents.

    Exit status: 0 the checks that each incident names say INVALID as reported and VALID with the fix, and no check says
    INVALID with the fix; 1 a check of an incident says otherwise; 2 a wrong argument; 4 nemesrv failed.
    """
    from ..machine import processors
    from ..proof.museum import chosen, document, print_museum, show

    shown = list(show(chosen(names), at_once or processors(), out))
    if as_json:
        click.echo(json.dumps([document(one) for one in shown], ensure_ascii=False))
    else:
        print_museum(shown)
    sys.exit(0 if all(one.as_meant for one in shown) else 1)
