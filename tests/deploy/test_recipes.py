"""The recipes for hosts fit the program and each other: versions, images, commands, settings, rights."""

import copy
import importlib.metadata
import re

import click
import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml
from packaging.requirements import Requirement

from nemesrv.actors import ray_host
from nemesrv.chaos.__main__ import cli
from nemesrv.chaos.installation import TOXIPROXY_SOURCE
from nemesrv.chaos.scenarios.loading import parse
from tests.deploy.files import (
    COMPOSE,
    DEPLOY,
    DOCKERFILE,
    ENVIRONMENT,
    IMAGE,
    KUBERNETES,
    RAY_UP,
    RECIPES,
    ROOT,
    UNITS,
    commands,
    documents,
    manifests,
    mappings,
    pins,
    pods,
)

PINNED, DASHBOARD = pins(ROOT / "constraints.txt"), pins(DEPLOY / "constraints-dashboard.txt")


def test_versions_are_those_of_the_project() -> None:
    clusters = [one for one in manifests() if one["kind"] == "RayCluster"]
    assert [one["spec"]["rayVersion"] for one in clusters] == [PINNED["ray"]]
    images = {pod["containers"][0]["image"] for one in manifests() for pod in pods(one)}
    services = documents(COMPOSE)[0]["services"].values()
    assert images | {service["image"] for service in services} == {IMAGE}
    (renamed,) = documents(KUBERNETES / "cluster" / "kustomization.yaml")[0]["images"]
    assert f"{renamed['name']}:{renamed['newTag']}" == IMAGE
    assert f"-t {IMAGE} " in DOCKERFILE.read_text()


def test_toxiproxy_is_one_version_everywhere() -> None:
    _, _, version = TOXIPROXY_SOURCE.partition("@")
    named = {v for file in RECIPES for v in re.findall(r"toxiproxy/v2/cmd/server@(v[\d.]+)", file.read_text())}
    (built,) = re.findall(r"^TOXIPROXY_VERSION=(.*)$", (DEPLOY / "setup.sh").read_text(), re.M)
    assert named == {version, built} == {version}


def test_the_image_installs_pinned_packages_only() -> None:
    assert "--constraint constraints.txt --constraint deploy/constraints-dashboard.txt" in DOCKERFILE.read_text()
    assert not set(PINNED) & set(DASHBOARD)
    wanted = [Requirement(line) for line in importlib.metadata.requires("ray") or ()]
    by_default = {each.name for each in wanted if each.marker is None or each.marker.evaluate({"extra": "default"})}
    absent = {re.sub(r"[-_.]+", "-", name).lower() for name in by_default} - set(PINNED) - set(DASHBOARD)
    assert absent == set()


IMAGES = [(DEPLOY / name).read_text() for name in ("Dockerfile", "namesrv.Dockerfile")]


def test_both_images_have_one_python() -> None:
    minors = {minor for text in IMAGES for minor in re.findall(r"^FROM python:(\d\.\d+)", text, re.M)}
    assert minors == {"3.11"}


@pytest.mark.parametrize("image", IMAGES, ids=["cluster", "name server"])
def test_what_the_image_copies_is_there(image: str) -> None:
    for line in image.splitlines():
        if line.startswith("COPY ") and "--from" not in line:
            for source in line.split()[1:-1]:
                assert (ROOT / source).exists(), line


def test_ray_is_started_on_hosts_with_what_a_ray_of_our_own_is_started_with() -> None:
    wanted = {
        name: value
        for name, value in ray_host._environment(1).items()
        if name in ("RAY_worker_niceness", "RAY_memory_monitor_refresh_ms", "RAY_USAGE_STATS_ENABLED", "RAY_AUTH_MODE")
    }
    assert len(wanted) == 4
    for name, value in wanted.items():
        started = [file.read_text() for file in (ENVIRONMENT, RAY_UP)]
        if name != "RAY_AUTH_MODE":  # of which each way of starting has its own word
            started.append(DOCKERFILE.read_text())
        assert all(f"{name}={value}" in text for text in started), name
    assert documents(COMPOSE)[0]["x-container"]["environment"]["RAY_AUTH_MODE"] == "token"
    (cluster,) = (one for one in manifests() if one["kind"] == "RayCluster")
    assert cluster["spec"]["authOptions"] == {"mode": "token"}


