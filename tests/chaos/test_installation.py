"""What is installed is asked without importing it, and what is missing is one sentence that its reader can follow."""

import pickle
import sys
from pathlib import Path

import pytest

from nemesrv.chaos import installation
from nemesrv.chaos.arrow import pc
from nemesrv.chaos.commands.ending import explain
from nemesrv.chaos.errors import HarnessError
from nemesrv.chaos.installation import EXTRAS, how_to_get_toxiproxy, in_checkout, require_extras
from tests.ran import ran

OPTIONAL = tuple(module for modules in EXTRAS.values() for module in modules)


class Installed:
    """An installed distribution, for which pip wrote this `direct_url.json`."""

    def __init__(self, written: str | None) -> None:
        self._written = written

    def read_text(self, _name: str) -> str | None:
        return self._written


@pytest.fixture
def wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """As a user of the wheel has it: no checkout, and none of the extras."""
    monkeypatch.setattr(installation, "_SET_UP", tmp_path / "setup.sh")
    monkeypatch.setattr(installation, "find_spec", lambda _module: None)
    monkeypatch.setattr(installation, "distribution", lambda _name: Installed(None))
    return monkeypatch


def test_in_this_repository_set_up_has_everything() -> None:
    assert in_checkout()
    require_extras("nemesrv run", *EXTRAS)
    assert how_to_get_toxiproxy().startswith("run `make setup`")


def test_a_user_of_the_wheel_is_told_what_pip_is_to_install(wheel: pytest.MonkeyPatch) -> None:
    with pytest.raises(HarnessError) as told:
        require_extras("nemesrv run", "ray", "spark")
    assert str(told.value) == (
        'nemesrv run needs ray and pyspark, which are not installed: python -m pip install "nemesrv[ray,spark]"'
    )
    assert "make setup" not in how_to_get_toxiproxy()
    assert "go install github.com/Shopify/toxiproxy/v2/cmd/server@v2.12.0" in how_to_get_toxiproxy()
    assert installation.TOXIPROXY_SOURCE.rpartition("@")[2] in Path("deploy/setup.sh").read_text()


@pytest.mark.parametrize(
    ("written", "command"),
    [
        (
            '{"url": "file:///a%20b/nemesrv-1-py3-none-any.whl", "archive_info": {}}',
            '"/a b/nemesrv-1-py3-none-any.whl[ray]"',
        ),
        ('{"url": "file:///src/nemesrv", "dir_info": {}}', '"/src/nemesrv[ray]"'),
        ('{"url": "file:///src/nemesrv", "dir_info": {"editable": true}}', '-e "/src/nemesrv[ray]"'),
        (
            '{"url": "https://host/nemesrv.git", "vcs_info": {"vcs": "git", "commit_id": "3f2a"}}',
            '"nemesrv[ray] @ git+https://host/nemesrv.git@3f2a"',
        ),
        (
            '{"url": "https://host/nemesrv-1-py3-none-any.whl"}',
            '"nemesrv[ray] @ https://host/nemesrv-1-py3-none-any.whl"',
        ),
        (None, '"nemesrv[ray]"'),
    ],
    ids=["a wheel", "a folder", "an editable folder", "git", "a wheel behind a URL", "an index"],
)
def test_an_extra_comes_from_where_nemesrv_came(wheel: pytest.MonkeyPatch, written: str | None, command: str) -> None:
    wheel.setattr(installation, "distribution", lambda _name: Installed(written))
    assert installation.how_to_get(["ray"]) == f"python -m pip install {command}"


def test_an_import_that_fails_all_the_same_is_that_sentence_too(wheel: pytest.MonkeyPatch) -> None:
    assert explain(ModuleNotFoundError("No module named 'scipy'", name="scipy.special")) == (
        4,
        'this needs scipy, which is not installed: python -m pip install "nemesrv[statistics]"',
    )
    assert "internal error" in explain(ModuleNotFoundError("No module named 'wsgi'", name="wsgi"))[1]


def test_a_report_is_not_drawn_where_nothing_draws_it(wheel: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from nemesrv.chaos.experiment.run_folder import RunFolder
    from nemesrv.chaos.reporting import write_reports

    with pytest.raises(HarnessError, match=r'the report needs bokeh, .*: python -m pip install "nemesrv\[report\]"'):
        write_reports(RunFolder(tmp_path))


@pytest.mark.parametrize(
    "does",
    [
        "import nemesrv.chaos.__main__, nemesrv.chaos.pytest_plugin, nemesrv.chaos.commands.admin",
        "import nemesrv.chaos.runner, nemesrv.chaos.judging, nemesrv.chaos.proof.selftest, nemesrv.chaos.preflight",
        "import nemesrv.actors.namesrv.standalone, nemesrv.actors.broker.standalone",
        "from nemesrv.chaos.__main__ import cli; cli(['scenarios'], standalone_mode=False)",
        "from pathlib import Path; from nemesrv.chaos.runner import record_virtual; "
        "from nemesrv.chaos.scenarios.loading import find; record_virtual(find('smoke'), 1, Path(sys.argv[1]))",
    ],
)
def test_nobody_pays_for_a_part_that_they_do_not_use(does: str, tmp_path: Path) -> None:
    program = f"import sys; {does}; print('parts:', *sorted({set(OPTIONAL)!r} & set(sys.modules)))"
    done = ran([sys.executable, "-c", program, str(tmp_path / "run")])
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["parts:"]), done.stdout + done.stderr


def test_a_command_that_records_and_judges_nothing_starts_without_arrow_and_numpy() -> None:
    """A third of the time in which it starts."""
    program = (
        "import sys; from nemesrv.chaos.__main__ import cli; cli(['scenarios'], standalone_mode=False); "
        "print('loaded:', *sorted({'numpy', 'pyarrow'} & set(sys.modules)))"
    )
    done = ran([sys.executable, "-c", program])
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["loaded:"]), done.stdout + done.stderr


def test_what_is_imported_at_its_first_use_can_be_sent_to_sparks_workers() -> None:
    assert pickle.loads(pickle.dumps(pc)).equal is pc.equal


def test_a_verdict_without_what_draws_the_report_is_kept_all_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from nemesrv.chaos import judging
    from nemesrv.chaos.experiment.run_folder import RunFolder
    from nemesrv.chaos.scenarios.loading import find

    monkeypatch.setattr(judging, "has", lambda _extra: False)
    folder = RunFolder.create("smoke", tmp_path / "run")
    judged = judging.keep(judging.of_run(folder, find("smoke")), [], judging.Engine.PLAIN)
    judging.show(judged)
    assert folder.verdicts_file.is_file()
    assert folder.junit_file.is_file()
    assert not folder.report_file.exists()
    assert "no report.html, which needs bokeh: run `make setup`" in capsys.readouterr().out
