"""Tools that know the recipes' formats find no fault with them, and do find one that is planted."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.deploy.files import COMPOSE, KUBERNETES, UNITS
from tests.ran import ran


def _ran(*command: str | Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return ran(list(map(str, command)), timeout=120, env=env or dict(os.environ))


def _kustomized(name: str) -> str:
    kubectl, kustomize = shutil.which("kubectl"), shutil.which("kustomize")
    if kubectl is None and kustomize is None:
        pytest.skip("neither kubectl nor kustomize is there")
    done = _ran(*([kubectl, "kustomize"] if kubectl else [str(kustomize), "build"]), KUBERNETES / name)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_jobs_cluster_is_the_cluster_and_none_is_made_beside_it() -> None:
    made = {each["kind"]: each for each in yaml.safe_load_all(_kustomized("job"))}
    assert set(made) == {"ConfigMap", "NetworkPolicy", "PersistentVolumeClaim", "RayJob"}
    (cluster,) = (each for each in yaml.safe_load_all(_kustomized("cluster")) if each["kind"] == "RayCluster")
    assert made["RayJob"]["spec"]["rayClusterSpec"] == cluster["spec"]


def test_sparks_executors_may_hold_the_volume_of_run_folders() -> None:
    claims = [each for each in yaml.safe_load_all(_kustomized("spark")) if each["kind"] == "PersistentVolumeClaim"]
    assert [claim["spec"]["accessModes"] for claim in claims] == [["ReadWriteMany"]]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is missing: install systemd")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_systemd_finds_no_fault_with_a_unit(unit: Path, tmp_path: Path) -> None:
    copied = tmp_path / unit.name
    copied.write_text(re.sub(r"/opt/nemesrv/bin/[a-z-]+", sys.executable, unit.read_text()))
    done = _ran("systemd-analyze", "verify", "--man=no", copied)
    assert (done.returncode, unit.name in done.stderr) == (0, False), done.stderr


def test_docker_compose_itself_takes_the_three_hosts_and_wants_a_token() -> None:
    plugin = (
        ["docker", "compose"] if shutil.which("docker") and _ran("docker", "compose", "version").returncode == 0 else []
    )
    alone = shutil.which("docker-compose")
    command = plugin or ([alone] if alone else pytest.skip("docker compose is not there"))
    env = {name: value for name, value in os.environ.items() if name != "RAY_AUTH_TOKEN"}
    config = [*command, "-f", str(COMPOSE), "--profile", "run", "--profile", "spark", "config", "--quiet"]
    assert _ran(*config, env={**env, "RAY_AUTH_TOKEN": "t"}).returncode == 0
    refused = _ran(*config, env=env)
    assert refused.returncode != 0
    assert "RAY_AUTH_TOKEN" in refused.stderr
