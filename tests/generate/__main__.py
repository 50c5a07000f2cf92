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
@click.option("--defect", help="Plant this defect; `list` lists them, with the checks that find each.")
def generate(events: int, seed: int, out: Path, profile: str, defect: str | None) -> None:
    """Multiply a recorded virtual run to a history of any size. The same seed makes the same history."""
    from nemesrv.remoting.node.profile import Profile

    from . import DEFECTS, write

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


if __name__ == "__main__":
    try:
        generate(standalone_mode=False)
    except BaseException as exc:
        sys.exit(end(exc))
