"""The benchmark measures what it says."""

import contextlib
import dataclasses
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console
from tenacity import retry, retry_if_exception_type, stop_after_attempt

from tests.bench import measure, namesrv
from tests.bench.figures import OURS, Figures
from tests.bench.measure import BenchError, Shot, compiler
from tests.bench.namesrv import Size

SMALL = Size(
    rounds=1,
    in_flight=(2,),
    topics=50,
    heartbeat_brokers=30,
    heartbeat_topics=5,
    footprint_brokers=2,
    connections=5,
    warm_up_s=0,
)
pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler")


def test_everything_is_measured_and_every_aim_judged() -> None:
    figures, text = _every_row(4 * 3 + 3 + 4 + 2 + 2, ["C echo", "uvloop echo", OURS])
    for what in ("look-ups/s JSON, 64 brokers, 16x2", "registrations/s", "every 30 s", "bytes a route", "beside"):
        assert what in text
    assert {aim.of for aim in figures.aims if figures.ratio(aim) is not None} == {"C echo", None}


@retry(retry=retry_if_exception_type(AssertionError), stop=stop_after_attempt(5), reraise=True)
def _every_row(rows: int, servers: list[str]) -> tuple[Figures, str]:
    """What a short benchmark measured and printed. A busy machine answers nothing in some tenth of a second: again."""
    text = io.StringIO()
    figures = namesrv.run(0.1, with_java=False, size=SMALL, console=Console(file=text, width=180))
    assert len(figures.rows) == rows
    assert figures.servers() == servers
    return figures, text.getvalue()


SHOT = Shot(
    name="x",
    request=b"as00 123456789",
    request_offset=5,
    response=b"good 123456789",
    response_offset=5,
    text=True,
    response_text=True,
)


@contextlib.contextmanager
def _echoed(tmp_path: Path, word: bytes) -> Iterator[int]:
    """A port where `good` is answered with `word`."""
    answered = dataclasses.replace(SHOT, response=b"%b 123456789" % word)
    with measure.uvloop_echo(answered, tmp_path) as server:
        yield server.address.port


def test_an_answer_with_other_bytes_is_counted(tmp_path: Path) -> None:
    tools = measure.build(tmp_path)
    with _echoed(tmp_path, b"good") as port:
        load = tools.load(port, SHOT, seconds=0.1, connections=2, in_flight=2)
        assert load.checked("x").bad == 0
    with _echoed(tmp_path, b"evil") as port:
        load = tools.load(port, SHOT, seconds=0.1, connections=2, in_flight=2)
        assert load.bad == load.requests > 0
        with pytest.raises(BenchError, match="answers differ"):
            load.checked("x")
