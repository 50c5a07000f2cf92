"""The built wheel, installed beside a project that has its own top-level `clients` package."""

import zipfile
from pathlib import Path

from tests.packaging.wheels import environment_with, run


def test_the_wheel_puts_only_nemesrv_into_site_packages_and_carries_its_data(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name.split("/")[0]} == {"nemesrv"}
    for expected in (
        "nemesrv/py.typed",
        "nemesrv/remoting/frame.py",
        "nemesrv/actors/namesrv/route_table.py",
        "nemesrv/clients/producer/producer.py",
        "nemesrv/chaos/scenarios/broker-partition.yaml",
        "nemesrv/chaos/pytest_plugin.py",
    ):
        assert expected in names


def test_the_wheel_and_a_hosts_own_clients_package_do_not_meet(wheel: Path, tmp_path: Path) -> None:
    host = tmp_path / "host"
    python = environment_with(wheel, tmp_path)
    site = python.parents[1]
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
