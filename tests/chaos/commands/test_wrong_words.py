"""Wrong words are told in one line, with nothing started."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from nemesrv.chaos.__main__ import cli
from nemesrv.chaos.commands.ending import explain

from .servers import Admin


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("run",), "SCENARIO"),
        (("explode",), "explode"),
        (("namesrv", "-c", "absent.properties"), "absent.properties"),
        (("broker", "-n", "nonsense"), "nonsense"),
        (("repot",), "No such command 'repot'; did you mean report?"),
        (("nosuch",), "No such command 'nosuch': see "),
        (("admin", "topiclist"), "No such command 'topiclist'; did you mean topicList?"),
        (("up", "--bind", "192.0.2.1"), "'192.0.2.1' is not allowed; expected an IPv4 address of this machine"),
        (("fault", "kill"), "nemesrv fault: kill: it needs a node"),
        (("fault", "kil", "ns-0"), "did you mean kill?"),
        (("report", "nofolder"), "nofolder: no such run folder"),
        (("explain", "nofile.yaml"), "nofile.yaml: no such file"),
    ],
)
def test_a_wrong_command_is_one_line_on_stderr_and_exit_status_2(
    args: tuple[str, ...], says: str, nemesrv: Admin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = nemesrv(*args)
    assert (done.status, done.out, len(done.err.splitlines())) == (2, "", 1), done
    assert says in done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("compare", "one", "two"), "run folder"),
        (("up", "--check", "no_such_check"), "'no_such_check' is not allowed; expected default, all, or some of "),
        (("up", "--for", "0"), "'0' is not allowed; expected a number above 0"),
        (("up", "--client", "go:golang"), "'golang' is not allowed; expected one of "),
        (("check", "."), "a run folder"),
        (("check", "absent"), "absent"),
        (
            ("run", "smoke", "--summary", "/proc/x"),
            "'--summary': '/proc/x' is not allowed; expected a file that can be written",
        ),
    ],
)
def test_so_is_one_of_a_command_that_works_in_a_process_of_its_own(
    args: tuple[str, ...], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    error = CliRunner().invoke(cli, args, standalone_mode=False).exception
    assert error is not None
    status, said = explain(error)
    assert (status, said.count("\n")) == (2, 0)
    assert says in said
    assert list(tmp_path.iterdir()) == []


def test_a_run_folder_that_cannot_be_made_is_said_before_anything_is_started() -> None:
    error = CliRunner().invoke(cli, ["run", "smoke", "--out", "/proc/x"], standalone_mode=False).exception
    assert error is not None
    status, said = explain(error)
    assert (status, said.partition(": ")[0]) == (4, "the run folder /proc/x cannot be made")
