"""Which optional parts of nemesrv are installed, and how to get a missing one.

    nodes, scenarios, recording on the virtual clock, namesrv, broker, admin    always there
    extra `ray`          clusters of processes behind Toxiproxy, on the real clock
    extra `spark`        verdicts
    extra `report`       report.html
    extra `statistics`   compare
    extra `watch`        the metrics of `nemesrv watch`

In the `.venv` of a checkout `make setup` installs everything. Elsewhere pip installs an extra from the source of
nemesrv's own installation: a wheel's file, a folder, a git repository (PEP 610's `direct_url.json`), or an index.
"""

import json
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

from .errors import HarnessError

EXTRAS: Mapping[str, tuple[str, ...]] = {
    "ray": ("ray", "toxiproxy", "requests", "tenacity"),
    "spark": ("pyspark",),
    "report": ("bokeh",),
    "statistics": ("scipy",),
    "watch": ("prometheus_client",),
}
"""Extra to its modules (pyproject.toml), the best known first."""
TOXIPROXY_SOURCE = "github.com/Shopify/toxiproxy/v2/cmd/server@v2.12.0"
_SET_UP = Path(__file__).resolve().parents[1] / "deploy" / "setup.sh"


def in_checkout() -> bool:
    """Whether this is a checkout of the repository, with `make setup`."""
    return _SET_UP.is_file()


def how_to_get_toxiproxy() -> str:
    """Return how to get a Toxiproxy server, as text that ends an error message."""
    else_ = "put toxiproxy-server on PATH, or name it in NEMESRV_TOXIPROXY"
    if in_checkout():
        return f"run `make setup`, {else_}"
    return f"{else_} (with Go: `go install {TOXIPROXY_SOURCE}`, then NEMESRV_TOXIPROXY=$(go env GOPATH)/bin/server)"


def has(extra: str) -> bool:
    """Whether every package of this extra is installed. Nothing is imported."""
    return all(find_spec(module) is not None for module in EXTRAS[extra])


def require_extras(what: str, *extras: str) -> None:
    """Raise HarnessError if an extra that `what` needs is not installed; the error's text names all missing extras."""
    absent = [extra for extra in dict.fromkeys(extras) if not has(extra)]
    if absent:
        modules = [next(module for module in EXTRAS[extra] if find_spec(module) is None) for extra in absent]
        raise HarnessError(_sentence(what, modules, absent))


def mend_import(module: str | None) -> str:
    """Return the sentence that says how to install a module that could not be imported; "" if no extra of nemesrv has
    the module."""
    top = (module or "").partition(".")[0]
    extras = [extra for extra, modules in EXTRAS.items() if top in modules]
    return _sentence("this", [top], extras) if extras else ""


def how_to_get(extras: Iterable[str]) -> str:
    if in_checkout() and Path(sys.prefix).resolve() == (_SET_UP.parents[1] / ".venv").resolve():
        return "run `make setup`"
    return f'python -m pip install {_source()[0]}"{_source()[1].format(extras=",".join(extras))}"'


def _source() -> tuple[str, str]:
    """Return pip's option and name for nemesrv with `{extras}`, as nemesrv was installed here."""
    try:
        read = json.loads(distribution("nemesrv").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        read = {}
    url, named = read.get("url", ""), "nemesrv[{extras}]"
    if git := read.get("vcs_info"):
        return "", f"{named} @ {git['vcs']}+{url}@{git['commit_id']}"
    if not url.startswith("file:"):
        return "", f"{named} @ {url}" if url else named
    path = unquote(urlsplit(url).path)
    return "-e " if read.get("dir_info", {}).get("editable") else "", f"{path}[{{extras}}]"


def _sentence(what: str, modules: list[str], extras: list[str]) -> str:
    said = " and ".join(filter(None, (", ".join(modules[:-1]), modules[-1])))
    are = "is" if len(modules) == 1 else "are"
    return f"{what} needs {said}, which {are} not installed: {how_to_get(extras)}"
