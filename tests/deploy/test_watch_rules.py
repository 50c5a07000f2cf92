"""The alert rules and the dashboard of `nemesrv watch` name metrics and kinds that there are."""

import json
import re
from pathlib import Path

import yaml

from nemesrv.operations.cluster.auditor import KINDS
from tests.operations.cluster.test_metrics import NAMES

WATCH = Path(__file__).resolve().parents[2] / "deploy" / "watch"


def metrics(expression: str) -> set[str]:
    return set(re.findall(r"nemesrv_\w+", expression))


def test_every_alert_is_about_a_metric_and_kinds_that_there_are() -> None:
    (group,) = yaml.safe_load((WATCH / "alerts.yaml").read_text())["groups"]
    told: set[str] = set()
    for rule in group["rules"]:
        assert metrics(rule["expr"]), rule
        assert metrics(rule["expr"]) <= NAMES, rule
        for kinds in re.findall(r'kind=~?"([^"]+)"', rule["expr"]):
            told |= set(kinds.split("|"))
    assert told == KINDS.keys() - {"name-server-silent"}, "which has an alert by its own metric"


def test_every_panel_of_the_dashboard_shows_a_metric_that_there_is() -> None:
    dashboard = json.loads((WATCH / "dashboard.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            assert metrics(target["expr"]), panel["title"]
            assert metrics(target["expr"]) <= NAMES, panel["title"]
