"""Building the wheel, and environments with it."""

import json
import os
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterable
from importlib.metadata import distribution, requires
from pathlib import Path

from packaging.requirements import Requirement

from tests.ran import ran

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str | Path, cwd: Path) -> str:
    """What the command prints; AssertionError with all of it when it fails."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # a tree is not the wheel
    done = ran([str(part) for part in command], cwd=cwd, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def copied_tree(folder: Path) -> Path:
    """The working tree's files, which git has or would take, in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    files = run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT).splitlines()
    run("tar", "-cf", folder / "tree.tar", *[name for name in files if (ROOT / name).exists()], cwd=ROOT)
    run("tar", "-xf", folder / "tree.tar", cwd=folder)
    (folder / "tree.tar").unlink()
    return folder


def built_wheel(source: Path, out: Path) -> Path:
    """The wheel of the working tree, built from a copy in `source`: setuptools leaves files beside what it builds."""
    copied_tree(source)
    run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", out, source, cwd=source)
    return next(out.glob("*.whl"))


def distributions(source: Path, out: Path) -> list[Path]:
    """The source distribution of the working tree, and the wheel that is built from it."""
    copied_tree(source)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, source, cwd=source)
    return sorted(out.glob("nemesrv-*"))


def environment_with(wheel: Path, folder: Path) -> Path:
    """The Python of a new environment that has the wheel; the dependencies are those of this test's own.

    This environment's editable nemesrv is a .pth file, which is not read there.
    """
    python, site = _environment(wheel, folder)
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    beside = Path(sys.executable).with_name("toxiproxy-server")
    if beside.exists():
        python.with_name("toxiproxy-server").symlink_to(beside)
    return python


def base_environment_with(wheel: Path, folder: Path, *extras: str) -> Path:
    """The Python of a new environment as `pip install "WHEEL[extras]"` makes it: with what the wheel asks for, and what
    that asks for, and nothing else; as links into this test's own environment."""
    python, site = _environment(wheel, folder)
    needed = _needed(requirements_of(wheel), frozenset(extras))
    for name in needed:
        for file in distribution(name).files or ():
            top = file.parts[0]
            if top not in ("..", "__pycache__") and not (site / top).exists():
                (site / top).symlink_to(str(distribution(name).locate_file(top)))
    return python


def requirements_of(wheel: Path) -> list[str]:
    """Requires-Dist of the wheel's METADATA."""
    with zipfile.ZipFile(wheel) as packed:
        (name,) = [name for name in packed.namelist() if name.endswith(".dist-info/METADATA")]
        lines = packed.read(name).decode().partition("\n\n")[0].splitlines()
    return [line.partition(": ")[2] for line in lines if line.startswith("Requires-Dist: ")]


def _needed(requirements: Iterable[str], extras: frozenset[str]) -> set[str]:
    """Names of distributions, with those that they need in turn."""
    found: dict[str, set[str]] = {}

    def need(of: Iterable[str], asked: Iterable[str]) -> None:
        for requirement in map(Requirement, of):
            wanted = requirement.marker is None or any(
                requirement.marker.evaluate({"extra": extra}) for extra in ("", *asked)
            )
            if wanted and (requirement.name not in found or requirement.extras - found[requirement.name]):
                found.setdefault(requirement.name, set()).update(requirement.extras)
                need(requires(requirement.name) or (), requirement.extras)

    need(requirements, extras)
    return set(found)


def _environment(wheel: Path, folder: Path) -> tuple[Path, Path]:
    """Python and site-packages of a new environment that has the wheel, its command and nothing that it needs."""
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip())
    zipfile.ZipFile(wheel).extractall(site)
    (installed,) = site.glob("nemesrv-*.dist-info")
    (installed / "direct_url.json").write_text(json.dumps({"url": wheel.as_uri(), "archive_info": {}}))
    return python, site
