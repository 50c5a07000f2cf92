"""The recipes for the NameServer alone fit the program: settings, options, files and packages they name are there."""

import importlib.metadata
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from nemesrv.actors.namesrv.config import NamesrvConfig
from nemesrv.remoting.properties import parse_properties
from tests.ran import ran

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
UNIT, DOCKERFILE, README = (DEPLOY / name for name in ("nemesrv-namesrv.service", "namesrv.Dockerfile", "README.md"))
INSTALLED = re.compile(r"--constraint constraints\.txt ([\w ]+)")

IMPORTED = """
import sys
from nemesrv.chaos import __main__
from nemesrv.actors.namesrv import standalone
import uvloop
print(*sorted({name.split(".")[0] for name in sys.modules}))
"""


def test_the_settings_files_have_only_known_keys_and_the_unit_stays_on_loopback() -> None:
    for name, address in (("namesrv.conf", "127.0.0.1"), ("container.conf", "0.0.0.0")):
        config = NamesrvConfig.from_properties(parse_properties((DEPLOY / name).read_bytes()))
        assert config.extra == {}
        assert (config.bind_address, config.listen_port) == (address, 9876)


def test_the_commands_are_the_programs_own() -> None:
    (started,) = re.findall(r"^ExecStart=(.*)$", UNIT.read_text(), re.M)
    (entry,) = re.findall(r"^ENTRYPOINT \[(.*)\]$", DOCKERFILE.read_text(), re.M)
    assert shlex.split(started)[1:3] == ["namesrv", "-c"]
    assert [part.strip(' "') for part in entry.split(",")] == [shlex.split(started)[0], "namesrv"]
    shown = ran([sys.executable, "-m", "nemesrv.chaos", "namesrv", "--help"], check=True)
    assert "-c" in shown.stdout


def test_exactly_the_packages_that_the_name_server_imports_are_installed() -> None:
    shown = ran([sys.executable, "-c", IMPORTED], check=True)
    owners = importlib.metadata.packages_distributions()
    # a compiled part of a package may be a top-level module of its own
    imported = {owner for module in shown.stdout.split() for owner in owners.get(module, [])} - {"nemesrv", "pip"}
    imported -= {"setuptools", "cffi"}
    for recipe in (DOCKERFILE, README):
        for packages in INSTALLED.findall(recipe.read_text()):
            assert set(packages.split()) == imported
    assert len(INSTALLED.findall(DOCKERFILE.read_text() + README.read_text())) == 2


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is missing: install systemd")
def test_systemd_finds_no_fault_with_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/nemesrv/bin/nemesrv", sys.executable))
    done = ran(["systemd-analyze", "verify", "--man=no", str(unit)], timeout=60)
    assert (done.returncode, UNIT.name in done.stderr) == (0, False), done.stderr
