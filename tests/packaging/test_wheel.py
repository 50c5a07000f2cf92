"""The built wheel, installed beside a project that has its own top-level `clients` package."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    # a copy, because setuptools leaves build/ and egg-info beside what it builds
    files = run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT).splitlines()
    run("tar", "-cf", out / "tree.tar", *[name for name in files if (ROOT / name).exists()], cwd=ROOT)
    run("tar", "-xf", out / "tree.tar", cwd=source)
    run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", out, source, cwd=source)
    return next(out.glob("*.whl"))


def test_the_wheel_puts_only_nemesrv_into_site_packages_and_carries_its_data(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name.split("/")[0]} == {"nemesrv"}
    for expected in (
        "nemesrv/py.typed",
        "nemesrv/remoting/frame.py",
        "nemesrv/actors/namesrv/route_table.py",
        "nemesrv/clients/producer.py",
        "nemesrv/chaos/scenarios/broker-partition.yaml",
    ):
        assert expected in names


def test_the_wheel_and_a_host_project_with_its_own_clients_package_do_not_disturb_each_other(
    wheel: Path, tmp_path: Path
) -> None:
    environment, host = tmp_path / "venv", tmp_path / "host"
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path).strip())
    zipfile.ZipFile(wheel).extractall(site)
    # the dependencies are those of this test's own environment; its editable nemesrv is a .pth file, which is not read
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    (host / "clients").mkdir(parents=True)
    (host / "clients" / "__init__.py").write_text("OWNER = 'host'\n", encoding="utf-8")
    (host / "test_host.py").write_text(
        "import clients, nemesrv.clients, nemesrv.remoting.frame\n"
        "def test_both():\n"
        "    assert clients.OWNER == 'host'\n"
        f"    assert nemesrv.__file__.startswith({str(site)!r})\n",
        encoding="utf-8",
    )
    for command in (
        [python, "-m", "pytest", "-q"],
        [python, "-c", "import pytest; raise SystemExit(pytest.main(['-q']))"],
    ):
        assert "1 passed" in run(*command, "-p", "no:cacheprovider", cwd=host)
