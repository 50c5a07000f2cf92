"""How nemesrv is installed: which of its optional parts are there, and what a person does about one that is not.

    nodes, scenarios, recording on the virtual clock, namesrv, broker, admin    always there
    extra `ray`          clusters of processes behind Toxiproxy, on the real clock
    extra `spark`        verdicts
    extra `report`       report.html
    extra `statistics`   compare
    extra `watch`        the metrics of `nemesrv watch`

In a checkout of this repository `make setup` installs everything; a user of the wheel has no such target.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path

from .errors import HarnessError

EXTRAS: Mapping[str, tuple[str, ...]] = {
    "ray": ("ray", "toxiproxy", "requests", "tenacity"),
    "spark": ("pyspark",),
    "report": ("bokeh",),
    "statistics": ("scipy",),
    "watch": ("prometheus_client",),
}
"""Extra to the modules that it installs (pyproject.toml), those first that a person knows it by."""
TOXIPROXY_SOURCE = "github.com/Shopify/toxiproxy/v2/cmd/server@v2.12.0"
_SET_UP = Path(__file__).resolve().parents[1] / "deploy" / "setup.sh"


def in_checkout() -> bool:
    """Whether this is a checkout of the repository, where `make setup` is."""
    return _SET_UP.is_file()


def how_to_get_toxiproxy() -> str:
    """What a person can do when there is no Toxiproxy server, as the end of a sentence."""
    else_ = "put toxiproxy-server on PATH, or name it in NEMESRV_TOXIPROXY"
    if in_checkout():
        return f"run `make setup`, {else_}"
    return f"{else_} (with Go: `go install {TOXIPROXY_SOURCE}`, then NEMESRV_TOXIPROXY=$(go env GOPATH)/bin/server)"


def has(extra: str) -> bool:
    """Whether everything of that extra is installed. Nothing is imported."""
    return all(find_spec(module) is not None for module in EXTRAS[extra])


def require_extras(what: str, *extras: str) -> None:
    """HarnessError when an extra that `what` needs is not installed; one sentence for all of them."""
    absent = [extra for extra in dict.fromkeys(extras) if not has(extra)]
    if absent:
        modules = [next(module for module in EXTRAS[extra] if find_spec(module) is None) for extra in absent]
        raise HarnessError(_sentence(what, modules, absent))


def mend_import(module: str | None) -> str:
    """The sentence for a module that could not be imported; "" when it belongs to no extra of ours."""
    top = (module or "").partition(".")[0]
    extras = [extra for extra, modules in EXTRAS.items() if top in modules]
    return _sentence("this", [top], extras) if extras else ""


def how_to_get(extras: Iterable[str]) -> str:
    """The command that installs them."""
    return "run `make setup`" if in_checkout() else f"pip install 'nemesrv[{','.join(extras)}]'"


def _sentence(what: str, modules: list[str], extras: list[str]) -> str:
    said = " and ".join(filter(None, (", ".join(modules[:-1]), modules[-1])))
    are = "is" if len(modules) == 1 else "are"
    return f"{what} needs {said}, which {are} not installed: {how_to_get(extras)}"
