"""`python -m tests.generate --out DIR`: a recorded virtual run, its messages multiplied, with known verdicts."""

import sys
from pathlib import Path

import click

from nemesrv.chaos.commands.ending import end
from nemesrv.chaos.commands.options import WholeNumber
from nemesrv.chaos.errors import HarnessError, ScenarioError


@click.command()
@click.option("--events", type=WholeNumber(1_000, 2_000_000_000), default=1_000_000, show_default=True)
@click.option("--seed", type=WholeNumber(min=0), default=1, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Run folder to write.")
@click.option("--profile", type=click.Choice(["4.9", "5.x"]), default="4.9", show_default=True)
def generate(events: int, seed: int, out: Path, profile: str) -> None:
    """Multiply a recorded virtual run to a history of any size. The same seed makes the same history."""
    from nemesrv.remoting.node.profile import Profile

    from . import write

    if out.is_file():
        raise ScenarioError("--out", "", str(out), "a folder; this is a file")
    try:
        written = write(out, events=events, seed=seed, profile=Profile(profile))
    except OSError as exc:
        raise HarnessError(f"the history cannot be written to {out}: {exc.strerror}") from exc
    click.echo(f"{written.rows} events in {written.path}")


if __name__ == "__main__":
    try:
        generate(standalone_mode=False)
    except BaseException as exc:
        sys.exit(end(exc))
