"""The workflows of deploy/ci, run here: each leg of the matrix, with the shell of each step as its service runs it.

What a step `uses` is there already: the project is the folder, Python a new environment, Java and Go this machine's.
"""

import itertools
import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.deploy.files import DEPLOY

GITHUB, GITLAB, GATE, CLIENT_GATE, GITLAB_GATE = (
    DEPLOY / "ci" / f"{name}.yml" for name in ("github-actions", "gitlab-ci", "gate", "client-gate", "gitlab-gate")
)


class Step(NamedTuple):
    name: str
    shell: str
    always: bool = False
    """Whether it runs after a step that failed."""


class Leg(NamedTuple):
    """One combination of the matrix: what its steps say, every expression filled in."""

    matrix: Mapping[str, str]
    steps: tuple[Step, ...]


def _combinations(matrix: Mapping[str, list[Any]]) -> Iterator[dict[str, str]]:
    for values in itertools.product(*matrix.values()):
        yield dict(zip(matrix, map(str, values), strict=True))


def github_legs(file: Path = GITHUB) -> list[Leg]:
    (job,) = yaml.safe_load(file.read_text())["jobs"].values()

    def filled(text: str, matrix: Mapping[str, str]) -> str:
        known = {"github.run_number": "7", **{f"matrix.{name}": value for name, value in matrix.items()}}
        return re.sub(r"\$\{\{ *(.*?) *\}\}", lambda found: known[found[1]], text)

    return [
        Leg(
            matrix,
            tuple(
                Step(str(step.get("name")), filled(step["run"], matrix), step.get("if") == "always()")
                for step in job["steps"]
                if "run" in step
            ),
        )
        for matrix in _combinations(job.get("strategy", {}).get("matrix", {}))
    ]


def gitlab_legs() -> list[Leg]:
    """GitLab runs all lines in one shell, which ends at the first that fails."""
    job = yaml.safe_load(GITLAB.read_text())["nemesrv"]
    step = Step("script", "\n".join(("set -e", *job["before_script"], *job["script"])))
    return [Leg(matrix, (step,)) for each in job["parallel"]["matrix"] for matrix in _combinations(each)]


def gitlab_gate(name: str) -> list[str]:
    """The lines of one of GitLab's jobs that stop a release."""
    job = yaml.safe_load(GITLAB_GATE.read_text())[name]
    return [*job["before_script"], *job["script"]]


def sources() -> dict[str, str]:
    """What NEMESRV may be, by kind, as both files say it."""
    found = [
        re.findall(r"^ *#   an? (\w+)[^.\n]*?  +(.*?)(?:  .*)?$", file.read_text(), re.M) for file in (GITHUB, GITLAB)
    ]
    assert found[0] == found[1]
    return dict(found[0])


def run(leg: Leg, project: Path, nemesrv: str, **env: str) -> list[tuple[Step, int, str]]:
    """Each step's exit status and output. Steps run in `project`, with `NEMESRV` and an environment of their own."""
    beside = project.with_name(f"{project.name}-runner")
    venv.create(beside / "python", with_pip=True)
    tools = beside / "tools"
    tools.mkdir(parents=True)
    _answer_apt(tools)
    path = [str(beside / "python" / "bin"), str(tools), *os.environ["PATH"].split(os.pathsep)]
    given = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    given |= {**leg.matrix, "NEMESRV": nemesrv, "RUNNER_TEMP": str(beside), "GITHUB_PATH": str(beside / "path"), **env}
    given |= {"CI_PROJECT_DIR": str(project), "CI_PIPELINE_IID": "7"}
    done: list[tuple[Step, int, str]] = []
    for step in leg.steps:
        if any(status for _, status, _ in done) and not step.always:
            continue
        added = (beside / "path").read_text().split() if (beside / "path").exists() else []
        ran = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", step.shell],
            cwd=project,
            env={**given, "PATH": os.pathsep.join((*reversed(added), *path))},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=1500,
            check=False,
        )
        done.append((step, ran.returncode, ran.stdout))
    return done


def _answer_apt(tools: Path) -> None:
    """`apt-get` that installs nothing, and fails where Debian has not each package that it is asked for."""
    program = tools / "apt-get"
    program.write_text(
        '#!/usr/bin/env bash\n[ "$1" = install ] || exit 0\nshift\n'
        'for each in "$@"; do case $each in -*) ;; *) apt-cache show "$each" >/dev/null || exit 100 ;; esac; done\n'
    )
    program.chmod(0o755)


if __name__ == "__main__":
    # python -m tests.deploy.workflows github|gitlab|gate|client-gate LEG PROJECT NEMESRV
    which, number, where, source = sys.argv[1:]
    of = {"github": GITHUB, "gate": GATE, "client-gate": CLIENT_GATE}
    chosen = (gitlab_legs() if which == "gitlab" else github_legs(of[which]))[int(number)]
    for step, status, said in run(chosen, Path(where).resolve(), source):
        print(f"== {step.name}: exit status {status}\n{said}")
