"""`nemesrv compare` of recorded runs: what is refused before anything starts."""

from pathlib import Path

from nemesrv.chaos.history.rows import write_parquet
from tests.chaos.builder import cluster
from tests.chaos.programs import nemesrv


def test_what_is_for_runs_only_is_refused_of_recorded_ones(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_parquet(cluster().end(10).rows, tmp_path / name)
    done = nemesrv("compare", "a", "b", "--runs", "2", cwd=tmp_path)
    assert done.returncode == 2
    assert "compare: --runs: expected a scenario with it" in done.stderr
