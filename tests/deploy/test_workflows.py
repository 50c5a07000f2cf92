"""The workflows of deploy/ci do what they say, in every leg, from a checkout, a wheel or an index."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.deploy import workflows
from tests.deploy.files import VERSION
from tests.packaging.wheels import ROOT, built_wheel, copied_tree
from tests.test_tutorial import blocks

LEGS = {
    f"{name} {' '.join(leg.matrix.values())}": leg
    for name, legs in (("github", workflows.github_legs()), ("gitlab", workflows.gitlab_legs()))
    for leg in legs
}
(GATE,), (CLIENT_GATE,) = map(workflows.github_legs, (workflows.GATE, workflows.CLIENT_GATE))


@pytest.mark.parametrize("name", LEGS)
def test_every_value_of_a_leg_is_used_and_its_shell_is_well_formed(name: str) -> None:
    leg = LEGS[name]
    shells = [step.shell for step in leg.steps]
    for variable, value in leg.matrix.items():
        used = [line for shell in shells for line in shell.splitlines() if value in line or f"${variable}" in line]
        assert [line.split()[0] for line in used] == ["nemesrv", "pytest"], variable
    for shell in shells:
        done = subprocess.run(["bash", "-n", "-c", shell], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", LEGS)
def test_one_variable_says_where_nemesrv_comes_from(name: str) -> None:
    lines = [line.strip() for step in LEGS[name].steps for line in step.shell.splitlines()]
    assert [line for line in lines if "pip install" in line] == [
        'python -m pip install "$NEMESRV"',
        "python -m pip install -e '.[test]'",
    ]
    assert workflows.sources() == {
        "checkout": "./nemesrv[all]",
        "wheel": f"./dist/nemesrv-{VERSION}-py3-none-any.whl[all]",
        "git": "nemesrv[all] @ git+URL",
        "index": f"nemesrv[all]=={VERSION}",
    }


def test_the_gates_step_is_in_its_tutorial() -> None:
    shown = [block.text for block in blocks(ROOT / "docs" / "tutorial" / "5-ci.md") if block.about == "gate"]
    install, gate = (step.shell for step in GATE.steps)
    assert install.startswith("python -m pip install")
    assert [gate] == shown


def test_the_gate_runs_every_seed_and_then_fails_if_one_was_red(tmp_path: Path) -> None:
    program = tmp_path / "nemesrv"
    keeps = """mkdir -p runs/x/$$; echo ' "verdict": "VALID",' > runs/x/$$/verdicts.json"""
    program.write_text(f'#!/bin/sh\necho "$@"\n{keeps}\ncase "$*" in *broker-crash*"--seed 2") exit 1 ;; esac\n')
    program.chmod(0o755)
    shell = ["bash", "-e", "-o", "pipefail", "-c", GATE.steps[-1].shell]
    env = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(shell, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    *ran, tally = done.stdout.splitlines()
    assert [line.split()[-1] for line in ran] == [seed for seed in "12345" for _ in range(3)]
    assert tally.split() == ["15", "VALID"]


def test_both_services_stop_a_release_by_the_same_commands_and_keep_what_was_run() -> None:
    for name, gate, file in (
        ("nemesrv-gate", GATE, workflows.GATE),
        ("nemesrv-client-gate", CLIENT_GATE, workflows.CLIENT_GATE),
    ):
        assert workflows.gitlab_gate(name) == [step.shell for step in gate.steps]
        (job,) = yaml.safe_load(file.read_text())["jobs"].values()
        kept = yaml.safe_load(workflows.GITLAB_GATE.read_text())[name]["artifacts"]["paths"]
        assert [job["steps"][-1]["with"]["path"]] == kept == ["runs/"]


@pytest.mark.nightly("test_the_gate_runs_every_seed_and_then_fails_if_one_was_red")
@pytest.mark.timeout(1800)
def test_the_release_gate_passes_with_the_report_extra_alone(tmp_path: Path) -> None:
    project = tmp_path / "project"
    copied_tree(project / "nemesrv")
    done = workflows.run(GATE, project, "./nemesrv[report]")
    assert [status for _, status, _ in done] == [0, 0], done
    ran = sorted(file.parent.parent.name for file in project.glob("runs/*/*/report.html"))
    names = ("broker-crash", "broker-partition", "name-server-crash", "name-server-partition")
    assert ran == sorted(names * 5)  # each with five seeds


@pytest.mark.nightly("test_both_services_stop_a_release_by_the_same_commands_and_keep_what_was_run")
@pytest.mark.timeout(1800)
def test_the_client_gate_judges_a_client_by_its_promise(tmp_path: Path) -> None:
    project = tmp_path / "project"
    copied_tree(project / "nemesrv")
    shutil.copy(workflows.CLIENT_GATE.with_name("promise.yaml"), project)
    client = f"{sys.executable} {ROOT}/tests/clients_matrix/drivers/ours.py 5.x"
    done = workflows.run(CLIENT_GATE, project, "./nemesrv", CLIENT=client)
    assert [status for _, status, _ in done] == [0, 0], done
    (rules,) = (json.loads(file.read_text())["rules"] for file in project.glob("runs/conform/*/conform.json"))
    promised = yaml.safe_load((project / "promise.yaml").read_text())["rules"]
    assert {rule["rule"]: rule["verdict"] for rule in rules if rule["rule"] in promised} == dict.fromkeys(
        promised, "VALID"
    )


def test_a_failed_step_ends_the_leg_but_for_what_runs_always(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workflows.venv, "create", lambda folder, with_pip: None)  # no step needs that Python
    steps = (
        workflows.Step("first", 'echo "$NEMESRV" && false'),
        workflows.Step("second", "echo never"),
        workflows.Step("last", "echo always", always=True),
    )
    project = tmp_path / "project"
    project.mkdir()
    done = workflows.run(workflows.Leg({}, steps), project, "a wheel")
    assert [(step.name, status, said) for step, status, said in done] == [
        ("first", 1, "a wheel\n"),
        ("last", 0, "always\n"),
    ]


@pytest.mark.nightly("test_a_failed_step_ends_the_leg_but_for_what_runs_always")
@pytest.mark.ray
@pytest.mark.toxiproxy
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("name", "source"),
    [("github 4.9", "wheel"), ("github 5.x", "index"), ("gitlab 4.9", "checkout"), ("gitlab 5.x", "wheel")],
)
def test_each_step_of_a_leg_runs_in_the_example_project(name: str, source: str, tmp_path: Path) -> None:
    """A leg that ends UNKNOWN (exit status 3), as on a machine that is too busy, is run once more."""
    folder = tmp_path / "first"
    done = _ran(name, source, folder)
    if any(status == 3 for _, status, _ in done):
        folder = tmp_path / "second"
        done = _ran(name, source, folder)
    for step, status, said in done:
        assert status == 0, f"{step.name}\n{said}"
    project = folder / "orders-service"
    scenarios = [yaml.safe_load(file.read_text()) for file in project.glob("runs/*/*/scenario.yaml")]
    assert {scenario["cluster"]["profile"] for scenario in scenarios} == {name.split()[1]}
    for kind in ("report.html", "verdicts.json", "scenario.yaml", "junit.xml"):
        assert len(list(project.glob(f"runs/**/{kind}"))) >= 4, kind
    assert (project / "junit.xml").is_file()


def _ran(name: str, source: str, folder: Path) -> list[tuple[workflows.Step, int, str]]:
    """Each step of the leg in a copy of the example project, with nemesrv from that source."""
    project = Path(shutil.copytree(ROOT / "tests" / "example", folder / "orders-service"))
    env = {}
    if source == "checkout":
        copied_tree(project / "nemesrv")
    else:
        (project / "dist").mkdir()
        (folder / "source").mkdir()
        wheel = built_wheel(folder / "source", project / "dist")
        env = {"PIP_FIND_LINKS": str(wheel.parent)} if source == "index" else {}
    return workflows.run(LEGS[name], project, workflows.sources()[source], **env)
