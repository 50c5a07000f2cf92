"""A few seconds of what `make fuzz` does for minutes, and the fuzzer itself: that it finds, and finds again."""

import time

import pytest

from nemesrv.remoting.errors import RemoteProtocolError

from . import engine
from .engine import Finding, fuzz
from .targets import TARGETS, Target

QUICK = {"frame": 600, "header": 600, "json": 400, "record": 500, "batch": 500, "compressed body": 300}
OF_ANY = 150


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_nothing_but_the_documented_errors_escapes(target: Target) -> None:
    figures = fuzz(target, inputs=QUICK.get(target.name, OF_ANY), seed=2026, sample_every=1)
    assert figures.inputs >= OF_ANY


def _planted(data: bytes) -> None:
    if data[:1] == b"[":
        raise RemoteProtocolError("as documented")
    if b"{{" in data:
        raise KeyError("not as documented")


def _slow(data: bytes) -> None:
    if b"{{" in data:
        deadline = time.process_time() + 30
        while time.process_time() < deadline:
            pass


def _target(check: object) -> Target:
    return Target("planted", 1, lambda: [b'{"a":1}'], lambda: check)  # type: ignore[arg-type,return-value]


def test_an_error_that_escapes_is_found_with_its_input() -> None:
    with pytest.raises(Finding, match=r"planted, seed 5, batch 0, .* KeyError: 'not as documented'") as caught:
        fuzz(_target(_planted), inputs=2000, seed=5)
    assert b"{{" in caught.value.data
    with pytest.raises(Finding) as again:
        fuzz(_target(_planted), inputs=2000, seed=5)
    assert again.value.data == caught.value.data


def test_an_input_that_takes_too_long_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "INPUT_S", 0.25)
    with pytest.raises(Finding, match=r"TooSlow: it took longer than 0\.25 s of CPU time"):
        fuzz(_target(_slow), inputs=2000, seed=5)
