"""Why a Ray cluster could not be joined is one sentence that says what to do, made of what Ray itself says."""

import re
from typing import Any

import pytest

from nemesrv.actors.host_agent import AgentFacts
from nemesrv.actors.joined_ray import _hello, _last_line, _reachable, _require_same, _sentence
from nemesrv.actors.watch import ClusterError

from ..free_port import free_port

AT = "10.0.0.1:6379"


def as_ray_wraps(cause: BaseException) -> BaseException:
    """What `ray.init` raises of it."""
    try:
        raise ConnectionError(f"Failed to connect to Ray cluster at {AT}") from cause
    except ConnectionError as exc:
        return exc


@pytest.mark.parametrize("wrapped", [False, True])
def test_another_version_of_ray_or_python_is_named_beside_ours(wrapped: bool) -> None:
    from ray._private.utils import check_version_info

    with pytest.raises(RuntimeError) as raised:
        check_version_info({"ray_version": "2.40.0", "python_version": "3.12.4"}, "node 10.0.0.2")
    exc = as_ray_wraps(raised.value) if wrapped else raised.value
    said = _sentence(AT, exc)
    assert re.fullmatch(
        rf"the Ray cluster at {AT} runs Ray 2\.40\.0 on Python 3\.12\.4, and this host has Ray \S+ on Python \S+: both "
        "must be the same",
        said,
    )


def test_a_token_that_is_refused_is_told_as_such() -> None:
    said = _sentence(AT, as_ray_wraps(RuntimeError("Unauthenticated: Authentication token is missing")))
    assert said == (
        f"the Ray cluster at {AT} refused our token: set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN as its own are"
    )


def test_whatever_else_ray_says_is_repeated() -> None:
    said = _sentence(AT, RuntimeError("No space left on device"))
    assert said == f"the Ray cluster at {AT} could not be joined: No space left on device"


def test_who_is_not_let_in_looks_at_token_and_tls() -> None:
    said = _sentence(AT, as_ray_wraps(RuntimeError("timed out")))
    assert said == (
        f"the Ray cluster at {AT} takes connections but did not let us in (Failed to connect to Ray cluster at {AT} "
        "timed out): its RAY_AUTH_MODE, RAY_AUTH_TOKEN and RAY_USE_TLS must be ours"
    )


def test_what_rays_client_says_aloud_is_taken_as_the_reason() -> None:
    place = b"[2026-11-22 18:06:58,720 W 27157 27157] gcs_client.cc:210: "
    said = place + b"first\n" + place + b"Failed\n"
    assert _last_line(said) == "Failed"
    assert _last_line(b"") == ""


class Host:
    """A host whose agent's first answer is this error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def answer(self, _ref: object, _limit_s: float) -> Any:
        raise self._error

    def __str__(self) -> str:
        return "b"


@pytest.mark.parametrize(
    ("said", "missing"),
    [
        ("ModuleNotFoundError: No module named 'nemesrv'", "nemesrv"),
        ("ModuleNotFoundError: No module named 'orjson'", "orjson"),
        ("The actor with name HostAgent failed to be imported, and cannot call this method.", "nemesrv"),
    ],
)
def test_a_package_that_a_host_lacks_is_named_with_the_host(said: str, missing: str) -> None:
    host: Any = Host(ImportError(said))
    with pytest.raises(ClusterError, match=f"the Python of Ray on the host b has no {missing}: install nemesrv there"):
        _hello(host, None)


def test_another_nemesrv_on_a_host_is_refused() -> None:
    host: Any = Host(RuntimeError())
    with pytest.raises(ClusterError, match=r"the host b has nemesrv 0\.0\.1, and this one \S+: install the same"):
        _require_same(host, AgentFacts(pid=1, nemesrv="0.0.1"))


def test_a_head_that_does_not_answer_is_named_with_the_reason() -> None:
    at = f"127.0.0.1:{free_port()}"
    with pytest.raises(ClusterError, match=rf"no Ray head answers at {at} \(Connection refused\)"):
        _reachable(at)
