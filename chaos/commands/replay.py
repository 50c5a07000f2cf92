"""`nemesrv replay`: runs a recorded or imported run again as a scenario (operations/replay/)."""

import json
import sys
from pathlib import Path
from typing import Any

import click

from .ending import supervised
from .options import EPISODE_PLACE, SEED, WholeNumber, json_option, quiet_option, set_option

EXIT_STATUS = {"again": 0, "in part": 1, "not": 1, "nothing": 3}


@click.command()
@click.argument("run_dir", type=click.Path(path_type=Path))
@click.option(
    "--clock",
    type=click.Choice(["virtual", "real"]),
    default="virtual",
    show_default=True,
    help="`virtual` runs all nodes in one process on a simulated clock. `real` runs one process per node, behind "
    "Toxiproxy.",
)
@click.option(
    "--seed",
    type=SEED,
    help="Random seed of the replay (default: the recorded run's seed, else a random seed).",
)
@set_option
@click.option(
    "--hypothesis",
    "hypotheses",
    type=EPISODE_PLACE,
    multiple=True,
    help="Replay another explanation of an import. `nemesrv import` prints each less probable explanation with "
    "EPISODE=PLACE before it, such as `or 1=2`: for fault 1, explanation 2. May be repeated.",
)
@click.option(
    "--episode",
    "episodes",
    type=WholeNumber(min=1),
    multiple=True,
    help="Of an import, replay only the inferred fault with this number. `nemesrv import` prints the numbers, from 1 "
    "on. May be repeated.",
)
@click.option(
    "--vary",
    "varied",
    multiple=True,
    metavar="KEY=VALUE",
    help="Replay once more with a changed setting, for example cluster.profile=5.x or pollNameServerInterval=10000, "
    "and report how the two replays differ. Each --vary makes one more run, and can change several settings: "
    "'KEY=VALUE KEY=VALUE'. May be repeated.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Run folder to write (default: runs/SCENARIO/TIMESTAMP).")
@quiet_option
@json_option
@supervised
def replay(
    run_dir: Path, clock: str, hypotheses: tuple[tuple[int, int], ...], quiet: bool, as_json: bool, **asked: Any
) -> None:
    """Run an import, or a run on the real clock, again, and say how similar the two runs are.

    RUN_DIR is a folder that `nemesrv import` or `nemesrv run` wrote; `nemesrv run RUN_DIR/scenario.yaml` repeats a run
    on the virtual clock exactly. The new run folder has a history, a scenario.yaml that you can edit and run, and
    replay.json with every transition of the two runs.

    \b
    nemesrv replay runs/latest                           a run on the real clock
    nemesrv replay imported --hypothesis 1=2             the second explanation of fault 1
    nemesrv replay imported --vary pollNameServerInterval=10000 --vary cluster.profile=5.x

    Exit status: 0 the runs are similar (similarity 0.9 or more), 1 less similar, 3 neither run has a transition.
    """
    from ...operations.replay import running
    from ..experiment.progress import Progress

    progress = Progress(f"replay of {run_dir}", 0.0, quiet=quiet or clock == "virtual")
    wanted = running.ReplayOptions(virtual=clock == "virtual", hypotheses=dict(hypotheses), say=progress.say, **asked)
    try:
        replayed = running.replay(running.read_original(run_dir, wanted), wanted)
        variants = running.varied(replayed, wanted)
    finally:
        progress.clear()
    document = running.write(replayed, variants)
    if as_json:
        click.echo(json.dumps({**document, "run_dir": str(replayed.folder.path)}, ensure_ascii=False))
    else:
        for line in running.lines_of(document, replayed.folder.path):
            click.echo(line)
    sys.exit(EXIT_STATUS[document["happens"]])
