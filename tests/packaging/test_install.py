"""README's and docs/install.md's `install` blocks, and `make demo`, in a copy of the tree that has nothing yet."""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.packaging.wheels import ROOT, copied_tree
from tests.test_tutorial import assert_shows, blocks


def texts(page: str, word: str) -> list[str]:
    return [block.text for block in blocks(ROOT / page) if block.about == word]


def shell(commands: str, tree: Path, *first: Path) -> str:
    """What they print, in the tree, with these folders first on PATH."""
    path = os.pathsep.join([*map(str, first), os.environ["PATH"]])
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "NEMESRV_TOXIPROXY")}
    done = subprocess.run(
        ["bash", "-euc", commands],
        cwd=tree,
        env=env | {"PATH": path, "GOPATH": str(tree / "go"), "GOFLAGS": "-modcacherw", "COLUMNS": "170"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout}"
    return done.stdout


@pytest.mark.nightly(
    "packaging/test_wheel.py::test_the_wheel_puts_only_nemesrv_into_site_packages_and_carries_its_data"
)
@pytest.mark.timeout(1800)
def test_what_pages_install_is_a_nemesrv_that_runs(tmp_path: Path) -> None:
    """Line by line in one environment; README's wheel is the one that docs/install.md builds."""
    if shutil.which("go") is None:
        pytest.skip("Go is missing")
    tree = copied_tree(tmp_path / "tree")
    venv.create(tmp_path / "venv", with_pip=True)
    shell("python -m pip install --upgrade pip", tree, tmp_path / "venv" / "bin")  # an old one takes no git+file://
    *by_pip, toxiproxy = texts("docs/install.md", "install")
    by_pip += texts("README.md", "install")
    by_pip += [text for text in texts("README.md", "recipe") if "git+URL" in text]
    commands = [line.partition("  #")[0].rstrip() for text in by_pip for line in text.splitlines() if " pip " in line]
    assert len(commands) >= 6
    for command in dict.fromkeys(commands):
        shell(command.replace("URL", ROOT.as_uri()), tree, tmp_path / "venv" / "bin")
        assert "smoke" in shell("nemesrv scenarios", tmp_path, tmp_path / "venv" / "bin")
    assert "toxiproxy-server version" in shell(f'{toxiproxy}"$NEMESRV_TOXIPROXY" --version', tree)


@pytest.mark.nightly("chaos/test_end_to_end.py::test_a_partition_run_leaves_a_folder_whose_verdict_is_valid")
@pytest.mark.ray
@pytest.mark.toxiproxy
@pytest.mark.timeout(1800)
def test_make_demo_makes_the_environment_and_shows_a_verdict(tmp_path: Path) -> None:
    (demo,) = texts("README.md", "demo")
    command, first, *_ = demo.splitlines()
    beside = Path(sys.executable).parent  # of a toxiproxy-server that may be there
    assert_shows(shell(command, copied_tree(tmp_path / "tree"), beside), first.partition("(")[0])