def test_every_command_is_one_that_the_program_takes() -> None:
    from ray.scripts.scripts import cli as ray

    seen = set()
    for program, *words in commands():
        group = {"nemesrv": cli, "ray": ray}.get(program)
        if group is None:
            assert program == "spark-class"
            assert words[0].removeprefix("org.apache.spark.deploy.") in ("master.Master", "worker.Worker")
            continue
        command = group.commands[words[0]]
        assert isinstance(command, click.Command)
        command.make_context(command.name, words[1:], resilient_parsing=False)
        seen.add((program, words[0]))
    assert {("nemesrv", "run"), ("ray", "start"), ("ray", "stop")} <= seen


def test_the_scenario_that_is_shipped_to_pods_is_one() -> None:
    file = KUBERNETES / "cluster" / "mine.yaml"
    assert parse(yaml.safe_load(file.read_text()), file=file.name).topology().name_servers


def test_nobody_is_root_and_nobody_may_become_it() -> None:
    found = [(one["kind"], pod) for one in manifests() for pod in pods(one)]
    assert len(found) >= 6
    for kind, pod in found:
        assert pod["securityContext"]["runAsNonRoot"] is True, kind
        assert pod["securityContext"]["runAsUser"] == 9876, kind
        assert pod["automountServiceAccountToken"] is False, kind
        for container in pod["containers"]:
            rights = container["securityContext"]
            assert rights["allowPrivilegeEscalation"] is False, kind
            assert rights["capabilities"] == {"drop": ["ALL"]}, kind
            assert {"requests", "limits"} <= set(container["resources"]), kind
    for name, service in documents(COMPOSE)[0]["services"].items():
        assert (service["user"], service["cap_drop"]) == ("9876:9876", ["ALL"]), name
        assert "ports" not in service, name
    for unit in UNITS:
        text = unit.read_text()
        assert re.search(r"^User=nemesrv$", text, re.M), unit.name
        assert "NoNewPrivileges=yes" in text, unit.name
        assert re.search(r"^CapabilityBoundingSet=$", text, re.M), unit.name
    for name in ("Dockerfile", "namesrv.Dockerfile"):
        assert re.findall(r"^USER (\d+)", (DEPLOY / name).read_text(), re.M) == ["9876"], name


def test_only_the_pods_of_an_experiment_reach_each_other() -> None:
    (policy,) = (one for one in manifests() if one["kind"] == "NetworkPolicy")
    label = policy["spec"]["podSelector"]["matchLabels"]
    within = [each for one in manifests() for each in mappings(one)]
    templates = [each for each in within if "containers" in (each.get("spec") or {}) and "kind" not in each]
    assert len(templates) >= 5
    for template in templates:
        assert label.items() <= template["metadata"]["labels"].items()


def test_ray_up_itself_takes_its_file() -> None:
    from ray.autoscaler._private.util import prepare_config, validate_config

    config = documents(RAY_UP)[0]
    validate_config(prepare_config(copy.deepcopy(config)))
    with pytest.raises(jsonschema.ValidationError):
        validate_config(prepare_config({**config, "head_start_commands": []}))


def test_no_recipe_names_a_registrys_host_or_a_path_of_one_machine() -> None:
    hosts = r"pypi\.|proxy\.golang|registry\.npmjs|repo1?\.maven|docker\.io|ghcr\.io|quay\.io|gcr\.io|/root/|/home/"
    for file in RECIPES:
        assert re.findall(hosts, file.read_text()) == [], file.name
