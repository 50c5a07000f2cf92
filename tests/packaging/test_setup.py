"""deploy/setup.sh says what is missing in one line before it installs anything."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.ran import ran

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A tree with the script, and a PATH folder with the tools that any machine has and Python."""
    (tmp_path / "deploy").mkdir()
    shutil.copy(ROOT / "deploy" / "setup.sh", tmp_path / "deploy")
    for name in ("pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in (
        *("bash", "env", "readlink", "sed", "head", "cat", "cksum", "tr", "dirname", "id", "df"),
        *("awk", "touch", "rm"),
    ):
        found = shutil.which(name)
        assert found is not None
        (tools / name).symlink_to(found)
    (tools / "python3").symlink_to(sys.executable)
    return tmp_path


def program(clone: Path, name: str, says: str) -> None:
    file = clone / "bin" / name
    file.write_text(f"#!/usr/bin/env bash\n{says}\n")
    file.chmod(0o755)


def set_up(clone: Path, **env: str) -> str:
    """The one line that it ends with, status 4."""
    done = ran([str(clone / "deploy" / "setup.sh")], env={"PATH": str(clone / "bin"), **env})
    assert (done.returncode, done.stdout) == (4, "")
    assert not (clone / ".venv").exists()
    (line,) = done.stderr.splitlines()
    return line


def java(version: str) -> str:
    return f"echo 'openjdk version \"{version}\" 2025-04-15' >&2"


def test_the_environment_of_another_tree(clone: Path) -> None:
    (clone / ".venv").symlink_to("elsewhere")
    assert ".venv is a link to elsewhere: remove it, and set-up makes one of this tree" in set_up(clone)


def test_no_java(clone: Path) -> None:
    assert "there is no java that runs: Spark needs a JDK 17 or newer" in set_up(clone)


def test_java_8_first_on_path(clone: Path) -> None:
    program(clone, "java", java("1.8.0_402"))
    assert "java is Java 8: Spark needs a JDK 17 or newer" in set_up(clone)


def test_a_wrong_java_home(clone: Path) -> None:
    program(clone, "java", java("17.0.15"))
    assert "there is no /nowhere/bin/java that runs" in set_up(clone, JAVA_HOME="/nowhere")


def test_neither_toxiproxy_nor_go(clone: Path) -> None:
    program(clone, "java", java("17.0.15"))
    assert "toxiproxy-server is missing: put one on PATH, or install Go" in set_up(clone)


def test_a_full_disk(clone: Path) -> None:
    program(clone, "java", java("17.0.15"))
    program(clone, "go", "exit 1")
    (clone / "bin" / "df").unlink()
    program(clone, "df", "printf 'Filesystem 1024-blocks Used Available\\n/dev/vda 9 9 1024000\\n'")
    assert "the packages need 2.5 GB" in set_up(clone)


def test_the_script_may_be_run() -> None:
    assert os.access(ROOT / "deploy" / "setup.sh", os.X_OK)
