"""`nemesrv report`: what is said of a run, written again (reporting.py)."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ..errors import HarnessError, ScenarioError
from .options import json_option


@click.command()
@click.argument("run_dir", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN_DIR [OTHER]")
@click.option("--export", "format_", type=click.Choice(["perfetto", "openmetrics"]), help="Write this format instead.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="The file to write.")
@json_option
def report(run_dir: tuple[Path, ...], format_: str | None, out: Path | None, as_json: bool) -> None:
    """Write report.html and junit.xml of a run again, from its verdicts; prints where.

    Of two runs: one page with both on the same time axis, beside.html, or --out. --export perfetto writes trace.json,
    which ui.perfetto.dev opens; openmetrics writes metrics.txt, how the run ended.
    """
    from ..experiment.run_folder import RunFolder
    from ..reporting import write_beside, write_export, write_reports, written

    folders = [RunFolder(path) for path in run_dir]
    if len(folders) > 2 or (len(folders) == 2 and format_):
        allowed = "one run folder with --export, else one or two"
        raise ScenarioError("report", "RUN_DIR", " ".join(map(str, run_dir)), allowed)
    if len(folders) == 1 and out and not format_:
        raise ScenarioError("--out", "", str(out), "--export or two runs with it; else it is report.html of the run")
    first = folders[0]
    try:
        if format_:
            file = out or first.path / {"perfetto": "trace.json", "openmetrics": "metrics.txt"}[format_]
            write_export(first, format_, file)
        elif len(folders) == 2:
            file = out or Path("beside.html")
            write_beside(first, folders[1], file)
        else:
            file = first.report_file
            write_reports(first)
    except OSError as exc:
        raise HarnessError(f"the report cannot be written: {exc.filename}: {exc.strerror}") from exc
    click.echo(json.dumps(written(folders, file), ensure_ascii=False) if as_json else str(file))
