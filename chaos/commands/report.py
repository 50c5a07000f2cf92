"""`nemesrv report`: writes the reports of a judged run again (reporting.py)."""

import json
from pathlib import Path

import click

from ..errors import ScenarioError


@click.command()
@click.argument("run_dir", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the path, seed and verdicts as JSON on stdout.")
def report(run_dir: Path, as_json: bool) -> None:
    """Write report.html and junit.xml of a run again from the run's verdicts, and print the path of report.html."""
    from ..experiment.run_folder import RunFolder
    from ..reporting import write_reports, written

    folder = RunFolder(run_dir)
    try:
        write_reports(folder)
    except OSError as exc:
        raise ScenarioError(str(exc.filename), "", "", f"a file that can be written ({exc.strerror})") from exc
    click.echo(json.dumps(written(folder), ensure_ascii=False) if as_json else str(folder.report_file))
