"""What is in deploy/, for its tests: the recipes by kind, and the commands that they give."""

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
DOCKERFILE, COMPOSE, RAY_UP = (DEPLOY / name for name in ("Dockerfile", "compose.yaml", "ray-up.yaml"))
KUBERNETES = DEPLOY / "kubernetes"
UNITS = tuple(sorted((DEPLOY / "systemd").glob("*.service")))
ENVIRONMENT = DEPLOY / "systemd" / "nemesrv-ray.env"
RECIPES = tuple(sorted(file for file in DEPLOY.rglob("*") if file.is_file()))
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
IMAGE = f"nemesrv:{VERSION}"


def pins(file: Path) -> dict[str, str]:
    """Packages of a constraints file, by their normal names."""
    pairs = (line.split("==") for line in file.read_text().splitlines() if "==" in line)
    return {re.sub(r"[-_.]+", "-", name).lower(): version.strip() for name, version in pairs}


def documents(file: Path) -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all(file.read_text()) if one]


def manifests() -> Iterator[dict[str, Any]]:
    """Every object of Kubernetes that a file describes."""
    for file in sorted(KUBERNETES.rglob("*.yaml")):
        yield from (one for one in documents(file) if one.get("kind") not in (None, "Kustomization"))


def mappings(of: Any) -> Iterator[dict[str, Any]]:
    """Every mapping in it, however deep."""
    if isinstance(of, dict):
        yield of
    for value in of.values() if isinstance(of, dict) else of if isinstance(of, list) else ():
        yield from mappings(value)


def pods(of: Any) -> Iterator[dict[str, Any]]:
    return (one for one in mappings(of) if "containers" in one)


def _environment() -> dict[str, str]:
    lines = (line for line in ENVIRONMENT.read_text().splitlines() if line and not line.startswith("#"))
    return dict(line.split("=", 1) for line in lines)


def units_commands() -> Iterator[list[str]]:
    """What systemd would start, settings put in."""
    for unit in UNITS:
        (started,) = re.findall(r"^ExecStart=(.*)$", unit.read_text(), re.M)
        for name, value in _environment().items():
            started = started.replace(f"${{{name}}}", value)
        assert "$" not in started, unit.name
        yield shlex.split(started)


def commands() -> list[list[str]]:
    """Every command that a recipe starts or tells a person to, without the folder of its program."""
    found = list(units_commands())
    found += [service["command"] for service in documents(COMPOSE)[0]["services"].values()]
    for file in RECIPES:
        for line in re.sub(r"\$\{\{.*?\}\}|\$\w+", "1", file.read_text()).splitlines():
            said = re.search(r"(?<![\w/-])(?:/opt/nemesrv/bin/)?(nemesrv (?:run|check|preflight)\b[^'`#|]*)", line)
            if said and file.suffix != ".env":
                found.append(shlex.split(said[1].split("   ")[0].rstrip(" ).,;:\\")))
    up = documents(RAY_UP)[0]
    for started in (*up["head_start_ray_commands"], *up["worker_start_ray_commands"]):
        words = shlex.split(started.replace("$RAY_HEAD_IP", up["provider"]["head_ip"]))
        at = next(index for index, word in enumerate(words) if word.endswith("/ray"))
        found.append(words[at:])
    return [[Path(words[0]).name, *words[1:]] for words in found]
