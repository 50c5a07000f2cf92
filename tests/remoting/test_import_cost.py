"""What importing the light packages costs: no Ray, no Spark, nothing that only the harness needs."""

import sys

import pytest

from tests.ran import ran

SCRIPT = """
import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    importlib.import_module(module.name)
print("\\n".join(sys.modules))
"""


def loaded_by(package: str) -> set[str]:
    """The modules in memory after every module of `package` was imported in a fresh interpreter."""
    run = ran([sys.executable, "-c", SCRIPT, package], timeout=60)
    assert run.returncode == 0, run.stderr
    return set(run.stdout.split())


@pytest.mark.parametrize(
    ("package", "foreign"),
    [
        ("nemesrv.remoting", ["nemesrv.actors", "nemesrv.clients", "nemesrv.chaos"]),
        ("nemesrv.clients", ["nemesrv.actors", "nemesrv.chaos"]),
    ],
)
def test_importing_a_light_package_loads_nothing_heavy_and_nothing_above_it(package: str, foreign: list[str]) -> None:
    modules = loaded_by(package)
    assert package in modules
    heavy = ["ray", "pyspark", "pandas", "pyarrow", "numpy", "pydantic", "click", "rich", "toxiproxy"]
    assert [name for name in (*heavy, *foreign) if name in modules] == []
