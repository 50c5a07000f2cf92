"""Judge histories where they lie: a URI that Spark reads, a folder of Parquet files, a history too large to report on.

No report is drawn, for that reads every event. The checks are those of `--checks`, or of the scenario.yaml beside the
history, which is read through Spark too. Of a run folder on this machine verdicts.json and junit.xml are written.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import yaml

from ..checkers import CHECKS
from ..errors import ScenarioError
from ..experiment.run_folder import RunFolder
from ..reports.junit import junit
from ..reports.table import print_table
from ..scenarios.model import Scenario, parse
from ..verdict import Validity, Verdict, worst
from .settings import SMALL_BYTES
from .storage import local_path, local_size, read_text


def belongs_here(where: str, checks: str | None) -> bool:
    """Whether this judges it, and not runner.check_again, which writes the report as well."""
    size = local_size(where)
    return checks is not None or size is None or size > SMALL_BYTES


def named_checks(checks: str | None) -> tuple[str, ...] | None:
    """The names of a comma-separated list, `all` being all. ScenarioError for a check that does not exist."""
    if checks is None:
        return None
    names = tuple(CHECKS) if checks == "all" else tuple(name.strip() for name in checks.split(",") if name.strip())
    for name in names:
        if name not in CHECKS:
            raise ScenarioError("--checks", "", repr(name), f"all, or some of {', '.join(CHECKS)}")
    if not names:
        raise ScenarioError("--checks", "", repr(checks), f"all, or some of {', '.join(CHECKS)}")
    return names


def check_stored(places: Sequence[str], checks: str | None, master: str | None) -> Validity:
    """The worst verdict of the histories at `places`. HarnessError when one cannot be read."""
    from .judge import check_run
    from .session import session, stop

    names = named_checks(checks)
    sizes = [local_size(where) for where in places]
    spark = session(master, large=any(size is None or size > SMALL_BYTES for size in sizes))
    found: list[Validity] = []
    try:
        for where in places:
            scenario = None
            if names is None:
                scenario = _scenario(where, read_text(f"{where.rstrip('/')}/scenario.yaml", spark))
            verdicts = check_run(where, names or (scenario.checks if scenario else ()), spark)
            found.append(worst(verdict.verdict for verdict in verdicts))
            print_table(verdicts, title=f"{where}: {found[-1]}")
            _write(where, scenario, verdicts)
    finally:
        stop(spark)
    return worst(found)


def _scenario(where: str, text: str | None) -> Scenario:
    file = f"{where.rstrip('/')}/scenario.yaml"
    if text is None:
        raise ScenarioError(file, "", "", "a scenario beside the history, or --checks to say what is to be judged")
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as exc:
        raise ScenarioError(file, "", "", "well-formed YAML") from exc
    if not isinstance(document, dict):
        raise ScenarioError(file, "", type(document).__name__, "a mapping with the keys of a scenario")
    return parse(document, file=file)


def _write(where: str, scenario: Scenario | None, verdicts: Sequence[Verdict]) -> None:
    path = local_path(where)
    if path is None or scenario is None or not RunFolder(Path(path)).scenario_file.is_file():
        return
    folder = RunFolder(Path(path))
    document = {
        "scenario": scenario.name,
        "seed": scenario.seed or 0,
        "verdict": str(worst(verdict.verdict for verdict in verdicts)),
        "checks": [verdict.to_json() for verdict in verdicts],
    }
    text = json.dumps(document, indent=1, ensure_ascii=False, default=str)
    folder.verdicts_file.write_text(text + "\n", encoding="utf-8")
    folder.junit_file.write_bytes(junit(scenario.name, scenario.seed or 0, verdicts))
