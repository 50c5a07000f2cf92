"""Building the wheel, and environments with it."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str | Path, cwd: Path) -> str:
    """What the command prints; AssertionError with all of it when it fails."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def built_wheel(source: Path, out: Path) -> Path:
    """The wheel of the working tree, built from a copy in `source`: setuptools leaves files beside what it builds."""
    files = run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT).splitlines()
    run("tar", "-cf", out / "tree.tar", *[name for name in files if (ROOT / name).exists()], cwd=ROOT)
    run("tar", "-xf", out / "tree.tar", cwd=source)
    run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", out, source, cwd=source)
    return next(out.glob("*.whl"))


def environment_with(wheel: Path, folder: Path) -> Path:
    """The Python of a new environment that has the wheel; the dependencies are those of this test's own.

    This environment's editable nemesrv is a .pth file, which is not read there.
    """
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip())
    zipfile.ZipFile(wheel).extractall(site)
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    beside = Path(sys.executable).with_name("toxiproxy-server")
    if beside.exists():
        python.with_name("toxiproxy-server").symlink_to(beside)
    return python
