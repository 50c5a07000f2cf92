"""deploy/setup.sh says what is missing in one line before it installs anything."""

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


def java(version: str) -> dict[str, str]:
    return {"java": f"echo 'openjdk version \"{version}\" 2025-04-15' >&2"}


FULL = "printf 'Filesystem 1024-blocks Used Available\\n/dev/vda 9 9 1024000\\n'"


@pytest.mark.parametrize(
    ("programs", "env", "says"),
    [
        ({}, {}, "there is no java that runs: Spark needs a JDK 17 or newer"),
        (java("1.8.0_402"), {}, "java is Java 8: Spark needs a JDK 17 or newer"),
        (java("17.0.15"), {"JAVA_HOME": "/nowhere"}, "there is no /nowhere/bin/java that runs"),
        (java("17.0.15"), {}, "toxiproxy-server is missing: put one on PATH, or install Go"),
        ({**java("17.0.15"), "go": "exit 1", "df": FULL}, {}, "the packages need 2.5 GB"),
    ],
    ids=["no Java", "Java 8", "a wrong JAVA_HOME", "neither Toxiproxy nor Go", "a full disk"],
)
def test_what_is_missing_is_the_one_line(clone: Path, programs: dict[str, str], env: dict[str, str], says: str) -> None:
    for name, text in programs.items():
        file = clone / "bin" / name
        file.unlink(missing_ok=True)
        file.write_text(f"#!/usr/bin/env bash\n{text}\n")
        file.chmod(0o755)
    assert says in set_up(clone, **env)


def test_the_environment_of_another_tree(clone: Path) -> None:
    (clone / ".venv").symlink_to("elsewhere")
    assert ".venv is a link to elsewhere: remove it, and set-up makes one of this tree" in set_up(clone)


def set_up(clone: Path, **env: str) -> str:
    """The one line that it ends with, status 4."""
    done = ran([str(clone / "deploy" / "setup.sh")], env={"PATH": str(clone / "bin"), **env})
    assert (done.returncode, done.stdout) == (4, "")
    assert not (clone / ".venv").exists()
    (line,) = done.stderr.splitlines()
    return line
