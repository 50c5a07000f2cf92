"""Builds or installs the catalogue's clients, each at its pinned version, into the user's cache; once for all runs.

    python -m tests.clients_matrix.install              all; a sentence for each that cannot be had
    python -m tests.clients_matrix.install go-2.1.2     that one

The folder is $NEMESRV_CLIENTS, else nemesrv/clients in the user's cache. Which registries the package managers ask is
the machine's own business; nothing here names one. A client is built again when its driver or its row has changed.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from nemesrv.chaos.apache.maven import JavaMissing, cache, resolve
from tests.ran import ran

from ..interop.jars import AGES, class_path, number, of_version
from .catalogue import CLIENTS, DRIVERS, Client, Registry

BUILD_TIMEOUT_S = 1_800
"""Rust's dependencies take minutes on a busy machine."""

POM_OF_ONE = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>nemesrv</groupId>
  <artifactId>client</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  {management}
  <dependencies>
    <dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version></dependency>
  </dependencies>
</project>
"""
SPRING_BOOT = """<dependencyManagement><dependencies><dependency>
    <groupId>org.springframework.boot</groupId><artifactId>spring-boot-dependencies</artifactId>
    <version>{version}</version><type>pom</type><scope>import</scope>
  </dependency></dependencies></dependencyManagement>"""
GO_MOD = "module driver\n\ngo 1.20\n\nrequire {package} {version}\n"
CARGO_TOML = """[package]
name = "driver"
version = "1.0.0"
edition = "2021"

[[bin]]
name = "driver"
path = "driver.rs"

[dependencies]
{package} = "={version}"
rocketmq-model = "={version}"
rocketmq-observability = "={version}"
rocketmq-runtime = "={version}"
serde_json = "1"
tokio = {{ version = "1", features = ["io-std", "io-util", "rt-multi-thread", "signal", "sync", "time", "macros"] }}

[profile.dev]
debug = 0
opt-level = 1
"""


class ClientMissing(Exception):
    """A client cannot be had here; the text is one sentence that says why."""


def folder_of_all() -> Path:
    chosen = os.environ.get("NEMESRV_CLIENTS")
    return Path(chosen) if chosen else cache("clients")


def command(client: Client) -> tuple[str, ...]:
    """What starts it, after it was installed where it was not. ClientMissing when that cannot be."""
    home = folder_of_all() / "homes" / client.name  # what one client leaves there changes what another one does
    home.mkdir(parents=True, exist_ok=True)
    places = {"folder": install(client), "python": sys.executable, "drivers": DRIVERS, "home": home}
    return tuple(word.format(**places) for word in client.command)


def install(client: Client) -> Path:
    """The folder with the built client, whole or not at all. ClientMissing when it cannot be had."""
    driver = DRIVERS / client.driver
    sources = [driver, *DRIVERS.glob(f"[Pp]rotocol{driver.suffix}")]
    recipe = f"{replace(client, findings=())}{GO_MOD}{CARGO_TOML}".encode() + b"".join(map(Path.read_bytes, sources))
    folder = folder_of_all() / f"{client.name}-{hashlib.sha256(recipe).hexdigest()[:12]}"
    if folder.is_dir():
        return folder
    for program in client.needs:
        if shutil.which(program) is None:
            raise ClientMissing(f"{client.says} cannot be had: {program} is missing on PATH")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        target = Path(temporary) / "client"
        target.mkdir()
        for source in sources:
            shutil.copy(source, target)
        _BUILD[client.registry](client, target)
        try:
            target.rename(folder)
        except OSError:
            if not folder.is_dir():  # another run was quicker
                raise
    for old in folder.parent.glob(f"{client.name}-" + "?" * 12):
        if old != folder:
            shutil.rmtree(old, ignore_errors=True)
    return folder


def _run(client: Client, words: Sequence[str], folder: Path, env: Mapping[str, str] | None = None) -> None:
    """ClientMissing with the last lines that a builder said when it fails."""
    try:
        done = ran(
            words, cwd=folder, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL, timeout=BUILD_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        raise ClientMissing(f"{client.says} cannot be had: `{words[0]}` took longer than {BUILD_TIMEOUT_S} s") from None
    if done.returncode != 0:
        said = " | ".join(line.strip() for line in (done.stdout + done.stderr).splitlines()[-6:])
        raise ClientMissing(f"{client.says} cannot be had: `{' '.join(words[:3])}` failed: {said[-600:]}")


def _maven(client: Client, target: Path) -> None:
    age = next((each for each in AGES if each.version == client.version), None)
    try:
        if age is not None and client.package.endswith(":rocketmq-client"):
            jars = class_path(age)
            source = target / client.driver
            source.write_text(age.source(source.read_text("utf-8")), "utf-8")
        else:
            folder = cache("apache") / f"{client.package.replace(':', '-')}-{client.version}"
            group, _, artifact = client.package.partition(":")
            boot = SPRING_BOOT.format(version=client.spring_boot) if client.spring_boot else ""
            pom = POM_OF_ONE.format(group=group, artifact=artifact, version=client.version, management=boot)
            jars = f"{resolve(client.says, pom, folder)}/*"
    except JavaMissing as exc:
        raise ClientMissing(f"{client.says} cannot be had: {exc}") from exc
    (target / "jars").symlink_to(jars.removesuffix("/*"))
    _run(
        client,
        ("javac", "-parameters", "-cp", jars, "-sourcepath", ".", "-d", str(target / "classes"), client.driver),
        target,
    )


def _go(client: Client, target: Path) -> None:
    source = target / Path(client.driver).name
    source.write_text(of_version(source.read_text("utf-8"), number(client.version)), "utf-8")
    (target / "go.mod").write_text(GO_MOD.format(package=client.package, version=client.version))
    # v2.0.0 names one of 2018, which panics on the maps of Go 1.24
    _run(client, ("go", "get", "github.com/modern-go/reflect2@v1.0.2"), target)
    _run(client, ("go", "mod", "tidy"), target)
    _run(client, ("go", "build", "-o", "driver", "."), target)


def _pypi(client: Client, target: Path) -> None:
    words = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps")
    _run(client, (*words, "--target", str(target), f"{client.package}=={client.version}"), target)


def _npm(client: Client, target: Path) -> None:
    words = ("npm", "install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(target))
    _run(client, (*words, f"{client.package}@{client.version}"), target)


def _cargo(client: Client, target: Path) -> None:
    (target / "Cargo.toml").write_text(CARGO_TOML.format(package=client.package, version=client.version))
    built = folder_of_all() / "cargo"  # a driver that has changed does not build its dependencies again
    _run(client, ("cargo", "build", "--quiet"), target, {"CARGO_TARGET_DIR": str(built)})
    shutil.copy(built / "debug" / "driver", target)


def _nothing(client: Client, target: Path) -> None:
    """It is here already."""


_BUILD: Mapping[Registry, Callable[[Client, Path], None]] = {
    Registry.MAVEN: _maven,
    Registry.GO: _go,
    Registry.PYPI: _pypi,
    Registry.NPM: _npm,
    Registry.CRATES: _cargo,
    Registry.HERE: _nothing,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or CLIENTS:
        try:
            print(f"{name}: {' '.join(command(CLIENTS[name]))}", flush=True)
        except ClientMissing as exc:
            print(f"{name}: {exc}", flush=True)
