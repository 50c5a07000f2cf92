"""The benchmark measures what it says."""

import contextlib
import dataclasses
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console
from tenacity import retry, retry_if_exception_type, stop_after_attempt

from nemesrv.chaos.apache import maven
from tests.bench import java, measure, namesrv
from tests.bench.figures import OURS, Aim, Figures
from tests.bench.measure import BenchError, Shot, compiler
from tests.bench.namesrv import Size
from tests.interop.conftest import need

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


@pytest.mark.nightly
@pytest.mark.java
def test_apaches_name_server_is_measured_beside_ours() -> None:
    need(java.VERSIONS[0])
    text = io.StringIO()
    figures = namesrv.run(0.1, size=SMALL, console=Console(file=text, width=180))
    assert any(server.startswith("Java 4.9") for server in figures.servers())
    assert all(figures.ratio(aim) is not None for aim in figures.aims if aim.of == "Java")


@pytest.mark.nightly
def test_without_java_its_rows_are_left_out_with_a_line_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maven.shutil, "which", lambda name: None)
    text = io.StringIO()
    figures = namesrv.run(0.1, size=SMALL, console=Console(file=text, width=180))
    assert text.getvalue().count("No row for Apache's NameServer") == 2
    assert OURS in figures.servers()


def test_the_best_value_counts_and_a_ratio_is_to_the_best_of_the_others() -> None:
    figures = Figures()
    for server, value in ((OURS, 300.0), (OURS, 200.0), ("Java 1", 80.0), ("Java 2", 100.0), ("C echo", 600.0)):
        figures.add("rate", server, value)
        figures.add("wait", server, value, less_is_better=True)
    assert figures.ratio(Aim(what="rate", of="Java", at_least=2)) == 3
    assert figures.ratio(Aim(what="rate", of="C echo", at_least=1)) == 0.5
    assert figures.ratio(Aim(what="wait", of="Java", at_most=1)) == 200 / 80
    assert figures.ratio(Aim(what="rate", of=None, at_most=1)) == 300
    assert figures.ratio(Aim(what="rate", of="nobody", at_least=1)) is None
    assert figures.ratio(Aim(what="nothing", of=None, at_least=1)) is None
    figures.aims = [Aim(what="rate", of="Java", at_least=2), Aim(what="wait", of="Java", at_most=1)]
    text = io.StringIO()
    figures.print(Console(file=text, width=120))
    assert "3.00" in text.getvalue()
    assert "yes" in text.getvalue()
    assert "NO" in text.getvalue()


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
def _echoed(tmp_path: Path, word: bytes, *, frames: int = 1) -> Iterator[tuple[int, Shot]]:
    """A port where `good` is answered with `word`, and the shot that expects `good`."""
    request = b"".join(b"as%02d 123456789" % number for number in range(frames))
    answered = dataclasses.replace(SHOT, request=request[:14], response=b"%b 123456789" % word)
    with measure.uvloop_echo(answered, tmp_path) as server:
        yield server.address.port, dataclasses.replace(SHOT, request=request, frames=frames)


def test_an_answer_with_other_bytes_is_counted(tmp_path: Path) -> None:
    tools = measure.build(tmp_path)
    with _echoed(tmp_path, b"good") as (port, shot):
        load = tools.load(port, shot, seconds=0.1, connections=2, in_flight=2)
        assert load.checked("x").bad == 0
    with _echoed(tmp_path, b"evil") as (port, shot):
        load = tools.load(port, shot, seconds=0.1, connections=2, in_flight=2)
        assert load.bad == load.requests > 0
        with pytest.raises(BenchError, match="answers differ"):
            load.checked("x")


def test_a_paced_load_sends_so_many_and_frames_in_turn(tmp_path: Path) -> None:
    tools = measure.build(tmp_path)
    with _echoed(tmp_path, b"good", frames=3) as (port, shot):
        load = tools.load(port, shot, seconds=1.0, connections=3, in_flight=50, per_s=300)
    assert 30 <= load.checked("x").requests <= 301  # a busy machine may stand still for most of the second
    assert load.p50_us <= load.p99_us <= load.max_us + 1


def test_a_port_where_nobody_listens_is_said(tmp_path: Path) -> None:
    tools = measure.build(tmp_path)
    with pytest.raises(BenchError, match="load generator failed"):
        tools.load(1, SHOT, seconds=0.1, connections=1, in_flight=1)
