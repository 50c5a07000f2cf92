"""`make dist`: dist/ with the wheel and the source distribution, and the wheel tried by README's own commands.

The commands run in an empty environment whose packages pip fetches; what they print must be what README shows.
"""

import os
import re
import subprocess
import tempfile
import time
import venv
from collections.abc import Iterator
from pathlib import Path

from tests.packaging.wheels import ROOT, distributions
from tests.test_tutorial import assert_shows, blocks

README = ROOT / "README.md"


def install_lines() -> list[str]:
    """README's commands that install the wheel."""
    return re.findall(r'^(python -m pip install "dist/[^"]*")', README.read_text(encoding="utf-8"), re.M)


def tried(dist: Path, folder: Path) -> Iterator[str]:
    """A line for each command that did what README says; AssertionError with the output of one that did not."""
    venv.create(folder / "venv", with_pip=True)
    work = folder / "work"
    work.mkdir()
    (work / "dist").symlink_to(dist)
    (work / "docs").symlink_to(ROOT / "docs")
    path = os.pathsep.join((str(folder / "venv" / "bin"), os.environ["PATH"]))
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"PATH": path, "COLUMNS": "170"}

    def ran(commands: str) -> str:
        done = subprocess.run(
            ["bash", "-e", "-c", commands],
            cwd=work,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{commands}\n{done.stdout}"
        return done.stdout

    for line in install_lines():
        begun = time.monotonic()
        ran(line)
        size = sum(file.stat().st_size for file in (folder / "venv").rglob("*") if not file.is_symlink())
        yield f"{line}: {time.monotonic() - begun:.0f} s; the environment has {size / 1e6:,.0f} MB"
        output = ""
        for block in blocks(README):
            if block.kind == "sh" and not block.about:
                begun = time.monotonic()
                output = ran(block.text)
                yield f"    {block.text.strip()}: {time.monotonic() - begun:.0f} s"
            elif block.kind == "text":
                assert_shows(output, block.text)


def made(dist: Path) -> Iterator[str]:
    """Builds into `dist`, in place of what was built before, and tries it."""
    dist.mkdir(exist_ok=True)
    for old in dist.glob("nemesrv-*"):
        old.unlink()
    with tempfile.TemporaryDirectory() as folder:
        for file in distributions(Path(folder) / "source", dist):
            yield f"{file.relative_to(dist.parent)}: {file.stat().st_size / 1e6:.1f} MB"
        yield from tried(dist, Path(folder))


if __name__ == "__main__":
    for said in made(ROOT / "dist"):
        print(said, flush=True)
