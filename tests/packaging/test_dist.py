"""`make dist` builds what README installs."""

from pathlib import Path

import pytest

from tests.deploy.files import VERSION
from tests.packaging.__main__ import install_lines, made


def test_readme_installs_the_wheel_of_this_version_alone_and_with_everything() -> None:
    wheel = f"dist/nemesrv-{VERSION}-py3-none-any.whl"
    assert install_lines() == [f'python -m pip install "{wheel}[report]"', f'python -m pip install "{wheel}[all]"']


@pytest.mark.nightly(
    "packaging/test_wheel.py::test_the_wheel_puts_only_nemesrv_into_site_packages_and_carries_its_data"
)
@pytest.mark.timeout(1200)
def test_the_wheel_and_the_source_distribution_are_built_and_readmes_words_work(tmp_path: Path) -> None:
    said = list(made(tmp_path / "dist"))
    assert sorted(file.suffix for file in (tmp_path / "dist").iterdir()) == [".gz", ".whl"]
    assert len(said) >= 5, said
