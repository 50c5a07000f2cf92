"""What is kept of the runs on Apache's servers, and how the table of docs/apache.md tells it."""

import json
from pathlib import Path

from nemesrv.chaos.scenarios.loading import find
from nemesrv.chaos.verdict import Validity, Verdict
from tests.apache_matrix.__main__ import read
from tests.apache_matrix.table import IF_ASKED, IMPLEMENTATIONS, cell_of, cell_of_none, keep, kept, matrix, told

ABOUT = {"time_scale": 5.0, "seed": 1, "date": "2026-11-22"}


def run_folder(path: Path, **verdicts: Validity) -> Path:
    """A judged run: check to what it said."""
    path.mkdir(parents=True)
    checks = [
        Verdict(name=name, verdict=verdict, examined=10, why="as planted", allowed={"formula": "R + C"})
        for name, verdict in verdicts.items()
    ]
    document = {"timeline_ms": 0.0, "checks": [each.to_json() for each in checks]}
    (path / "verdicts.json").write_text(json.dumps(document), encoding="utf-8")
    return path


def test_a_run_is_told_by_its_worst_check(tmp_path: Path) -> None:
    good = cell_of(run_folder(tmp_path / "good", routes_are_true=Validity.VALID, smoke=Validity.VALID), ABOUT)
    bad = cell_of(run_folder(tmp_path / "bad", routes_are_true=Validity.INVALID, smoke=Validity.VALID), ABOUT)
    assert told(good) == "VALID (2 checks, ×5, seed 1)"
    assert told(bad) == "INVALID: routes_are_true INVALID (2 checks, ×5, seed 1)"
    assert told(cell_of_none("no slave of Apache's is run yet", ABOUT)) == "not run: no slave of Apache's is run yet"
    assert told({**good, "took_s": 51}) == "VALID (2 checks, ×5, seed 1, 51 s)"
    assert told(None) == "–"


def test_cells_are_kept_beside_the_others_in_the_order_of_the_page(tmp_path: Path) -> None:
    cell = cell_of(run_folder(tmp_path / "run", routes_are_true=Validity.VALID), ABOUT)
    for scenario in ("broker-hang", "smoke", "broker-crash"):
        keep("apache-5.3.3", scenario, cell, tmp_path / "kept")
    keep("apache-4.9.7", "smoke", cell, tmp_path / "kept")
    found = kept(tmp_path / "kept")
    assert [list(found), list(found["apache-5.3.3"])] == [
        ["apache-4.9.7", "apache-5.3.3"],
        ["smoke", "broker-crash", "broker-hang"],
    ]
    assert matrix(found).splitlines()[2:] == [
        "| smoke | VALID (1 check, ×5, seed 1) | VALID (1 check, ×5, seed 1) |",
        "| broker-crash | – | VALID (1 check, ×5, seed 1) |",
        "| broker-hang | – | VALID (1 check, ×5, seed 1) |",
    ]


def test_a_run_that_is_there_is_read_with_whose_and_how_it_was(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", routes_are_true=Validity.VALID)
    done = find("smoke", ("seed=7", "timers.time_scale=2"), "apache-5.3.3")
    (folder / "scenario.yaml").write_text(done.to_yaml(), encoding="utf-8")
    ((cell, found),) = read([folder]).items()
    assert (cell.scenario, cell.implementation) == ("smoke", "apache-5.3.3")
    assert told(found) == "VALID (1 check, ×2, seed 7)"


def test_no_scenario_on_apaches_servers_was_invalid() -> None:
    """What is INVALID there is the oracle's mistake, or has an upstream issue's number in the page."""
    for implementation, scenarios in kept().items():
        assert implementation in (*IMPLEMENTATIONS, *IF_ASKED)
        for scenario, cell in scenarios.items():
            invalid = [name for name, each in cell["checks"].items() if each["verdict"] == "INVALID"]
            assert invalid == [], f"{scenario} on {implementation}"
