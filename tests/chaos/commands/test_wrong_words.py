"""Wrong words are told in one line, with nothing started; here in the tests' process, in one of its own test_cli.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from .servers import Admin


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("run",), "SCENARIO"),
        (("explode",), "explode"),
        (("namesrv", "-c", "absent.properties"), "absent.properties"),
        (("broker", "-n", "nonsense"), "nonsense"),
        (("power", "--bias", "0.8"), "0.6667"),
    ],
)
def test_a_wrong_command_is_one_line_on_stderr_and_exit_status_2(
    args: tuple[str, ...], says: str, nemesrv: Admin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = nemesrv(*args)
    assert (done.status, done.out, len(done.err.splitlines())) == (2, "", 1), done
    assert says in done.err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("there", [True, False])
def test_a_folder_that_is_no_run_is_wrong_input(there: bool, nemesrv: Admin, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    if there:
        folder.mkdir()
    done = nemesrv("report", str(folder))
    assert (done.status, len(done.err.splitlines())) == (2, 1), done
    assert str(folder) in done.err
